package metadata

import (
	"fmt"
	"iter"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Loader makes Images out of what is committed in __cluster_metadata: batches
// in their order, or a snapshot and then the batches after it. It is a plain
// struct of one goroutine; after an error it must not be used any more.
type Loader struct {
	image *Image
	delta *Delta
}

// NewLoader begins with the empty Image.
func NewLoader() *Loader {
	image := Empty()
	return &Loader{image: image, delta: NewDelta(image)}
}

// Batch is one committed batch of __cluster_metadata.
type Batch struct {
	BaseOffset  protocol.Offset
	LastOffset  protocol.Offset
	Epoch       protocol.LeaderEpoch
	TimestampMs int64
	Values      [][]byte // of its records; none for a control batch, which only moves the offset
}

// Image is the last one published.
func (l *Loader) Image() *Image { return l.image }

// InTransaction tells whether a metadata transaction is open, so that nothing
// is published before it ends.
func (l *Loader) InTransaction() bool { return l.delta.InTransaction() }

// Apply takes the next committed batch. It publishes an Image and the Delta
// that led to it, or nil and nil while a metadata transaction is open (KIP-868).
// An error, an *schema.UnknownRecordError among them, names the record: the node
// must not go on with metadata that it cannot read.
func (l *Loader) Apply(batch Batch) (*Delta, *Image, error) {
	if next := l.delta.next.provenance.Offset + 1; batch.BaseOffset < next {
		return nil, nil, fmt.Errorf("the metadata batch at offset %d was applied before: the next offset is %d", batch.BaseOffset, next)
	}
	for at, value := range batch.Values {
		offset := batch.BaseOffset + protocol.Offset(at)
		if err := replayValue(l.delta, offset, batch.Epoch, value); err != nil {
			return nil, nil, err
		}
	}
	l.delta.next.provenance.Offset = batch.LastOffset
	if l.delta.InTransaction() {
		return nil, nil, nil
	}
	delta, image := l.publish(Provenance{batch.LastOffset, batch.Epoch, batch.TimestampMs})
	return delta, image, nil
}

// LoadSnapshot replaces everything by the records of a snapshot, whose values
// are read one after the other. The Delta tells what the snapshot holds that the
// last Image did not, and the other way round.
func (l *Loader) LoadSnapshot(provenance Provenance, values iter.Seq2[[]byte, error]) (*Delta, *Image, error) {
	fresh := NewDelta(Empty())
	index := protocol.Offset(0)
	for value, err := range values {
		if err != nil {
			return nil, nil, fmt.Errorf("the metadata snapshot of offset %d cannot be read: %w", provenance.Offset, err)
		}
		if err := replayValue(fresh, index, provenance.Epoch, value); err != nil {
			return nil, nil, fmt.Errorf("the metadata snapshot of offset %d cannot be loaded: %w", provenance.Offset, err)
		}
		index++
	}
	if fresh.InTransaction() {
		return nil, nil, fmt.Errorf("the metadata snapshot of offset %d ends inside a metadata transaction", provenance.Offset)
	}
	fresh.base = l.image
	l.delta = fresh
	delta, image := l.publish(provenance)
	return delta, image, nil
}

func replayValue(delta *Delta, offset protocol.Offset, epoch protocol.LeaderEpoch, value []byte) error {
	record, _, err := schema.DecodeMetadata(value)
	if err != nil {
		return fmt.Errorf("the metadata record at offset %d cannot be read: %w", offset, err)
	}
	return delta.Replay(offset, epoch, record)
}

func (l *Loader) publish(provenance Provenance) (*Delta, *Image) {
	delta := l.delta
	l.image = delta.Build(provenance)
	delta.next.provenance = provenance
	l.delta = NewDelta(l.image)
	return delta, l.image
}
