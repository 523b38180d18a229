package quorum

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// Observe is what a node needs that follows the metadata and is no controller.
type Observe struct {
	ClusterID string
	// Settings are the core's. Without Bootstrap the static voters are asked.
	raft.FollowSettings
	FetchBytes    int32 // controller.quorum.fetch.max.bytes
	SnapshotBytes int32 // controller.quorum.fetch.snapshot.max.bytes
	// Send sends a request to a node of the quorum, and calls done once, from
	// anywhere, after controller.quorum.request.timeout.ms at the latest.
	Send func(to raft.Address, req kmsg.Request, done func(kmsg.Response, error))
}

// observed is the state of a quorum that observes.
type observed struct {
	kraft    []kraftAt
	part     *part
	troubles map[string]time.Time // that were logged since the leader last answered, and when

	bootstrap int                      // how many servers know who leads
	strangers map[protocol.NodeID]bool // those of them that are of another cluster
}

// troubleInterval is how often a trouble that stays is told again.
const troubleInterval = time.Minute

// kraftAt is a kraft.version and the offset of the record that brought it.
type kraftAt struct {
	offset  protocol.Offset
	version int16
}

// arrival is what came of a request, on its way to the next Tick.
type arrival struct {
	fetch *raft.Fetch
	resp  kmsg.Response
	err   error
}

// idle stands in for the controller on a node that has none.
type idle struct{}

func (idle) Restore(protocol.Offset, protocol.LeaderEpoch, int64, []machine.Record) error { return nil }

func (idle) Apply(protocol.Offset, protocol.LeaderEpoch, int64, []machine.Record) error { return nil }
func (idle) Committed(protocol.Offset)                                                  {}
func (idle) Activate(machine.Turn, protocol.LeaderEpoch) (machine.Result, error) {
	return machine.Result{}, nil
}
func (idle) Resign() {}

func (idle) Handle(machine.Turn, any) (machine.Result, error) {
	return machine.Result{}, protocol.NotController.Err()
}
func (idle) Tick(machine.Turn) (machine.Result, error) { return machine.Result{}, nil }
func (idle) NextDeadline() time.Time                   { return time.Time{} }

// observes tells whether this node follows the metadata and is no controller.
func (q *Quorum) observes() bool { return q.options.Observe != nil }

// beginObserving comes after load: what the log holds is not known to be committed,
// so nothing behind the snapshot is delivered.
func (q *Quorum) beginObserving(now time.Time, start snapshot) {
	q.applied, q.delivered = math.MaxInt64, start.id.End
	settings := q.options.Observe.FollowSettings
	if len(settings.Bootstrap) == 0 {
		for i, voter := range q.options.StaticVoters {
			at := voter.Endpoints[0]
			settings.Bootstrap = append(settings.Bootstrap, raft.Address{ID: protocol.NodeID(-2 - i), Host: at.Host, Port: at.Port})
		}
	}
	q.observed.bootstrap = len(settings.Bootstrap)
	q.core.Follow(now, settings)
}

// CaughtUp tells whether Images are published: this node has had everything that was
// committed when it first heard of the leader.
func (q *Quorum) CaughtUp() bool { return q.image.Load() != nil }

// tickObserver takes in what has arrived and sends what is due.
func (q *Quorum) tickObserver(now time.Time) error {
	q.queueMu.Lock()
	arrivals := q.arrivals
	q.arrivals = nil
	q.queueMu.Unlock()
	for _, arrived := range arrivals {
		if err := q.arrived(now, arrived); err != nil {
			return err
		}
	}
	effects := q.core.Tick(now)
	if fetch := effects.Fetch; fetch != nil {
		q.options.Observe.Send(fetch.To, q.request(fetch), func(resp kmsg.Response, err error) {
			q.queueMu.Lock()
			q.arrivals = append(q.arrivals, arrival{fetch, resp, err})
			q.queueMu.Unlock()
			if q.options.Wake != nil {
				q.options.Wake()
			}
		})
	}
	return nil
}

func (q *Quorum) hasArrivals() bool {
	q.queueMu.Lock()
	defer q.queueMu.Unlock()
	return len(q.arrivals) > 0
}

