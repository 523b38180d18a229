package log

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/producer"
	"ottla/storage/segment"
	"ottla/storage/swap"
)

// Log is one partition's log. See the package comment for which calls may overlap.
type Log struct {
	env    Env
	tp     protocol.TopicPartition
	logger *slog.Logger

	opts   atomic.Pointer[Options]
	shown  atomic.Pointer[published]
	failed atomic.Pointer[error] // set once: the log is poisoned
	closed atomic.Bool
	// touched: a file may be other than a clean stop left it.
	touched atomic.Bool

	// The serialised callers'.
	vector   [][]byte
	group    []*Entry
	doomed   swap.Doomed
	swap     *swap.Swap // a compacted segment that is not wholly in place; nil: none
	jitter   time.Duration
	dirStale atomic.Bool // entries were added to the directory since it was synced
	// swapWaits: swap is set, and waits for room.
	swapWaits atomic.Bool
	making    swap.Making // by compaction

	sawMs  atomic.Int64 // the newest time a caller told
	spared atomic.Int64 // see TakeCut

	flushing    sync.Mutex // one fsync at a time; taken before mu
	lastFlushMs atomic.Int64

	// mu guards the rest. It is not held over I/O.
	mu            sync.Mutex
	dir           string
	topicID       protocol.TopicID
	segments      []*segment.Segment // never empty; replaced, never changed
	end           protocol.Offset
	logStart      protocol.Offset
	highWatermark protocol.Offset
	durableEnd    protocol.Offset
	producers     *producer.State
	epochs        []checkpoint.EpochStart // ascending; replaced, never changed
	epochsStale   bool                    // the file has more at its beginning
	epochsAhead   bool                    // it differs in epochs that have no batch yet
	snapshots     []protocol.Offset       // of the .snapshot files, ascending
	interim       interim                 // the serialised callers'
	truncations   uint64
}

// published is what readers see, all of one moment.
type published struct {
	View
	segments    []*segment.Segment
	activeSize  int64 // bytes of the last segment that belong to the view
	epochs      []checkpoint.EpochStart
	truncations uint64
}

// View is a consistent look at a log's offsets.
type View struct {
	LogStartOffset      protocol.Offset
	LocalLogStartOffset protocol.Offset
	LogEndOffset        protocol.Offset
	FirstUnstableOffset protocol.Offset // NoOffset if nothing is undecided or unreplicated
	DurableEnd          protocol.Offset // all below survives a power cut: the recovery point
	ActiveSegmentBase   protocol.Offset
	LatestEpoch         protocol.LeaderEpoch // NoLeaderEpoch if none
}

// View is published atomically; no lock is taken.
func (l *Log) View() View { return l.shown.Load().View }

func newLog(env Env, dir string, tp protocol.TopicPartition, opts Options) *Log {
	l := &Log{env: env, tp: tp, dir: dir, logger: env.Logger, producers: producer.New(opts.ProducerIDExpiration)}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	l.opts.Store(&opts)
	return l
}

// Create makes the directory of a new partition, with partition.metadata (unless topicID is zero), and its first,
// empty segment, all durable when it returns.
func Create(env Env, dir string, tp protocol.TopicPartition, topicID protocol.TopicID, opts Options) (*Log, error) {
	l := newLog(env, dir, tp, opts)
	if err := env.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("cannot create the directory of %s: %w", tp, err)
	}
	if !topicID.IsZero() {
		if err := l.writeTopicID(topicID); err != nil {
			return nil, fmt.Errorf("cannot create %s of %s: %w", MetadataFile, tp, err)
		}
	}
	first, err := segment.Create(env.Files, dir, 0, l.segmentOptions(), 0)
	if err != nil {
		return nil, fmt.Errorf("cannot create the log of %s: %w", tp, err)
	}
	syncParent := env.SyncParent
	if syncParent == nil {
		syncParent = func() error { return env.FS.SyncDir(path.Dir(dir)) }
	}
	if err := errors.Join(env.FS.SyncDir(dir), syncParent()); err != nil {
		return nil, fmt.Errorf("cannot make the directory of %s durable: %w", tp, err)
	}
	l.segments = []*segment.Segment{first}
	first.Rest()
	l.jitter = l.newJitter()
	l.publish()
	return l, nil
}

func (l *Log) segmentOptions() segment.Options {
	o := l.opts.Load()
	return segment.Options{IntervalBytes: o.IndexIntervalBytes, IndexBytes: o.SegmentIndexBytes}
}

// newJitter draws how much earlier than SegmentAge the next segment is rolled (LogConfig.randomSegmentJitter).
func (l *Log) newJitter() time.Duration {
	o := l.opts.Load()
	most := min(o.SegmentJitter, o.SegmentAge).Milliseconds()
	if most <= 0 || l.env.Random == nil {
		return 0
	}
	return time.Duration(l.env.Random()%uint64(most)) * time.Millisecond
}

