package clean

import (
	"fmt"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
)

// filter decides what stays of each batch (Cleaner.cleanInto, MemoryRecords.filterTo).
type filter struct {
	keys          *offsetMap
	transactions  *transactions
	last          map[protocol.ProducerID]log.LastRecord
	highWatermark protocol.Offset
	nowMs         int64
	retentionMs   int64 // delete.retention.ms
	pool          *compress.Pool
	maxBytes      int // of one batch, decompressed

	kept      []record.Record // of the present batch
	unchanged bool            // since it was set, every batch stayed as it was
	stats     *RoundStats
}

// apply gives what is to stay of a batch: nil, the batch itself, or one that is built anew.
func (f *filter) apply(b record.Batch) (record.Batch, error) {
	kept, err := f.decide(b)
	if f.unchanged && (kept == nil || &kept[0] != &b[0]) {
		f.unchanged = string(kept) == string(b)
	}
	return kept, err
}

func (f *filter) decide(b record.Batch) (record.Batch, error) {
	var spent, discard bool // nothing of the batch is of use; its records go
	var err error
	if b.IsControl() {
		if spent, err = f.transactions.control(b); err != nil {
			return nil, fmt.Errorf("the control batch at offset %d cannot be read: %w", b.BaseOffset(), err)
		}
		// A marker of a transaction without batches waits for its delete horizon, as tombstones do.
		discard = spent && b.HasDeleteHorizon() && b.BaseTimestamp() <= f.nowMs
	} else {
		spent = f.transactions.data(b)
		discard = spent
	}
	keepEmpty := f.isLast(b) || b.NextOffset() == f.highWatermark
	if discard && !keepEmpty {
		return nil, nil
	}
	whole, tombstones, err := f.choose(b, discard)
	switch {
	case err != nil:
		return nil, err
	case len(f.kept) == 0 && keepEmpty:
		return emptied(b), nil
	case len(f.kept) == 0:
		return nil, nil
	}
	horizon := (tombstones || spent && b.IsControl()) && !b.HasDeleteHorizon()
	if whole && !horizon {
		return b, nil
	}
	return f.rebuilt(b, horizon), nil
}

// isLast tells that a producer's sequence or epoch would be forgotten with this batch.
func (f *filter) isLast(b record.Batch) bool {
	if !b.HasProducerID() {
		return false
	}
	last, known := f.last[b.ProducerID()]
	if !known {
		return false
	}
	if last.DataOffset != protocol.NoOffset {
		return b.LastOffset() == last.DataOffset
	}
	return b.IsControl() && b.ProducerEpoch() == last.Epoch
}

// choose gathers in kept the records that stay. whole: all of them do.
func (f *filter) choose(b record.Batch, discard bool) (whole, tombstones bool, err error) {
	clear(f.kept)
	f.kept, whole = f.kept[:0], true
	for r, err := range record.Records(b, f.pool, f.maxBytes) {
		if err != nil {
			return false, false, fmt.Errorf("the records at offset %d cannot be read: %w", b.BaseOffset(), err)
		}
		f.stats.RecordsRead++
		if discard || !b.IsControl() && !f.stays(b, &r) {
			whole = false
			continue
		}
		f.kept = append(f.kept, r)
		tombstones = tombstones || r.Value == nil
	}
	f.stats.RecordsKept += int64(len(f.kept))
	return whole, tombstones, nil
}

// stays decides on one record of data.
func (f *filter) stays(b record.Batch, r *record.Record) bool {
	if r.Offset > f.keys.latest {
		return true // what the map does not know
	}
	if r.Key == nil {
		f.stats.Keyless++
		return false
	}
	if r.Offset < f.keys.get(r.Key) {
		return false
	}
	return r.Value != nil || !b.HasDeleteHorizon() || f.nowMs < b.BaseTimestamp()
}

// emptied is what is left of a batch of which only the header counts (DefaultRecordBatch.writeEmptyHeader).
func emptied(b record.Batch) record.Batch {
	o := record.OptionsOf(b)
	o.Codec, o.BaseTimestamp, o.DeleteHorizon = compress.None, record.NoTimestamp, false
	return record.NewBuilder(o).Build(nil)
}

// rebuilt is the batch with the records in kept; with horizon the delete horizon is written where the base timestamp was.
func (f *filter) rebuilt(b record.Batch, horizon bool) record.Batch {
	o := record.OptionsOf(b)
	switch {
	case horizon:
		o.DeleteHorizon, o.BaseTimestamp = true, f.nowMs+f.retentionMs
	case !b.HasDeleteHorizon():
		o.BaseTimestamp = record.NoTimestamp // that of the first record that stays
	}
	builder := record.NewBuilder(o)
	for i := range f.kept {
		r := &f.kept[i]
		builder.AppendAt(r.Offset, r.Timestamp, r.Key, r.Value, r.Headers)
	}
	f.stats.BatchesRebuilt++
	return builder.Build(f.pool)
}
