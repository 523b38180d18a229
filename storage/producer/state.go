package producer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
)

// BatchesKept is how many batches of a producer are remembered: a client may have that many requests in
// flight, so a retry is always recognised (max.in.flight.requests.per.connection).
const BatchesKept = 5

// Batch is what is remembered of one batch of a producer.
type Batch struct {
	LastSequence int32
	LastOffset   protocol.Offset
	OffsetDelta  int32 // last offset minus first
	TimestampMs  int64 // the batch's largest timestamp
}

// FirstSequence counts back from the last, wrapping from 0 to the largest int32.
func (b Batch) FirstSequence() int32 {
	if b.LastSequence < b.OffsetDelta {
		return math.MaxInt32 - (b.OffsetDelta - b.LastSequence) + 1
	}
	return b.LastSequence - b.OffsetDelta
}

// FirstOffset is the offset of the batch's first record.
func (b Batch) FirstOffset() protocol.Offset { return b.LastOffset - protocol.Offset(b.OffsetDelta) }

// Producer is the state of one producer id.
type Producer struct {
	ID               protocol.ProducerID
	Epoch            protocol.ProducerEpoch // -1: unknown
	CoordinatorEpoch int32                  // of the last marker; -1: none yet
	LastTimestampMs  int64
	TxnFirstOffset   protocol.Offset // first offset of the open transaction, or NoOffset

	batches [BatchesKept]Batch // oldest first
	count   int
	order   uint64 // when the id was first seen; see snapshot.go
}

// Batches lists the remembered batches, oldest first.
func (p *Producer) Batches() []Batch { return p.batches[:p.count] }

// LastSequence is that of the newest batch, or record.NoSequence.
func (p *Producer) LastSequence() int32 {
	if p.count == 0 {
		return record.NoSequence
	}
	return p.batches[p.count-1].LastSequence
}

func (p *Producer) setEpoch(epoch protocol.ProducerEpoch) {
	if p.Epoch != epoch {
		p.count, p.Epoch = 0, epoch
	}
}

func (p *Producer) add(b Batch) {
	if p.count == BatchesKept {
		copy(p.batches[:], p.batches[1:])
		p.count--
	}
	p.batches[p.count] = b
	p.count++
}

// State is what one partition remembers. The zero State is not usable; see New.
type State struct {
	expiration time.Duration
	producers  map[protocol.ProducerID]*Producer

	// Decided transactions stay unstable until their marker is below the high watermark.
	ongoing      ongoing
	unreplicated unreplicated

	verifications map[protocol.ProducerID]*verification
	// used are those that batches have used since Mark.
	used      map[protocol.ProducerID]*verification
	nextGuard Guard

	end       protocol.Offset // all batches below have been applied
	peak      int             // most producers ever held, see snapshot.go
	nextOrder uint64

	undo    []undoStep
	marked  bool
	endUndo protocol.Offset
}

// New makes the state of an empty log. expiration is producer.id.expiration.ms.
func New(expiration time.Duration) *State {
	return &State{expiration: expiration, producers: map[protocol.ProducerID]*Producer{}}
}

// SetExpiration changes how long an idle producer is remembered.
func (s *State) SetExpiration(expiration time.Duration) { s.expiration = expiration }

// End is the offset up to which batches have been applied.
func (s *State) End() protocol.Offset { return s.end }

// SetEnd moves End, as at the end of a replay or after batches without a producer.
func (s *State) SetEnd(end protocol.Offset) { s.end = end }

// Len counts the producers.
func (s *State) Len() int { return len(s.producers) }

// Lookup gives a producer's state, or nil. It must not be changed or kept.
func (s *State) Lookup(id protocol.ProducerID) *Producer { return s.producers[id] }

// Reset forgets everything; the log is empty and begins at end.
func (s *State) Reset(end protocol.Offset) {
	if s.marked {
		panic("producer: reset between Mark and Commit")
	}
	clear(s.producers)
	s.ongoing, s.unreplicated = ongoing{}, unreplicated{}
	s.end = end
}

// Completed is a transaction that a marker ended.
type Completed struct {
	ProducerID       protocol.ProducerID
	FirstOffset      protocol.Offset
	LastOffset       protocol.Offset // the marker's
	LastStableOffset protocol.Offset // of the log up to the marker, as the .txnindex stores it
	Aborted          bool
}

// Apply records a batch that stands, or is about to stand, in the log. marker must be given for a control batch
// of a transaction. ok tells that an open transaction ended. Batches without a producer only move End.
func (s *State) Apply(b record.Batch, marker *Marker) (done Completed, ok bool) {
	defer func() { s.end = b.NextOffset() }()
	if !b.HasProducerID() {
		return Completed{}, false
	}
	s.useVerification(b)
	p := s.touch(b.ProducerID())
	if b.IsControl() {
		if marker == nil {
			return Completed{}, false // a control batch of another kind
		}
		return s.applyMarker(p, b, *marker)
	}
	s.applyData(p, b)
	return Completed{}, false
}

func (s *State) applyData(p *Producer, b record.Batch) {
	p.setEpoch(b.ProducerEpoch())
	p.add(Batch{b.LastSequence(), b.LastOffset(), b.LastOffsetDelta(), b.MaxTimestamp()})
	p.LastTimestampMs = b.MaxTimestamp()
	if b.IsTransactional() && p.TxnFirstOffset == protocol.NoOffset {
		p.TxnFirstOffset = b.BaseOffset()
		s.ongoing.add(transaction{p.ID, b.BaseOffset(), protocol.NoOffset})
		s.noteUndo(undoStep{began: b.BaseOffset(), ended: protocol.NoOffset})
	}
}