// active is the segment that takes appends; for the serialised callers.
func (l *Log) active() *segment.Segment { return l.segments[len(l.segments)-1] }

// publish shows readers the present state. mu is held, or nobody else knows the log yet.
func (l *Log) publish() { l.publishSized(l.active().Size()) }

// publishSized shows only so many bytes of the active segment.
func (l *Log) publishSized(activeSize int64) {
	active := l.active()
	p := &published{
		View: View{
			LogStartOffset: l.logStart, LocalLogStartOffset: l.logStart, LogEndOffset: l.end,
			FirstUnstableOffset: l.producers.FirstUnstableOffset(), DurableEnd: l.durableEnd,
			ActiveSegmentBase: active.Base(), LatestEpoch: protocol.NoLeaderEpoch,
		},
		segments: l.segments, activeSize: activeSize, epochs: l.epochs, truncations: l.truncations,
	}
	if p.FirstUnstableOffset != protocol.NoOffset {
		p.FirstUnstableOffset = max(p.FirstUnstableOffset, l.logStart)
	}
	if n := len(l.epochs); n > 0 {
		p.LatestEpoch = l.epochs[n-1].Epoch
	}
	if l.durableEnd > l.end || l.logStart > l.end {
		panic(fmt.Sprintf("log: %s begins at %d and is durable up to %d, beyond its end %d", l.tp, l.logStart, l.durableEnd, l.end))
	}
	l.shown.Store(p)
}

// limit is how many bytes of segment i belong to the view.
func (p *published) limit(i int) int64 {
	if i == len(p.segments)-1 {
		return p.activeSize
	}
	return p.segments[i].Size()
}

// holding is the index of the segment where offset lies, or would lie; -1 if it is before the first.
func (p *published) holding(offset protocol.Offset) int { return holding(p.segments, offset) }

func holding(segments []*segment.Segment, offset protocol.Offset) int {
	i, found := slices.BinarySearchFunc(segments, offset, func(s *segment.Segment, o protocol.Offset) int {
		return int(min(max(s.Base()-o, -1), 1))
	})
	if !found {
		i--
	}
	return i
}

// end of segment i: the base of the next one, or the view's end.
func (p *published) endOf(i int) protocol.Offset {
	if i == len(p.segments)-1 {
		return p.LogEndOffset
	}
	return p.segments[i+1].Base()
}

// ErrClosed says that the log was closed or deleted.
var ErrClosed = errors.New("the log is closed")

// usable tells whether the log may be written; a poisoned log returns what poisoned it.
func (l *Log) usable() error {
	if failed := l.failed.Load(); failed != nil {
		return fmt.Errorf("the log of %s failed before: %w", l.tp, *failed)
	}
	if l.closed.Load() {
		return fmt.Errorf("%s: %w", l.tp, ErrClosed)
	}
	return nil
}

// Failed is the error that poisoned the log, or nil.
func (l *Log) Failed() error {
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// poison makes err the end of all writing.
func (l *Log) poison(err error) error {
	l.failed.CompareAndSwap(nil, &err)
	return err
}

// nowMs is the newest time that a caller told; 0 if none did.
func (l *Log) nowMs() int64 { return l.sawMs.Load() }

// SetOptions replaces the options.
func (l *Log) SetOptions(opts Options) {
	l.opts.Store(&opts)
	for _, s := range l.segments {
		s.SetOptions(l.segmentOptions())
	}
	l.mu.Lock()
	l.producers.SetExpiration(opts.ProducerIDExpiration)
	l.mu.Unlock()
}

// Options gives the present ones.
func (l *Log) Options() Options { return *l.opts.Load() }

// TopicPartition names the partition.
func (l *Log) TopicPartition() protocol.TopicPartition { return l.tp }

// Dir is the log's directory.
func (l *Log) Dir() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dir
}

// Size is the number of record bytes in all segments.
func (l *Log) Size() int64 {
	p := l.shown.Load()
	var size int64
	for i := range p.segments {
		size += p.limit(i)
	}
	return size
}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	Base           protocol.Offset
	SizeBytes      int64
	MaxTimestampMs int64 // -1 if there is none, or it was not looked up yet
}

// Segments lists the segments by base offset; the last is the active one.
func (l *Log) Segments() []SegmentInfo {
	p := l.shown.Load()
	list := make([]SegmentInfo, len(p.segments))
	for i, s := range p.segments {
		list[i] = SegmentInfo{s.Base(), p.limit(i), s.Largest().TimestampMs}
	}
	return list
}

// SetHighWatermark tells how far the log is replicated: retention stops there, and transactions whose marker
// lies below it are stable.
func (l *Log) SetHighWatermark(offset protocol.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.highWatermark = min(max(offset, l.logStart), l.end)
	before := l.producers.FirstUnstableOffset()
	l.producers.Replicated(l.highWatermark)
	if l.producers.FirstUnstableOffset() != before {
		l.publish()
	}
}
