package log

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/producer"
)

// A successor is a log that is filled with the batches of another one of the same partition, in another directory, and
// takes its place when it has them all. It gets its batches by Append with OriginFollower; what does not follow from
// the batches comes from the calls below. The caller serialises them with all changes of either log.

// BeginAs makes an empty successor of source begin at the batch with base offset at. The producers whose batches all
// lie before it are taken along: nothing that is copied later tells of them.
func (l *Log) BeginAs(source *Log, at protocol.Offset) error {
	if err := l.TruncateFullyAndStartAt(at); err != nil {
		return err
	}
	older := source.producersBefore(at)
	if len(older) == 0 {
		return nil
	}
	l.mu.Lock()
	l.producers.Adopt(older, l.nowMs())
	data := l.producers.AppendSnapshot(nil)
	l.publish()
	l.mu.Unlock()
	return l.replaceSnapshot(at, data)
}

func (l *Log) producersBefore(at protocol.Offset) []producer.Producer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(l.producers.Producers(), func(p producer.Producer) bool {
		batches := p.Batches()
		return len(batches) > 0 && batches[len(batches)-1].LastOffset >= at
	})
}

// SkipTo makes the log end at a later offset with nothing in between: what compaction has left of source's newest
// offsets.
func (l *Log) SkipTo(now time.Time, offset protocol.Offset) error {
	if err := l.usable(); err != nil || offset <= l.end {
		return err
	}
	l.mu.Lock()
	l.end = offset
	l.mu.Unlock()
	return l.roll(offset, now.UnixMilli())
}

// TakeOver makes a successor that has all batches of source equal to it in what batches do not tell: where the log
// starts, leader epochs that have none yet, the producers as source remembers them, and the high watermark. All is
// durable when it returns.
func (l *Log) TakeOver(now time.Time, source *Log) error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.end != source.end {
		panic(fmt.Sprintf("log: %s ends at %d and cannot take over from one that ends at %d", l.tp, l.end, source.end))
	}
	if source.logStart > l.logStart {
		l.advance(source.logStart)
	}
	if !slices.Equal(l.epochs, source.epochs) || l.epochsStale {
		if err := l.setEpochs(source.epochs); err != nil {
			return err
		}
	}
	source.mu.Lock()
	producers, highWatermark := source.producers.Clone(), source.highWatermark
	source.mu.Unlock()
	l.mu.Lock()
	l.producers, l.highWatermark = producers, highWatermark
	data := producers.AppendSnapshot(nil)
	l.publish()
	l.mu.Unlock()
	if err := l.replaceSnapshot(l.end, data); err != nil {
		return err
	}
	if err := l.Flush(now); err != nil {
		return err
	}
	if err := l.sync(l.shown.Load()); err != nil { // the directory, also where nothing was left to flush
		return l.poison(fmt.Errorf("cannot make the log of %s durable: %w", l.tp, err))
	}
	return nil
}

// replaceSnapshot writes the snapshot of an offset, durably, whether there is one or not.
func (l *Log) replaceSnapshot(at protocol.Offset, data []byte) error {
	if err := l.writeSnapshot(at, data, true); err != nil {
		return err
	}
	if i, found := slices.BinarySearch(l.snapshots, at); !found {
		l.snapshots = slices.Insert(l.snapshots, i, at)
	}
	return nil
}
