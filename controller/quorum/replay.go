package quorum

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

// readBytes is how much of the log a replay reads at a time.
const readBytes = 1 << 20

// maxDecompressed bounds what one metadata batch may expand to.
const maxDecompressed = 64 << 20

// load brings everything to where the disk stands. It reads before it writes:
// a directory that is refused is left as it was.
func (q *Quorum) load(now time.Time, state raft.ElectionState) error {
	if err := q.ensureDir(); err != nil {
		return err
	}
	start, err := q.latestSnapshot()
	if err != nil {
		return err
	}
	if err := checkLog(q.options.Env.FS, q.dir, start.id.End, q.options.Trust); err != nil {
		return err
	}
	if err := q.openLog(now, start.id.End); err != nil {
		return err
	}
	if err := q.meet(start.id); err != nil {
		return err
	}
	q.kraftVersion = start.kraftVersion
	voters := start.voters
	if q.kraftVersion == 0 || len(voters) == 0 {
		voters = q.options.StaticVoters
	}
	view := q.log.View()
	q.core = raft.New(q.options.Local, voters, state, raft.Log{End: view.LogEndOffset, Epoch: max(view.LatestEpoch, start.id.Epoch, 0)})
	q.delivered = start.id.End
	q.snapshots.taken(now, start.id.End, q.log.Size())
	q.snapshots.votersFromSnapshot = start.id.End == 0 && len(start.voters) > 0
	if err := q.restoreMachine(start); err != nil {
		return err
	}
	q.loader = metadata.NewLoader()
	if len(start.values) > 0 {
		if _, _, err := q.loader.LoadSnapshot(start.provenance(), start.each); err != nil {
			return err
		}
	}
	return q.batches(start.id.End, view.LogEndOffset, q.examine)
}

// meet makes log and snapshot fit together: a log that ends before the
// snapshot holds nothing that the snapshot lacks, and one that begins after it
// has lost what lies between.
func (q *Quorum) meet(snapshot snapshotID) error {
	view := q.log.View()
	if view.LogStartOffset > snapshot.End {
		return &DamagedError{File: q.dir, Reason: fmt.Sprintf(
			"the log begins at offset %d, and no snapshot covers what is before it (the latest ends at %d)", view.LogStartOffset, snapshot.End)}
	}
	if view.LogEndOffset < snapshot.End {
		return q.log.TruncateFullyAndStartAt(snapshot.End)
	}
	return nil
}

func (q *Quorum) restoreMachine(start snapshot) error {
	records := make([]machine.Record, len(start.values))
	for i, value := range start.values {
		records[i].Value = value
	}
	q.applied = start.id.End
	return q.options.Machine.Restore(start.id.End, start.id.Epoch, start.timestampMs, records)
}

// examine looks at a batch that the log held at the start: what it says of the
// quorum is learnt, and a record that this version cannot read refuses the start
// before an election changes anything.
func (q *Quorum) examine(batch record.Batch) error {
	if batch.IsControl() {
		return q.learnVoters(batch)
	}
	return eachRecord(batch, q.pool, func(r record.Record) error {
		if _, _, err := schema.DecodeMetadata(r.Value); err != nil {
			return fmt.Errorf("the metadata record at offset %d cannot be read: %w", r.Offset, err)
		}
		return nil
	})
}

// learnVoters takes the control records of KIP-853 from an appended batch; they
// are effective before they are committed.
func (q *Quorum) learnVoters(batch record.Batch) error {
	return eachRecord(batch, q.pool, func(r record.Record) error {
		kind, err := record.ParseControlKey(r.Key)
		if err != nil {
			return fmt.Errorf("control record at offset %d of the metadata log: %w", r.Offset, err)
		}
		switch kind {
		case record.ControlKRaftVersion:
			control, err := record.ParseKRaftVersion(r.Value)
			q.kraftVersion = control.KRaftVersion
			return err
		case record.ControlKRaftVoters:
			control, err := record.ParseVoters(r.Value)
			if err == nil {
				q.core.VotersAppended(r.Offset, votersFromRecord(control))
				q.snapshots.votersFromSnapshot = false
			}
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
	q.image.Store(after)
	if q.options.OnImage != nil {
		q.options.OnImage(now, before, after)
	}
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

// noSpace tells a write that was taken back whole for want of space.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
