package segment

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// The suffixes of a segment's files and of files that wait for their end.
const (
	LogSuffix       = ".log"
	IndexSuffix     = ".index"
	TimeIndexSuffix = ".timeindex"
	TxnIndexSuffix  = ".txnindex"
	DeletedSuffix   = ".deleted"
	CleanedSuffix   = ".cleaned"
	SwapSuffix      = ".swap"
)

// FileName gives the name of a file of the segment that begins at base: twenty digits and the suffix.
func FileName(base protocol.Offset, suffix string) string {
	return fmt.Sprintf("%020d%s", base, suffix)
}

// ParseName splits a file name into base and suffix (all from the first dot). ok is false for names that are not
// digits, a dot and something.
func ParseName(name string) (base protocol.Offset, suffix string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	if !found || digits == "" || digits[0] < '0' || digits[0] > '9' {
		return 0, "", false // most are not, and an error costs more than a look
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, "", false
	}
	return protocol.Offset(n), name[len(digits):], true
}

// Options are what a segment needs to know of its topic's configuration.
type Options struct {
	IntervalBytes int // index.interval.bytes
	IndexBytes    int // segment.index.bytes, of each index
}

// Segment is one segment. One writer, any number of readers.
type Segment struct {
	cache *FileCache
	base  protocol.Offset
	opts  Options

	log, txn       *File
	offsets, times entries

	size     atomic.Int64              // whole batches in the .log, in bytes
	largest  atomic.Pointer[TimeEntry] // see Largest; nil: not known yet
	damaged  atomic.Bool               // an index was found wrong; see Damaged
	txnCount atomic.Int64              // entries of the .txnindex
	txnStale atomic.Bool               // the .txnindex was changed since it was synced
	synced   atomic.Bool               // see FirstSync

	// The writer's.
	lastEntry  OffsetEntry // last of the offset index
	lastTime   TimeEntry   // last of the time index, {-1, base} if none
	sinceEntry int64       // bytes of the .log since lastEntry was added
	unstored   int64       // bytes of the .log since the indexes were stored
	lastTxn    protocol.Offset
	opening    bool   // from Open to Rest
	trail      *trail // of what was walked while opening
	createdMs  int64  // when it was made, or last became empty
	firstMs    int64  // largest timestamp of the first batch
	firstKnown bool
	modifiedMs int64 // when the .log was last written
}

// Present says which files of a segment a directory holds, and their sizes in bytes; -1 is missing.
type Present struct {
	Log, Index, TimeIndex, TxnIndex int64
	ModifiedMs                      int64 // of the .log
}

// Empty tells that the files are as Create makes them.
func (p Present) Empty() bool {
	return p.Log == 0 && p.Index == 0 && p.TimeIndex == 0 && p.TxnIndex < 0
}

func attach(cache *FileCache, dir string, base protocol.Offset, opts Options) *Segment {
	files := cache.newFiles(dir, base)
	s := &Segment{
		cache: cache, base: base, opts: opts, log: &files[0], txn: &files[3],
		offsets:  entries{file: &files[1], size: OffsetEntryBytes},
		times:    entries{file: &files[2], size: TimeEntryBytes},
		lastTime: TimeEntry{-1, base}, lastTxn: protocol.NoOffset,
	}
	return s
}

// Create makes an empty segment with an empty file of each kind but the .txnindex. Left-over files of its name are
// overwritten. The caller syncs the directory.
func Create(cache *FileCache, dir string, base protocol.Offset, opts Options, nowMs int64) (*Segment, error) {
	return attach(cache, dir, base, opts).create(nowMs)
}

// create makes the files empty.
func (s *Segment) create(nowMs int64) (*Segment, error) {
	s.createdMs, s.modifiedMs = nowMs, nowMs
	s.largest.Store(&TimeEntry{-1, s.base})
	if err := s.txn.cache.fs.Remove(s.txn.Name()); err != nil && !isMissing(err) {
		return nil, fmt.Errorf("cannot remove a left-over file: %w", err)
	}
	for _, f := range []*File{s.log, s.offsets.file, s.times.file} {
		err := f.with(true, func(file vfs.File) error {
			size, err := file.Size()
			if err != nil || size == 0 {
				return err
			}
			return file.Truncate(0)
		})
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("cannot create a segment: %w", err)
		}
	}
	return s, nil
}

