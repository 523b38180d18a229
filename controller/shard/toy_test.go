package shard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
)

// The requests of the toy.
type (
	put    struct{ key, value string } // one record; answers who waits for the key
	remove struct{ key string }        // a tombstone
	get    struct{ key string }        // no record; the reply is the value
	wait   struct{ key string }        // parked until a put of the key, or the alarm
	many   struct{ count, size int }   // divisible
	one    struct{ count, size int }   // the same, not divisible
	alarm  struct{ after time.Duration }
	add    struct{ key string } // counts the key up: what comes after rests on what came before
	refuse struct{}
	within struct { // the same as put, in a producer's transaction
		id         protocol.ProducerID
		epoch      protocol.ProducerEpoch
		guard      uint64
		key, value string
	}
)

// toy is a machine: a map of strings, with the offset and time of each.
type toy struct {
	partition int32
	entries   map[string]entry
	pending   map[protocol.ProducerID][]machine.Record
	end       protocol.Offset
	committed protocol.Offset

	// Volatile.
	active    bool
	epoch     protocol.LeaderEpoch
	waiting   map[machine.Token]string
	nextToken machine.Token
	deadline  time.Time

	activations, restores, deadlineCalls int
	greets                               bool // Activate writes a record
	applyError                           error
}

type entry struct {
	value       string
	offset      protocol.Offset
	epoch       protocol.LeaderEpoch
	timestampMs int64
}

// rung is an effect that is not a Respond.
type rung struct{ partition int32 }

func newToy(partition int32) *toy {
	return &toy{partition: partition, entries: map[string]entry{}, waiting: map[machine.Token]string{}}
}

var errRefused = protocol.Errorf(protocol.InvalidRequest, "refused")

func (t *toy) must(ok bool, format string, args ...any) {
	if !ok {
		panic("toy: " + fmt.Sprintf(format, args...))
	}
}

func (t *toy) Restore(end protocol.Offset, _ protocol.LeaderEpoch, _ int64, records []machine.Record) error {
	t.must(!t.active && end == 0 && len(records) == 0, "Restore of an active machine, or of a snapshot")
	t.restores++
	t.entries, t.pending = map[string]entry{}, map[protocol.ProducerID][]machine.Record{}
	t.waiting, t.deadline, t.end, t.committed = map[machine.Token]string{}, time.Time{}, 0, 0
	return nil
}

func (t *toy) Apply(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	if t.applyError != nil {
		return t.applyError
	}
	t.must(base >= t.end && len(records) > 0, "Apply at %d after %d", base, t.end)
	for i, r := range records {
		t.apply(entry{string(r.Value), base + protocol.Offset(i), epoch, timestampMs}, r)
	}
	t.end = base + protocol.Offset(len(records))
	return nil
}

func (t *toy) apply(e entry, r machine.Record) {
	if r.Value == nil {
		delete(t.entries, string(r.Key))
		return
	}
	t.entries[string(r.Key)] = e
}

func (t *toy) Committed(end protocol.Offset) {
	t.must(end >= t.committed && end <= t.end, "Committed(%d) after %d, applied up to %d", end, t.committed, t.end)
	t.committed = end
}

func (t *toy) Activate(turn machine.Turn, epoch protocol.LeaderEpoch) (machine.Result, error) {
	t.must(!t.active, "Activate of an active machine")
	t.active, t.epoch = true, epoch
	t.activations++
	if t.greets {
		return machine.Result{Records: []machine.Record{{Key: []byte("greeting"), Value: fmt.Append(nil, epoch)}}}, nil
	}
	return machine.Result{}, nil
}

func (t *toy) Resign() {
	t.must(t.active, "Resign of a machine that is not active")
	t.active = false
	t.waiting, t.deadline = map[machine.Token]string{}, time.Time{}
}