// arrived carries out what an answer means.
func (q *Quorum) arrived(now time.Time, a arrival) error {
	var got received
	err := a.err
	if err == nil {
		got, err = q.read(a.fetch, a.resp)
	}
	if err != nil {
		what := "the metadata quorum did not answer"
		if code := protocol.CodeOf(err); a.err == nil && code == protocol.InconsistentClusterID {
			what = "a node of a metadata quorum is of another cluster than this node, " + q.options.Observe.ClusterID
			if err := q.stranger(a.fetch.To); err != nil {
				return err
			}
		}
		q.complain(now, what, a.fetch.To, err)
		q.core.Failed(now, a.fetch)
		return nil
	}
	before := q.core.LeaderID()
	effects := q.core.Answered(now, a.fetch, got.answer)
	if leader := q.core.LeaderAddress(); leader != nil && q.core.LeaderID() != before {
		q.options.Logger.Info("the metadata quorum has a leader", "leader", leader.String(), "epoch", q.core.Epoch())
	}
	if code := got.answer.Error; code != protocol.None && effects.Persist == nil && code != protocol.NotLeaderOrFollower {
		q.complain(now, "a node of the metadata quorum refused a fetch", a.fetch.To, code.Err())
	}
	return q.carry(now, effects, got)
}

// stranger takes note of a bootstrap server that is of another cluster. When all of them are, waiting helps nobody.
func (q *Quorum) stranger(at raft.Address) error {
	if at.ID >= 0 {
		return nil // it was a leader of this cluster once
	}
	if q.observed.strangers == nil {
		q.observed.strangers = map[protocol.NodeID]bool{}
	}
	q.observed.strangers[at.ID] = true
	if len(q.observed.strangers) < q.observed.bootstrap {
		return nil
	}
	return fmt.Errorf("all controllers that this node is to ask (%s for one) are of another cluster than its log directories, whose meta.properties say cluster.id=%s",
		net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port))), q.options.Observe.ClusterID)
}

// complain says what goes wrong when it begins or changes and now and then, not at each try.
func (q *Quorum) complain(now time.Time, what string, to raft.Address, err error) {
	text := what + to.String()
	if last, said := q.observed.troubles[text]; said && now.Sub(last) < troubleInterval {
		return
	}
	if q.observed.troubles == nil {
		q.observed.troubles = map[string]time.Time{}
	}
	q.observed.troubles[text] = now
	q.options.Logger.Warn(what, "node", to.String(), "error", err)
}

// carry carries effects out in their order.
func (q *Quorum) carry(now time.Time, effects raft.Effects, got received) error {
	if effects.Persist != nil {
		if err := writeState(q.options.Env.FS, q.dir, *effects.Persist, q.kraftVersion, q.core.Voters()); err != nil {
			return err
		}
	}
	if effects.Refused != nil {
		return effects.Refused
	}
	switch {
	case effects.Truncate != nil:
		return q.cut(*effects.Truncate)
	case effects.Append:
		return q.replicate(now, got.records)
	case effects.Download != nil:
		return q.beginDownload(*effects.Download)
	case effects.Chunk:
		return q.takeChunk(now, got.chunk, effects.Install)
	}
	return nil
}

// cut takes the end of the log off, which the leader does not have.
func (q *Quorum) cut(end protocol.Offset) error {
	if end < q.snapshots.lastEnd { // after a start the core does not know what is committed yet
		return fmt.Errorf("the leader of the metadata quorum asks to cut the metadata log to offset %d, but everything in the snapshot of %d is committed",
			end, q.snapshots.lastEnd)
	}
	q.options.Logger.Info("the metadata log is cut to where it agrees with the leader's", "offset", end, "logEnd", q.log.View().LogEndOffset)
	if err := q.log.TruncateTo(end); err != nil {
		return err
	}
	end = q.log.View().LogEndOffset
	q.core.Truncated(end, q.lastEpoch())
	kept := slices.DeleteFunc(q.observed.kraft, func(k kraftAt) bool { return k.offset >= end })
	q.observed.kraft = kept
	q.kraftVersion = q.observed.kraftVersion()
	return nil
}

func (o *observed) kraftVersion() int16 {
	if len(o.kraft) == 0 {
		return 0
	}
	return o.kraft[len(o.kraft)-1].version
}

// lastEpoch is that of the last batch, or of the snapshot that the log begins with.
func (q *Quorum) lastEpoch() protocol.LeaderEpoch {
	return max(q.log.LatestEpoch(), q.snapshots.epoch, 0)
}

