package log

import (
	"fmt"
	"slices"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// TruncateTo cuts the log so that it ends at offset, or at the batch before it if offset lies within one.
func (l *Log) TruncateTo(offset protocol.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%s cannot be truncated to %d", l.tp, offset)
	}
	if offset >= l.end {
		return l.cutEpochs(l.end)
	}
	if offset < l.segments[0].Base() {
		return l.TruncateFullyAndStartAt(offset)
	}
	target := holding(l.segments, offset)
	if err := l.settleSwap(l.segments[target]); err != nil {
		return err
	}
	l.touched.Store(true)
	end, position, err := l.segments[target].EndBelow(offset)
	if err != nil {
		return err
	}
	if err := l.lowerRecoveryPoint(end); err != nil {
		return err
	}
	if err := l.cutSegments(target, end, position); err != nil {
		return l.poison(err)
	}
	// After the data: epochs without batches are dropped when the log is opened, batches without epochs are not
	// found there.
	if err := l.cutEpochs(end); err != nil {
		return err
	}
	return l.reloadProducers(end)
}

// lowerRecoveryPoint has the node's checkpoint lowered before durable bytes are cut off.
func (l *Log) lowerRecoveryPoint(end protocol.Offset) error {
	if end >= max(l.durableEnd, l.logStart) || l.env.LowerRecoveryPoint == nil {
		return nil
	}
	if err := l.env.LowerRecoveryPoint(l.tp, end); err != nil {
		return fmt.Errorf("cannot lower the recovery point of %s to %d: %w", l.tp, end, err)
	}
	return nil
}

// cutSegments drops the segments after target, the last one first so that a crash leaves a prefix, and cuts target. Readers
// are shown the shorter log before anything is cut; who fails on an older view looks again.
func (l *Log) cutSegments(target int, end protocol.Offset, position int64) error {
	dropped := l.segments[target+1:]
	l.noteCut(end)
	l.mu.Lock()
	l.segments = slices.Clone(l.segments[:target+1])
	l.end = end
	l.durableEnd = min(l.durableEnd, end)
	l.highWatermark = min(l.highWatermark, end)
	l.logStart = min(l.logStart, end)
	l.truncations++
	l.publishSized(position)
	l.mu.Unlock()
	for _, s := range slices.Backward(dropped) {
		if err := l.doom(s); err != nil {
			return err
		}
	}
	if len(dropped) > 0 {
		// Or a power cut could bring them back behind what is appended from now on.
		if err := l.env.FS.SyncDir(l.dir); err != nil {
			return err
		}
	}
	next, err := l.active().Truncate(end, l.nowMs())
	if err != nil {
		return err
	}
	if next > end {
		panic(fmt.Sprintf("log: %s was truncated to %d but ends at %d", l.tp, end, next))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publish()
	return nil
}

func (l *Log) cutEpochs(end protocol.Offset) error {
	epochs := checkpoint.EpochsUpTo(l.epochs, end)
	if len(epochs) == len(l.epochs) {
		return nil
	}
	return l.dropEpochs(epochs)
}

// dropEpochs is setEpochs for epochs without batches. The log is cut already: where the file finds no room it says too much, of
// which a start believes nothing, and it comes before the next batch.
func (l *Log) dropEpochs(rest []checkpoint.EpochStart) error {
	if err := l.setEpochs(rest); !vfs.NoSpace(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs, l.epochsAhead = rest, true
	l.publish()
	return nil
}

// TruncateFullyAndStartAt drops everything; the log is empty and begins at offset.
func (l *Log) TruncateFullyAndStartAt(offset protocol.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.settleSwap(nil); err != nil {
		return err
	}
	if err := l.lowerRecoveryPoint(min(offset, l.segments[0].Base())); err != nil {
		return err
	}
	for _, s := range slices.Backward(l.segments) {
		if err := l.doom(s); err != nil {
			return l.poison(err)
		}
	}
	if err := l.dropSnapshots(func(protocol.Offset) bool { return true }); err != nil {
		return l.poison(err)
	}
	fresh, err := segment.Create(l.env.Files, l.dir, offset, l.segmentOptions(), l.nowMs())
	if vfs.NoSpace(err) { // there may be room once what was dropped is gone, for which nobody can wait
		if err = l.doomed.Clear(l.env.FS); err == nil {
			fresh, err = segment.Create(l.env.Files, l.dir, offset, l.segmentOptions(), l.nowMs())
		}
	}
	if err != nil {
		return l.poison(err)
	}
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return l.poison(err)
	}
	l.noteCut(offset)
	l.mu.Lock()
	l.segments = []*segment.Segment{fresh}
	l.end, l.logStart, l.durableEnd, l.highWatermark = offset, offset, offset, offset
	l.truncations++
	l.producers.Reset(offset)
	l.publish()
	l.mu.Unlock()
	return l.dropEpochs(nil)
}
