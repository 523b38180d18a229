package segment

import (
	"errors"
	"io"
	"strings"

	"ottla/protocol"
)

// What compaction makes of segments is written to files with the suffix .cleaned. When they are complete and durable they
// are renamed to .swap, which tells a start that they replace all segments whose offsets they cover; those are put aside,
// and the suffix is taken off (LocalLog.replaceSegments). Tidy finishes or undoes what a crash interrupts. The caller
// syncs the directory between the steps.

// CreateCleaned makes an empty segment in .cleaned files. Left-over files of these names are overwritten. With an error it gives
// the segment too, for Remove: a .cleaned file that stays would undo a later swap.
func CreateCleaned(cache *FileCache, dir string, base protocol.Offset, opts Options, modifiedMs int64) (*Segment, error) {
	s := attach(cache, dir, base, opts)
	for _, f := range s.files() {
		f.moved(f.Name() + CleanedSuffix)
	}
	_, err := s.create(modifiedMs)
	return s, err
}

// MoveToSwap turns the suffix .cleaned into .swap. The .log is the last: as long as it is .cleaned, nothing is decided.
func (s *Segment) MoveToSwap() error {
	for _, f := range []*File{s.offsets.file, s.times.file, s.txn, s.log} {
		if err := f.changeSuffix(CleanedSuffix, SwapSuffix); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSwap deletes those files that MoveToSwap, which failed at another one, has renamed, and tells whether there were any.
// A start takes files with .swap for complete unless it finds one with .cleaned, so their removal must be durable before
// Remove.
func (s *Segment) RemoveSwap() (any bool, err error) {
	for _, f := range s.files() {
		if strings.HasSuffix(f.Name(), SwapSuffix) {
			any = true
			err = errors.Join(err, f.remove())
		}
	}
	return any, err
}

// PlaceLog takes the suffix .swap off the .log, PlaceIndexes then off the other files: once the .log has its name, a start
// only puts the rest in place.
func (s *Segment) PlaceLog() error { return s.log.changeSuffix(SwapSuffix, "") }

// PlaceIndexes follows PlaceLog.
func (s *Segment) PlaceIndexes() error {
	for _, f := range []*File{s.offsets.file, s.times.file, s.txn} {
		if err := f.changeSuffix(SwapSuffix, ""); err != nil {
			return err
		}
	}
	return nil
}

// AbortedCount is how many entries the .txnindex has.
func (s *Segment) AbortedCount() int { return int(s.txnCount.Load()) }

// ReadAt reads bytes of the .log.
func (s *Segment) ReadAt(p []byte, position int64) error { return s.log.readFull(p, position) }

// Position is where the first batch begins that ends at or after offset; the size of the .log if there is none.
func (s *Segment) Position(offset protocol.Offset) (int64, error) {
	size := s.Size()
	if size == 0 {
		return 0, nil
	}
	if err := s.log.pin(false); err != nil {
		return 0, err
	}
	defer s.log.Release()
	c := s.borrow(0, size)
	defer s.giveBack(c)
	b, err := s.seek(c, offset)
	if errors.Is(err, io.EOF) {
		return size, nil
	}
	return b.Position, err
}

// FirstTimestamp is the largest timestamp of the first batch, or -1; read anew, for others than the writer.
func (s *Segment) FirstTimestamp() (int64, error) {
	first := int64(-1)
	err := s.Batches(s.base, s.Size(), func(b Batch) error {
		first = b.Header.MaxTimestamp()
		return ErrStop
	})
	return first, err
}