func (s *State) applyMarker(p *Producer, b record.Batch, marker Marker) (Completed, bool) {
	first := p.TxnFirstOffset
	p.setEpoch(b.ProducerEpoch())
	p.CoordinatorEpoch = marker.CoordinatorEpoch
	p.TxnFirstOffset = protocol.NoOffset
	p.LastTimestampMs = b.MaxTimestamp()
	if first == protocol.NoOffset {
		return Completed{}, false
	}
	s.complete(p.ID, first, b.BaseOffset())
	done := Completed{p.ID, first, b.BaseOffset(), b.BaseOffset() + 1, !marker.Commit}
	if next, open := s.ongoing.oldest(); open {
		done.LastStableOffset = next.first
	}
	return done, true
}

func (s *State) complete(id protocol.ProducerID, first, last protocol.Offset) {
	t, found := s.ongoing.end(first, last)
	if !found {
		panic(fmt.Sprintf("producer: the transaction of producer %d that ends at %d never began at %d", id, last, first))
	}
	covered := s.unreplicated.add(t)
	s.noteUndo(undoStep{began: protocol.NoOffset, ended: first, covered: covered})
	if !s.marked {
		s.ongoing.settle()
	}
}

// touch gives the producer to change, made if unknown, and remembers its old state while marked.
func (s *State) touch(id protocol.ProducerID) *Producer {
	p := s.producers[id]
	if s.marked {
		step := undoStep{id: id, known: p != nil, began: protocol.NoOffset, ended: protocol.NoOffset, ofProducer: true}
		if p != nil {
			step.old = *p
		}
		s.undo = append(s.undo, step)
	}
	if p == nil {
		p = &Producer{ID: id, Epoch: -1, CoordinatorEpoch: -1, LastTimestampMs: -1, TxnFirstOffset: protocol.NoOffset}
		s.keep(p)
	}
	return p
}

func (s *State) keep(p *Producer) {
	p.order = s.nextOrder
	s.nextOrder++
	s.producers[p.ID] = p
	s.peak = max(s.peak, len(s.producers))
}

// FirstUnstableOffset is the first offset of the oldest transaction that is open, or whose marker is not
// replicated yet; NoOffset if there is none.
func (s *State) FirstUnstableOffset() protocol.Offset {
	first := protocol.NoOffset
	if t, open := s.ongoing.oldest(); open {
		first = t.first
	}
	if list := s.unreplicated.list; len(list) > 0 && (first == protocol.NoOffset || list[0].first < first) {
		first = list[0].first
	}
	return first
}

// Replicated tells that everything below the high watermark is replicated: transactions decided there become
// stable. Also called with a new log start, which makes the same true.
func (s *State) Replicated(highWatermark protocol.Offset) { s.unreplicated.replicated(highWatermark) }

// OldestOpen gives the producer of the oldest open transaction and the time of its last batch in milliseconds.
func (s *State) OldestOpen() (id protocol.ProducerID, lastTimestampMs int64, ok bool) {
	t, open := s.ongoing.oldest()
	if !open {
		return protocol.NoProducerID, -1, false
	}
	id = t.producer
	if p := s.producers[id]; p != nil {
		return id, p.LastTimestampMs, true
	}
	return id, -1, true
}

func (s *State) expired(p *Producer, nowMs int64) bool {
	return p.TxnFirstOffset == protocol.NoOffset && nowMs-p.LastTimestampMs >= s.expiration.Milliseconds()
}

// Expire forgets producers that have been idle for too long; those with an open transaction stay. It returns how
// many went.
func (s *State) Expire(nowMs int64) int {
	if s.marked {
		panic("producer: expiry between Mark and Commit")
	}
	s.expireVerifications(nowMs)
	before := len(s.producers)
	for id, p := range s.producers {
		if s.expired(p, nowMs) {
			delete(s.producers, id)
		}
	}
	return before - len(s.producers)
}

// NextExpiry is the time in milliseconds at which the first producer expires, or -1.
func (s *State) NextExpiry() int64 {
	next := int64(-1)
	for _, p := range s.producers {
		if p.TxnFirstOffset != protocol.NoOffset {
			continue
		}
		if at := p.LastTimestampMs + s.expiration.Milliseconds(); next < 0 || at < next {
			next = max(at, 0)
		}
	}
	return next
}

// Producers lists copies of all producers by id.
func (s *State) Producers() []Producer {
	list := make([]Producer, 0, len(s.producers))
	for _, p := range s.producers {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Producer) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Clone gives an independent copy, for a log that takes this one's place. Nothing may be marked.
func (s *State) Clone() *State {
	if s.marked {
		panic("producer: Clone between Mark and Commit")
	}
	c := New(s.expiration)
	for id, p := range s.producers {
		kept := *p
		c.producers[id] = &kept
	}
	for id, v := range s.verifications {
		kept := *v
		if c.verifications == nil {
			c.verifications = map[protocol.ProducerID]*verification{}
		}
		c.verifications[id] = &kept
	}
	c.ongoing = ongoing{slices.Clone(s.ongoing.list), s.ongoing.ended}
	c.unreplicated = unreplicated{slices.Clone(s.unreplicated.list)}
	c.end, c.peak, c.nextOrder, c.nextGuard = s.end, s.peak, s.nextOrder, s.nextGuard
	return c
}
