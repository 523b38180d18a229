package segment

import (
	"fmt"
	"path"
	"slices"
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
// directory holds is to be listed anew; the caller syncs it. A crash, or an error, leaves what Tidy finishes when it is called
// again. Snapshots of the metadata log (.checkpoint) are not its business.
func Tidy(cache *FileCache, dir string, entries []vfs.Entry) (handled int, err error) {
	t := &tidier{cache: cache, dir: dir}
	leastCleaned := never
	var cleaned []string
	var swaps []vfs.Entry
	for _, e := range entries {
		base, suffix, ok := ParseName(e.Name)
		switch {
		case e.Dir || strings.Contains(e.Name, ".checkpoint"):
		case strings.HasSuffix(e.Name, vfs.TempSuffix), strings.HasSuffix(e.Name, DeletedSuffix):
			err = t.discard(e.Name)
		case ok && strings.HasSuffix(suffix, CleanedSuffix):
			leastCleaned = min(leastCleaned, base)
			cleaned = append(cleaned, e.Name)
		case ok && strings.HasSuffix(suffix, SwapSuffix):
			swaps = append(swaps, e)
		}
		if err != nil {
			return t.handled, err
		}
	}
	swaps, err = t.undoSwap(swaps, leastCleaned)
	if err != nil {
		return t.handled, err
	}
	for _, name := range cleaned {
		if err := t.discard(name); err != nil {
			return t.handled, err
		}
	}
	return t.handled, t.finishSwap(swaps)
}

func (t *tidier) discard(name string) error {
	t.handled++
	if err := t.cache.fs.Remove(path.Join(t.dir, name)); err != nil && !isMissing(err) {
		return fmt.Errorf("cannot remove a left-over file: %w", err)
	}
	return nil
}

// undoSwap removes those swapped-in files that are at or after an unfinished .cleaned one: they were not all renamed. It gives
// the others. The .cleaned file that says so goes later.
func (t *tidier) undoSwap(swaps []vfs.Entry, leastCleaned protocol.Offset) (complete []vfs.Entry, err error) {
	for _, e := range swaps {
		base, _, _ := ParseName(e.Name)
		if base < leastCleaned {
			complete = append(complete, e)
		} else if err := t.discard(e.Name); err != nil {
			return nil, err
		}
	}
	if len(complete) < len(swaps) {
		return complete, t.sync()
	}
	return complete, nil
}

func (t *tidier) sync() error {
	if err := t.cache.fs.SyncDir(t.dir); err != nil {
		return fmt.Errorf("cannot sync what a start has tidied up: %w", err)
	}
	return nil
}

// finishSwap puts swapped-in segments in place, the .log files first: beside one that has its name, a start only puts the rest
// in place. Each step is durable before the next, as in the swap itself.
func (t *tidier) finishSwap(swaps []vfs.Entry) error {
	least, most := never, protocol.NoOffset
	var logs, indexes []string
	for _, e := range swaps {
		base, suffix, _ := ParseName(e.Name)
		if suffix != LogSuffix+SwapSuffix {
			indexes = append(indexes, e.Name)
			continue
		}
		logs = append(logs, e.Name)
		next, err := t.endOfSwap(base, e.Size)
		if err != nil {
			return err
		}
		least, most = min(least, base), max(most, next)
	}
	if len(logs) > 0 { // who died in between may not have synced their names yet, without which the old ones count
		if err := t.sync(); err != nil {
			return err
		}
	}
	before := t.handled
	if err := t.discardRange(least, most); err != nil {
		return err
	}
	if t.handled > before {
		if err := t.sync(); err != nil {
			return err
		}
	}
	if err := t.place(logs); err != nil {
		return err
	}
	if len(logs) > 0 && len(indexes) > 0 {
		if err := t.sync(); err != nil {
			return err
		}
	}
	return t.place(indexes)
}

// place takes the suffix .swap off files.
func (t *tidier) place(names []string) error {
	for _, name := range slices.Sorted(slices.Values(names)) {
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