// Open takes over the files of a segment as they are; nothing is read. The caller goes on with Check, Resume or
// Rebuild; until Rest nobody else may use the segment, and what was read of it is kept at hand.
func Open(cache *FileCache, dir string, base protocol.Offset, opts Options, present Present) *Segment {
	s := attach(cache, dir, base, opts)
	s.opening = true
	s.createdMs, s.modifiedMs = present.ModifiedMs, present.ModifiedMs
	s.size.Store(present.Log)
	s.offsets.setStored(int(max(present.Index, 0) / OffsetEntryBytes))
	s.times.setStored(int(max(present.TimeIndex, 0) / TimeEntryBytes))
	s.txnCount.Store(max(present.TxnIndex, 0) / txnEntryBytes)
	s.txnStale.Store(present.TxnIndex >= 0) // who wrote it may not have synced it
	return s
}

// Rest closes the segment's files until they are needed again, and ends its opening.
func (s *Segment) Rest() {
	s.opened()
	for _, f := range s.files() {
		f.rest()
	}
}

// Base is the offset that names the segment.
func (s *Segment) Base() protocol.Offset { return s.base }

// Size is the number of bytes of whole batches in the .log.
func (s *Segment) Size() int64 { return s.size.Load() }

// SetOptions changes the intervals for later appends.
func (s *Segment) SetOptions(opts Options) { s.opts = opts }

// LogName is the path of the .log.
func (s *Segment) LogName() string { return s.log.Name() }

// Damaged tells that a reader found an index wrong. Readers cope; the writer should Rebuild.
func (s *Segment) Damaged() bool { return s.damaged.Load() }

// IndexEntries counts the entries of the offset index and the time index.
func (s *Segment) IndexEntries() (offsets, times int) { return s.offsets.len(), s.times.len() }

func (s *Segment) files() []*File { return []*File{s.log, s.offsets.file, s.times.file, s.txn} }

// Store writes the index entries that are only in memory, where they stay if it fails.
func (s *Segment) Store() error {
	// The time index goes first: after a kill in between it is ahead of the offset index, and Resume cuts what
	// is ahead. The other way round a largest timestamp could be missing.
	if err := s.times.store(); err != nil {
		return err
	}
	s.unstored = 0
	return s.offsets.store()
}

// Seal leaves the index files as Apache Kafka leaves those of a segment that takes no more batches, and at a
// clean stop: the largest timestamp as last time index entry, and exact sizes.
func (s *Segment) Seal() error {
	s.addTime(s.Largest())
	if err := s.times.seal(); err != nil {
		return err
	}
	return s.offsets.seal()
}

// Unseal undoes what Seal added to the time index, so that the segment can go on as active one.
func (s *Segment) Unseal() error {
	limit := protocol.NoOffset
	if s.offsets.len() > 0 {
		limit = s.lastEntry.Offset
	}
	return s.cutTimes(limit + 1)
}

// cutTimes drops the time index entries whose offset is not below the given one.
func (s *Segment) cutTimes(below protocol.Offset) error {
	entry, i, err := s.times.last(func(e []byte) bool { return s.decodeTime(e).Offset < below })
	if err != nil {
		return err
	}
	s.lastTime = TimeEntry{-1, s.base}
	if i >= 0 {
		s.lastTime = s.decodeTime(entry[:])
	}
	return s.times.cut(i + 1)
}

// SyncLog makes the .log durable.
func (s *Segment) SyncLog() error { return s.log.with(false, vfs.File.SyncData) }

// FirstSync tells the first who asks. He syncs besides what was written beside the segment when it began, and the others need
// not: where each append is synced that would be a second wait for the disk.
func (s *Segment) FirstSync() bool { return !s.synced.Swap(true) }

// SyncIndexes makes the index files durable.
func (s *Segment) SyncIndexes() error {
	for _, f := range []*File{s.offsets.file, s.times.file, s.txn} {
		if f == s.txn && !s.txnStale.Swap(false) {
			continue
		}
		if err := f.with(false, vfs.File.SyncData); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// MarkDeleted renames the files to .deleted; those that have that suffix already stay. Readers that have them pinned go on.
func (s *Segment) MarkDeleted() error {
	for _, f := range s.files() {
		if name := f.Name(); !strings.HasSuffix(name, DeletedSuffix) {
			if err := f.rename(name + DeletedSuffix); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveFiles deletes the files of a segment that nobody has open.
func RemoveFiles(cache *FileCache, dir string, base protocol.Offset) error {
	return attach(cache, dir, base, Options{}).Remove()
}

// Remove deletes the files. Readers that have them pinned go on.
func (s *Segment) Remove() error {
	var errs []error
	for _, f := range s.files() {
		errs = append(errs, f.remove())
	}
	return errors.Join(errs...)
}

// Close ends the use of the files. Regions that are out stay good.
func (s *Segment) Close() {
	for _, f := range s.files() {
		f.close()
	}
}
