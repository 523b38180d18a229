package epochs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
)

// Log is what Recover needs to know of a log that is being opened.
type Log struct {
	// Stored is what is in its leader-epoch-checkpoint, or Unread why that is not known; fs.ErrNotExist: there is none.
	Stored     []byte
	Unread     error
	Segments   []*segment.Segment // at least one, by base offset
	Start, End protocol.Offset

	// Doubted: the file may not fit the batches, so the two are compared. Not where compaction took batches away.
	Doubted bool
	// Walk met these epochs' batches: of segments from SeenFrom on all, of others some.
	Walk     Walk
	SeenFrom protocol.Offset
}

// Walk notes where leader epochs begin while batches are walked in order.
type Walk []checkpoint.EpochStart

// See is told of the next batch.
func (w *Walk) See(b segment.Batch) error {
	epoch := b.Header.PartitionLeaderEpoch()
	if n := len(*w); epoch >= 0 && (n == 0 || epoch > (*w)[n-1].Epoch) {
		*w = append(*w, checkpoint.EpochStart{Epoch: epoch, Start: b.Header.BaseOffset()})
	}
	return nil
}

// Found are the leader epochs of a log.
type Found struct {
	Epochs  []checkpoint.EpochStart
	Rebuilt bool // the file was of no use
	Stale   bool // it says something else
	Ahead   bool // it says besides where epochs begin that have no batch; who appends must write it first
}

// Recover gives the leader epochs of a log. Errors are the environment's, or a *segment.Damage.
func Recover(l Log) (Found, error) {
	var loaded []checkpoint.EpochStart
	err := l.Unread
	if err == nil {
		loaded, err = checkpoint.ParseEpochs(l.Stored)
	}
	lost := errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, fs.ErrNotExist) && l.End > l.Start
	if err != nil && !lost && !errors.Is(err, fs.ErrNotExist) {
		return Found{}, fmt.Errorf("cannot read a leader epoch checkpoint: %w", err)
	}
	list := checkpoint.EpochsUpTo(loaded, l.End)
	if !lost && l.Doubted {
		if lost, err = l.contradict(list); err != nil {
			return Found{}, err
		}
	}
	if lost {
		if list, err = l.ofBatches(); err != nil {
			return Found{}, err
		}
	} else {
		list = l.withSeen(list)
	}
	list, _ = checkpoint.EpochsFrom(list, l.Start)
	same := !lost && len(list) <= len(loaded) && slices.Equal(list, loaded[:len(list)])
	return Found{Epochs: list, Rebuilt: lost, Stale: !same, Ahead: same && len(list) < len(loaded)}, nil
}

// withSeen replaces what the file says of segments that were walked whole, and adds newer epochs met in others.
func (l *Log) withSeen(list []checkpoint.EpochStart) []checkpoint.EpochStart {
	list = checkpoint.EpochsUpTo(list, l.SeenFrom)
	for _, e := range l.Walk {
		if n := len(list); n == 0 || e.Epoch > list[n-1].Epoch {
			list, _ = checkpoint.WithEpoch(list, e)
		}
	}
	return list
}

// contradict looks at the batches on both sides of each epoch's beginning: it must be the first of its epoch, and the
// one before it be of the epoch before.
func (l *Log) contradict(list []checkpoint.EpochStart) (bool, error) {
	if len(list) > 0 && list[0].Start > l.Start || len(list) == 0 && l.End > l.Start {
		return true, nil
	}
	for i, e := range list {
		if e.Start < l.Start || e.Start >= l.SeenFrom {
			continue
		}
		base, epoch, err := l.batchAt(e.Start)
		if err != nil || epoch != e.Epoch || base < e.Start && e.Start > l.Start {
			return true, err
		}
		if i == 0 || e.Start <= l.Segments[0].Base() {
			continue
		}
		if _, before, err := l.batchAt(e.Start - 1); err != nil || before != list[i-1].Epoch {
			return true, err
		}
	}
	return false, nil
}

// batchAt tells base offset and leader epoch of the batch that holds an offset.
func (l *Log) batchAt(offset protocol.Offset) (protocol.Offset, protocol.LeaderEpoch, error) {
	base, epoch := protocol.NoOffset, protocol.NoLeaderEpoch
	at := l.Segments[0]
	for _, s := range l.Segments {
		if s.Base() <= offset {
			at = s
		}
	}
	err := at.Batches(offset, at.Size(), func(b segment.Batch) error {
		base, epoch = b.Header.BaseOffset(), b.Header.PartitionLeaderEpoch()
		return segment.ErrStop
	})
	return base, epoch, err
}

// ofBatches walks all batches.
func (l *Log) ofBatches() ([]checkpoint.EpochStart, error) {
	l.Walk = nil
	for _, s := range l.Segments {
		if err := s.Batches(s.Base(), s.Size(), l.Walk.See); err != nil {
			return nil, err
		}
	}
	l.SeenFrom = 0
	return l.withSeen(nil), nil
}
