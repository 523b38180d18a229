package clean

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
)

// RoundStats is what one round over a log did.
type RoundStats struct {
	BytesMapped    int64 // read to fill the map of keys
	BytesRead      int64 // of segments that were rewritten
	BytesWritten   int64
	RecordsRead    int64 // of batches that were looked into
	RecordsKept    int64
	Keyless        int64 // records without a key, which go
	BatchesRead    int64
	BatchesKept    int64
	BatchesRebuilt int64
	Segments       int // that were rewritten
	SegmentsMade   int
	Untouched      int     // segments of which nothing went, which stay as they are
	Utilization    float64 // of the memory for keys, 0 to 1
}

// round is the compaction of one log, once (Cleaner.doClean). It goes on in steps; between them it holds no lock and no
// file open, but for one unfinished .cleaned segment.
type round struct {
	log     *log.Log
	view    log.CleanView
	options log.Options
	start   protocol.Offset // first dirty
	bound   protocol.Offset // what is compacted lies before it
	end     protocol.Offset // after the last step: up to here the log is compacted
	began   time.Time
	stats   RoundStats

	exclusive func(l *log.Log, task func()) bool
	settings  *Settings
	reader    reader
	keys      *offsetMap
	full      bool // the map takes no more

	dirty  []*segment.Segment // to be mapped yet, the first one now
	mapped *transactions      // as the map meets them; nil: mapping has not begun, or is over

	groups [][]*segment.Segment // to be rewritten yet, the first one now
	at     int                  // segment of the group that is next
	target *segment.Segment     // what the group is written to; nil: not begun
	done   bool
	filter filter
	output [][]byte // of the present chunk
}

func newRound(now time.Time, c *candidate, s *Settings, pool *compress.Pool, exclusive func(*log.Log, func()) bool) *round {
	r := &round{
		log: c.log, view: c.view, options: c.options, start: c.firstDirty, bound: c.bound, end: c.firstDirty, began: now,
		exclusive: exclusive, settings: s,
		reader: reader{buffer: make([]byte, s.bufferBytes())},
		keys:   newOffsetMap(s.mapBytes(), s.LoadFactor, int64(c.bound-c.firstDirty)),
		dirty:  between(c.view.Segments, c.firstDirty, c.bound),
	}
	r.filter = filter{
		keys: r.keys, transactions: newTransactions(), nowMs: now.UnixMilli(), retentionMs: c.options.DeleteRetention.Milliseconds(),
		pool: pool, maxBytes: c.log.MaxDecompressed(), stats: &r.stats, unchanged: true,
	}
	return r
}

// step works until about so many bytes are read and written, and tells how many they were. The round is over when done is set, or with an
// error: log.ErrSuperseded, or what the environment says. now is the present time.
func (r *round) step(now time.Time, bytes int64) (moved int64, err error) {
	for !r.done && moved < bytes {
		if r.log.Superseded(r.view) {
			return moved, log.ErrSuperseded
		}
		var n int64
		switch {
		case len(r.dirty) > 0:
			n, err = r.mapChunk()
		case r.mapped != nil || r.groups == nil:
			r.plan()
		case r.target == nil:
			err = r.beginGroup()
		case r.at < len(r.groups[0]):
			n, err = r.rewriteChunk()
		default:
			n, err = 1, r.endGroup(now)
		}
		if moved += n; err != nil {
			// What retention deletes is closed before it is gone.
			if r.log.Superseded(r.view) || errors.Is(err, segment.ErrClosed) || errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %w", log.ErrSuperseded, err)
			}
			return moved, err
		}
	}
	return moved, nil
}

// abandon removes what is unfinished.
func (r *round) abandon() error {
	if r.target == nil {
		return nil
	}
	target := r.target
	r.target = nil
	return r.log.DropCleaned(target)
}

// mapChunk enters the keys of a chunk of the first dirty segment into the map (Cleaner.buildOffsetMap).
func (r *round) mapChunk() (int64, error) {
	s := r.dirty[0]
	if r.mapped == nil {
		r.mapped = newTransactions()
		if err := r.mapped.expect(r.view.Segments, r.start, r.bound); err != nil {
			return 0, err
		}
	}
	if r.reader.source != s {
		position, err := s.Position(r.start)
		if err != nil {
			return 0, err
		}
		r.reader.start(s, position, r.after(s))
	}
	if r.reader.left() == 0 {
		r.segmentMapped()
		return 0, nil
	}
	chunk, err := r.reader.chunk()
	if err != nil {
		return 0, err
	}
	size := int64(len(chunk))
	r.stats.BytesMapped += size
	for len(chunk) > 0 && !r.full {
		var b record.Batch
		if b, chunk, err = r.reader.take(chunk); err != nil {
			return size, err
		}
		if err := r.mapBatch(b); err != nil {
			return size, err
		}
	}
	if r.full {
		r.dirty = nil
	}
	return size, nil
}

// segmentMapped skips to the next segment; offsets that are missing at the end of this one count as seen.
func (r *round) segmentMapped() {
	r.dirty = r.dirty[1:]
	next := r.bound
	if len(r.dirty) > 0 {
		next = r.dirty[0].Base()
	}
	r.keys.latest = next - 1
}

func (r *round) mapBatch(b record.Batch) error {
	if b.IsControl() {
		if _, err := r.mapped.control(b); err != nil {
			return fmt.Errorf("the control batch at offset %d cannot be read: %w", b.BaseOffset(), err)
		}
	} else if !r.mapped.data(b) {
		for record, err := range record.Records(b, r.filter.pool, r.filter.maxBytes) {
			if err != nil {
				return fmt.Errorf("the records at offset %d cannot be read: %w", b.BaseOffset(), err)
			}
			if record.Key == nil || record.Offset < r.start {
				continue
			}
			if !r.keys.put(record.Key, record.Offset) {
				r.full = true
				return nil
			}
		}
	}
	if b.LastOffset() >= r.start {
		r.keys.latest = b.LastOffset()
	}
	return nil
}

// plan groups what is to be rewritten: all segments that begin before the end of what the map knows.
func (r *round) plan() {
	r.mapped = nil
	r.stats.Utilization = r.keys.utilization(r.settings.mapBytes())
	if r.keys.latest == protocol.NoOffset {
		r.done = true
		return
	}
	r.end = r.keys.latest + 1
	segments := between(r.view.Segments, 0, r.end)
	r.groups = grouped(segments, r.options.SegmentBytes, r.options.SegmentIndexBytes, r.bound)
	r.done = len(r.groups) == 0
}

// Compact compacts one log that nobody else uses, from a checkpoint on and whether it is dirty enough or not, and gives the
// new checkpoint. It is for tools and tests.
func Compact(now time.Time, l *log.Log, checkpoint protocol.Offset, s Settings, pool *compress.Pool) (protocol.Offset, RoundStats, error) {
	c, err := examine(l, checkpoint, now)
	if err != nil {
		return checkpoint, RoundStats{}, err
	}
	r := newRound(now, c, &s, pool, func(_ *log.Log, task func()) bool { task(); return true })
	for !r.done {
		if _, err := r.step(now, s.stepBytes()); err != nil {
			return checkpoint, r.stats, errors.Join(err, r.abandon())
		}
	}
	return r.end, r.stats, nil
}
