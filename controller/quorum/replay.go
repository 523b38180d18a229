package quorum

import (
	"errors"
	"fmt"
	"time"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

// readBytes is how much of the log a replay reads at a time.
const readBytes = 1 << 20

// maxDecompressed bounds what one metadata batch may expand to.
const maxDecompressed = 64 << 20

// load brings everything to where the disk stands. It reads and replays all of
// it before it writes: a directory that is refused is left as it was.
//
// The whole log is replayed at once, though it is committed only when this
// replica leads: with one voter that is the same, and a log that cannot be
// replayed must not be written to. Nothing is published before the election.
func (q *Quorum) load(now time.Time, state raft.ElectionState, stateKnown bool) error {
	if err := q.ensureDir(); err != nil {
		return err
	}
	start, err := q.latestSnapshot()
	if err != nil {
		return err
	}
	q.loader, q.kraftVersion = metadata.NewLoader(), start.kraftVersion
	q.observed.kraft = []kraftAt{{protocol.NoOffset, start.kraftVersion}}
	if err := q.restoreMachine(start); err != nil {
		return fmt.Errorf("%s: %w", start.name, err)
	}
	if len(start.values) > 0 {
		if _, _, err := q.loader.LoadSnapshot(start.provenance(), start.each); err != nil {
			return fmt.Errorf("%s: %w", start.name, err)
		}
	}
	found := replayed{quorum: q, from: start.id.End}
	walked, err := q.walkLog(start.id, state, stateKnown, &found)
	if err != nil {
		return err
	}
	if err := q.openLog(now, walked, start.id); err != nil {
		return err
	}
	q.start(now, start, state, walked, found)
	return nil
}

// walkLog checks the log on the disk, and replays what the snapshot lacks.
func (q *Quorum) walkLog(snapshot snapshotID, state raft.ElectionState, stateKnown bool, found *replayed) (*walk, error) {
	walked := &walk{
		fsys: q.options.Env.FS, dir: q.dir, trust: q.options.Trust, visit: found.visit, maxEpoch: protocol.NoLeaderEpoch, observer: q.observes(),
	}
	if stateKnown { // an epoch is in quorum-state before its first record is written
		walked.maxEpoch = state.Epoch
	}
	producers, err := offsetsOf(walked.fsys, walked.dir, ".snapshot")
	if err != nil {
		return nil, err
	}
	if len(producers) > 0 && !walked.observer {
		walked.floor = producers[len(producers)-1]
	}
	if err := walked.run(snapshot.End); err != nil {
		return nil, err
	}
	switch {
	case walked.end == protocol.NoOffset && walked.floor > snapshot.End:
		return nil, &DamagedError{File: q.dir, Reason: fmt.Sprintf("there is no log, but it was durable up to offset %d", walked.floor)}
	case walked.torn != nil && walked.end < snapshot.End && !walked.observer:
		return nil, walked.torn
	case walked.torn != nil:
		q.options.Logger.Warn("the end of the metadata log was never made durable and is cut", "file", walked.torn.File,
			"position", walked.torn.Position, "reason", walked.torn.Reason)
	}
	if !stateKnown && walked.end > 0 {
		// As Apache Kafka does. With one voter no vote can be forgotten: it leads
		// a new epoch, higher than any in the log.
		q.options.Logger.Warn("quorum-state is missing; the leader epoch is taken from the log", "epoch", walked.epoch)
	}
	return walked, nil
}

// start makes the core out of what was found.
func (q *Quorum) start(now time.Time, start snapshot, state raft.ElectionState, walked *walk, found replayed) {
	voters := start.voters
	if q.kraftVersion == 0 || len(voters) == 0 && len(found.voters) == 0 {
		voters = q.options.StaticVoters
	}
	view := q.log.View()
	q.core = raft.New(q.options.Local, voters, state, raft.Log{End: view.LogEndOffset, Epoch: max(walked.epoch, start.id.Epoch, 0)})
	for _, v := range found.voters {
		q.core.VotersAppended(v.offset, v.voters)
	}
	q.snapshots.votersFromSnapshot = start.id.End == 0 && len(start.voters) > 0 && len(found.voters) == 0
	q.snapshots.taken(now, start.id)
	q.snapshots.bytes = found.bytes
	q.applied, q.delivered = view.LogEndOffset, view.LogEndOffset
	if q.observes() {
		q.beginObserving(now, start)
	}
}

func (q *Quorum) restoreMachine(start snapshot) error {
	records := make([]machine.Record, len(start.values))
	for i, value := range start.values {
		records[i].Value = value
	}
	q.applied = start.id.End
	return q.options.Machine.Restore(start.id.End, start.id.Epoch, start.timestampMs, records)
}

// replayed is what the batches that the log held at the start brought.
type replayed struct {
	quorum *Quorum
	from   protocol.Offset // what is before is in the snapshot
	voters []votersAt
	bytes  int64
}

type votersAt struct {
	offset protocol.Offset
	voters raft.VoterSet
}

func (r *replayed) visit(batch record.Batch) error {
	if batch.BaseOffset() < r.from {
		return nil
	}
	r.bytes += int64(batch.Size())
	if batch.IsControl() {
		if err := r.control(batch); err != nil {
			return err
		}
	} else if err := r.quorum.applyToMachine(batch); err != nil {
		return err
	}
	if r.quorum.observes() {
		return nil // nobody knows yet whether it is committed
	}
	return r.quorum.applyToLoader(batch)
}

// control takes the control records of KIP-853; they are effective before they
// are committed.
func (r *replayed) control(batch record.Batch) error {
	return eachRecord(batch, r.quorum.pool, func(one record.Record) error {
		kind, err := record.ParseControlKey(one.Key)
		if err != nil {
			return fmt.Errorf("control record at offset %d of the metadata log: %w", one.Offset, err)
		}
		switch kind {
		case record.ControlKRaftVersion:
			control, err := record.ParseKRaftVersion(one.Value)
			r.quorum.kraftVersion = control.KRaftVersion
			r.quorum.observed.kraft = append(r.quorum.observed.kraft, kraftAt{one.Offset, control.KRaftVersion})
			return err
		case record.ControlKRaftVoters:
			control, err := record.ParseVoters(one.Value)
			r.voters = append(r.voters, votersAt{one.Offset, votersFromRecord(control)})
			return err
		}
		return nil
	})
}

// reload brings the machine back to what the log holds after a write that
// failed and was taken back, and lets it go on.
func (q *Quorum) reload(now time.Time) error {
	start, err := q.latestSnapshot()
	if err != nil {
		return err
	}
	if err := q.restoreMachine(start); err != nil {
		return err
	}
	end := q.log.View().LogEndOffset
	if err := q.batches(start.id.End, end, q.applyToMachine); err != nil {
		return err
	}
	q.options.Machine.Committed(max(q.core.HighWatermark(), 0))
	return q.activate(now)
}

// deliver hands committed batches to the machine, if it has not decided them
// itself, and publishes what they add up to.
func (q *Quorum) deliver(now time.Time, end protocol.Offset) error {
	before := q.image.Load()
	if before == nil {
		before = metadata.Empty()
	}
	err := q.batches(q.delivered, end, func(batch record.Batch) error {
		if batch.BaseOffset() >= q.applied { // not decided here: a replay
			if err := q.applyToMachine(batch); err != nil {
				return err
			}
		}
		return q.applyToLoader(batch)
	})
	if err != nil {
		return err
	}
	q.delivered = end
	q.options.Machine.Committed(end)
	after := q.loader.Image()
	if after == before {
		return nil
	}
	q.publish(now, before, after)
	return nil
}

// batches walks over the batches of [from, end).
func (q *Quorum) batches(from, end protocol.Offset, visit func(record.Batch) error) error {
	for from < end {
		read, err := q.log.Read(from, readBytes, end, true)
		if err != nil {
			return err
		}
		content, err := read.Region.ReadAll()
		read.Region.Release()
		if err != nil {
			return err
		}
		next := from
		for len(content) > 0 {
			batch, rest, err := record.Next(content)
			if err != nil {
				return fmt.Errorf("metadata log at offset %d: %w", next, err)
			}
			if err := visit(batch); err != nil {
				return err
			}
			next, content = batch.NextOffset(), rest
		}
		if next <= from {
			return fmt.Errorf("metadata log: nothing to read at offset %d though it ends at %d", from, end)
		}
		from = next
	}
	return nil
}

func (q *Quorum) applyToMachine(batch record.Batch) error {
	q.applied = batch.NextOffset()
	if batch.IsControl() {
		return nil
	}
	var records []machine.Record
	err := eachRecord(batch, q.pool, func(r record.Record) error {
		records = append(records, machine.Record{Key: r.Key, Value: r.Value})
		return nil
	})
	if err != nil {
		return err
	}
	return q.options.Machine.Apply(batch.BaseOffset(), batch.PartitionLeaderEpoch(), batch.MaxTimestamp(), records)
}

func (q *Quorum) applyToLoader(batch record.Batch) error {
	committed := metadata.Batch{
		BaseOffset: batch.BaseOffset(), LastOffset: batch.LastOffset(), Epoch: batch.PartitionLeaderEpoch(), TimestampMs: batch.MaxTimestamp(),
	}
	if !batch.IsControl() {
		err := eachRecord(batch, q.pool, func(r record.Record) error {
			committed.Values = append(committed.Values, r.Value)
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, _, err := q.loader.Apply(committed)
	return err
}

func eachRecord(batch record.Batch, pool *compress.Pool, visit func(record.Record) error) error {
	for r, err := range record.Records(batch, pool, maxDecompressed) {
		if err != nil {
			return fmt.Errorf("metadata batch at offset %d: %w", batch.BaseOffset(), err)
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// noSpace tells a failure for want of space after which everything is as it was.
func (q *Quorum) noSpace(err error) bool {
	var flush *flushError
	if errors.As(err, &flush) || q.log.Failed() != nil {
		return false
	}
	return vfs.NoSpace(err)
}
