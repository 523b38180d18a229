package swap

import (
	"errors"
	"fmt"
	"slices"

	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// errSync is the failure of a sync, after which nobody knows what is durable.
var errSync = errors.New("a directory cannot be synced")

// Swap is a compacted segment that counts already, durably, in the place of others, but is not wholly in place: its files may have
// the suffix .swap, and the others may not have theirs. A start would finish it (segment.Tidy).
type Swap struct {
	cleaned *segment.Segment
	old     []*segment.Segment // to be put aside yet
	placed  bool               // the .log has its name
}

// New is the rest of a swap, after MoveToSwap is durable.
func New(cleaned *segment.Segment, old []*segment.Segment) *Swap {
	return &Swap{cleaned: cleaned, old: slices.Clone(old)}
}

// Old are those segments that are to be put aside yet.
func (w *Swap) Old() []*segment.Segment { return w.old }

// Finish does what is left. Each step is durable before the next: a start that found the new .log beside an old segment of its
// offsets could not tell which one counts. doom puts an old segment aside; present says whether the new one is still the log's.
// After an error for want of room (NoSpace) that is no errSync, Finish goes on where it was when it is called again; a start
// does, too.
func (w *Swap) Finish(doom func(*segment.Segment) error, sync func() error, present bool) error {
	synced := func() error {
		if err := sync(); err != nil {
			return fmt.Errorf("%w: %w", errSync, err)
		}
		return nil
	}
	for len(w.old) > 0 {
		if err := doom(w.old[0]); err != nil {
			return err
		}
		w.old = w.old[1:]
	}
	if err := synced(); err != nil || !present {
		return err
	}
	if err := w.cleaned.PlaceLog(); err != nil {
		return err
	}
	w.placed = true
	if err := synced(); err != nil {
		return err
	}
	return w.cleaned.PlaceIndexes()
}

// Waits tells whether an error of Finish is one that passes.
func Waits(err error) bool { return vfs.NoSpace(err) && !errors.Is(err, errSync) }

// Cleaned is the new segment.
func (w *Swap) Cleaned() *segment.Segment { return w.cleaned }

// Placed tells that a start takes the .log for that of any segment. As long as it does not, the .log must not change: what of it is
// torn is damage to a start then.
func (w *Swap) Placed() bool { return w.placed }
