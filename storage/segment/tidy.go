package segment

import (
	"fmt"
	"path"
	"strings"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// tidier cleans up one directory.
type tidier struct {
	cache   *FileCache
	dir     string
	handled int // files
}

// never is an offset that no log reaches.
const never protocol.Offset = 1<<63 - 1

// Tidy finishes or undoes in a partition's directory what a crash interrupted, as LogLoader does: .deleted and temporary
// files go; .cleaned files are an unfinished compaction and go; .swap files are a finished one and replace what they
// were made from. entries are what the directory holds. It returns how many files it dealt with: if any, what the
// directory holds is to be listed anew; the caller syncs it. Snapshots of the metadata log (.checkpoint) are not its
// business.
func Tidy(cache *FileCache, dir string, entries []vfs.Entry) (handled int, err error) {
	t := &tidier{cache: cache, dir: dir}
	leastCleaned := never
	var swaps []vfs.Entry
	for _, e := range entries {
		base, suffix, ok := ParseName(e.Name)
		switch {
		case e.Dir || strings.Contains(e.Name, ".checkpoint"):
		case strings.HasSuffix(e.Name, vfs.TempSuffix), strings.HasSuffix(e.Name, DeletedSuffix):
			err = t.discard(e.Name)
		case ok && strings.HasSuffix(suffix, CleanedSuffix):
			leastCleaned = min(leastCleaned, base)
			err = t.discard(e.Name)
		case ok && strings.HasSuffix(suffix, SwapSuffix):
			swaps = append(swaps, e)
		}
		if err != nil {
			return t.handled, err
		}
	}
	return t.handled, t.finishSwap(swaps, leastCleaned)
}

func (t *tidier) discard(name string) error {
	t.handled++
	if err := t.cache.fs.Remove(path.Join(t.dir, name)); err != nil && !isMissing(err) {
		return fmt.Errorf("cannot remove a left-over file: %w", err)
	}
	return nil
}

// finishSwap puts swapped-in segments in place. Those at or after an unfinished .cleaned one were not complete.
func (t *tidier) finishSwap(swaps []vfs.Entry, leastCleaned protocol.Offset) error {
	least, most := never, protocol.NoOffset
	var valid []string
	for _, e := range swaps {
		base, suffix, _ := ParseName(e.Name)
		if base >= leastCleaned {
			if err := t.discard(e.Name); err != nil {
				return err
			}
			continue
		}
		valid = append(valid, e.Name)
		if suffix != LogSuffix+SwapSuffix {
			continue
		}
		next, err := t.endOfSwap(base, e.Size)
		if err != nil {
			return err
		}
		least, most = min(least, base), max(most, next)
	}
	if err := t.discardRange(least, most); err != nil {
		return err
	}
	for _, name := range valid {
		t.handled++
		target := strings.TrimSuffix(name, SwapSuffix)
		if err := t.cache.fs.Rename(path.Join(t.dir, name), path.Join(t.dir, target)); err != nil {
			return fmt.Errorf("cannot put a compacted segment in place: %w", err)
		}
	}
	return nil
}

// endOfSwap finds the offset after the last batch of a NNN.log.swap.
func (t *tidier) endOfSwap(base protocol.Offset, size int64) (protocol.Offset, error) {
	s := attach(t.cache, t.dir, base, Options{})
	defer s.Close()
	s.log.moved(s.log.Name() + SwapSuffix)
	s.size.Store(size)
	return s.endFrom(0)
}

// discardRange removes the files of segments that begin within [from, to): what swapped-in ones were made from.
func (t *tidier) discardRange(from, to protocol.Offset) error {
	if from >= to {
		return nil
	}
	entries, err := t.cache.fs.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		base, suffix, ok := ParseName(e.Name)
		if !ok || e.Dir || strings.HasSuffix(suffix, SwapSuffix) || base < from || base >= to {
			continue
		}
		if err := t.discard(e.Name); err != nil {
			return err
		}
	}
	return nil
}