// epochEnd is what this log says of an epoch, to a leader whose log differs
// (KafkaRaftLog.endOffsetForEpoch).
func (q *Quorum) epochEnd(epoch protocol.LeaderEpoch) raft.EpochEnd {
	found, end := q.log.EpochEnd(epoch)
	if found < 0 || end <= q.snapshots.lastEnd {
		return raft.EpochEnd{Epoch: q.snapshots.epoch, End: max(q.snapshots.lastEnd, q.log.View().LogStartOffset)}
	}
	return raft.EpochEnd{Epoch: found, End: end}
}

// brokenRetry is how long records that cannot be appended are not asked for again.
const brokenRetry = 500 * time.Millisecond

// replicate appends what the leader sent and learns how far it is committed. What is no
// continuation of the log is asked for again: it is damaged on the way, or there. It is
// not flushed, as Apache Kafka does not where nobody votes: what a power cut takes is
// fetched again before anything relies on it.
func (q *Quorum) replicate(now time.Time, content []byte) error {
	before := q.log.View().LogEndOffset
	entries, broken := entriesOf(content, before)
	if len(entries) > 0 {
		err := q.log.Append(now, q.core.Epoch(), entries)
		if err == nil {
			var refused error
			if refused, err = q.cutRefused(entries); refused != nil {
				broken = refused
			}
		}
		if err != nil && !q.noSpace(err) {
			return err
		}
		if err != nil {
			q.options.Logger.Error("no space for the metadata log", "error", err, "retryIn", snapshotRetry)
			q.core.Hold(now.Add(snapshotRetry))
		}
	}
	end := q.log.View().LogEndOffset
	for _, e := range entries {
		if e.Err != nil || e.Batch.NextOffset() > end {
			break
		}
		q.snapshots.bytes += int64(e.Batch.Size())
		if err := q.control(e.Batch); err != nil {
			return err
		}
	}
	effects := q.core.Replicated(end, q.lastEpoch())
	if broken == nil {
		clear(q.observed.troubles)
	} else {
		q.complain(now, "the leader of the metadata quorum sent what cannot be appended", *q.core.LeaderAddress(), broken)
		q.core.Hold(now.Add(brokenRetry))
	}
	if effects.HighWatermark != protocol.NoOffset {
		q.log.SetHighWatermark(effects.HighWatermark)
	}
	return q.deliver(now, max(q.core.HighWatermark(), q.delivered))
}

// cutRefused gives the fault of the first batch that was not appended. Those behind it,
// if any was, would leave a hole.
func (q *Quorum) cutRefused(entries []*log.Entry) (refused, err error) {
	for _, e := range entries {
		if e.Err == nil {
			continue
		}
		if base := e.Batch.BaseOffset(); base < q.log.View().LogEndOffset {
			err = q.log.TruncateTo(base)
		}
		return e.Err, err
	}
	return nil, nil
}

// entriesOf parts the leader's bytes into batches, which must continue the log. The
// last may be cut off. The error is of the first that does not; those before it are given.
func entriesOf(content []byte, next protocol.Offset) ([]*log.Entry, error) {
	var entries []*log.Entry
	for len(content) > 0 {
		batch, rest, err := record.Next(content)
		if isShort(err) {
			break
		}
		if err == nil {
			err = batch.CheckCRC()
		}
		if err != nil {
			return entries, fmt.Errorf("a batch is damaged, at offset %d: %w", next, err)
		}
		if batch.BaseOffset() != next {
			return entries, fmt.Errorf("a batch has offset %d where %d was due", batch.BaseOffset(), next)
		}
		entries = append(entries, &log.Entry{Batch: batch, Origin: log.OriginFollower})
		next, content = batch.NextOffset(), rest
	}
	return entries, nil
}

// control takes the control records of KIP-853, which are effective at once.
func (q *Quorum) control(batch record.Batch) error {
	if !batch.IsControl() {
		return nil
	}
	found := replayed{quorum: q}
	if err := found.control(batch); err != nil {
		return err
	}
	for _, v := range found.voters {
		q.core.VotersAppended(v.offset, v.voters)
	}
	return nil
}

// publish tells of a new Image, once this node has caught up.
func (q *Quorum) publish(now time.Time, before, after *metadata.Image) {
	if q.observes() && !q.CaughtUp() && !q.core.CaughtUp() {
		return
	}
	q.image.Store(after)
	if q.options.OnImage != nil {
		q.options.OnImage(now, before, after)
	}
}