func (t *toy) Handle(turn machine.Turn, request any) (machine.Result, error) {
	t.must(t.active && turn.Next >= t.end, "Handle at %d, applied up to %d", turn.Next, t.end)
	switch r := request.(type) {
	case put:
		return machine.Result{
			Records: []machine.Record{{Key: []byte(r.key), Value: []byte(r.value)}}, Reply: turn.Next, Effects: t.respond(r.key, r.value),
		}, nil
	case add:
		n, _ := strconv.Atoi(t.entries[r.key].value)
		value := strconv.Itoa(n + 1)
		return machine.Result{
			Records: []machine.Record{{Key: []byte(r.key), Value: []byte(value)}}, Reply: n + 1, Effects: t.respond(r.key, value),
		}, nil
	case within:
		return machine.Result{
			Records: []machine.Record{{Key: []byte(r.key), Value: []byte(r.value)}}, Reply: turn.Next,
			Transaction: &machine.Transaction{ProducerID: r.id, ProducerEpoch: r.epoch, Guard: r.guard, Version: 2},
		}, nil
	case remove:
		return machine.Result{Records: []machine.Record{{Key: []byte(r.key)}}, Reply: turn.Next}, nil
	case get:
		return machine.Result{Reply: t.entries[r.key].value}, nil
	case wait:
		t.nextToken++
		t.waiting[t.nextToken] = r.key
		return machine.Result{Reply: machine.Parked{Token: t.nextToken}}, nil
	case many:
		return machine.Result{Records: filler(r.count, r.size), Reply: turn.Next, Divisible: true}, nil
	case one:
		return machine.Result{Records: filler(r.count, r.size), Reply: turn.Next}, nil
	case alarm:
		t.deadline = turn.Now.Add(r.after)
		return machine.Result{Reply: "set", Effects: []any{rung{t.partition}}}, nil
	}
	return machine.Result{}, errRefused
}

func filler(count, size int) (records []machine.Record) {
	for i := range count {
		records = append(records, machine.Record{Key: fmt.Appendf(nil, "filler-%d", i), Value: make([]byte, size)})
	}
	return records
}

// respond answers those who wait for a key.
func (t *toy) respond(key, value string) (effects []any) {
	for _, token := range slices.Sorted(maps.Keys(t.waiting)) {
		if key == "" || t.waiting[token] == key {
			delete(t.waiting, token)
			effects = append(effects, machine.Respond{Token: token, Reply: value})
		}
	}
	return effects
}

func (t *toy) Tick(turn machine.Turn) (machine.Result, error) {
	t.must(t.active && !t.deadline.IsZero() && !turn.Now.Before(t.deadline), "Tick that is not due")
	t.deadline = time.Time{}
	return machine.Result{
		Records: []machine.Record{{Key: []byte("alarm"), Value: fmt.Append(nil, turn.Now.UnixMilli())}},
		Effects: append(t.respond("", "alarm"), rung{t.partition}),
	}, nil
}

func (t *toy) NextDeadline() time.Time {
	t.deadlineCalls++
	return t.deadline
}

// dump is the durable state as text.
func (t *toy) dump() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[key]
		fmt.Fprintf(&b, "%s=%q at %d, epoch %d, %d\n", key, e.value, e.offset, e.epoch, e.timestampMs)
	}
	return b.String()
}

// bank is a toy that knows transactions.
type bank struct{ *toy }

func (b bank) ApplyTransactional(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, id protocol.ProducerID, _ protocol.ProducerEpoch, records []machine.Record) error {
	b.must(base >= b.end, "ApplyTransactional at %d after %d", base, b.end)
	b.pending[id] = append(b.pending[id], records...)
	b.end = base + protocol.Offset(len(records))
	return nil
}

func (b bank) ApplyMarker(offset protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, id protocol.ProducerID, _ protocol.ProducerEpoch, committed bool, coordinatorEpoch int32) error {
	b.must(offset >= b.end && coordinatorEpoch == 7, "marker at %d after %d, coordinator epoch %d", offset, b.end, coordinatorEpoch)
	if committed {
		for _, r := range b.pending[id] {
			b.apply(entry{string(r.Value), offset, epoch, timestampMs}, r)
		}
	}
	delete(b.pending, id)
	b.end = offset + 1
	return nil
}

var errApply = errors.New("this record cannot be applied")
