package metadata

import (
	"fmt"
	"testing"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// largeImage has 100,000 partitions in 10,000 topics on 10 brokers.
func largeImage(b testing.TB) *Image {
	delta := NewDelta(Empty())
	offset := protocol.Offset(0)
	replay := func(r schema.MetadataRecord) {
		if err := delta.Replay(offset, 1, r); err != nil {
			b.Fatal(err)
		}
		offset++
	}
	for id := range protocol.NodeID(10) {
		replay(brokerRecord(id, 1))
	}
	for n := range 10_000 {
		id := protocol.TopicID{1, byte(n >> 8), byte(n)}
		replay(topicRecord(fmt.Sprintf("topic-%d", n), id))
		for p := range int32(10) {
			replay(partitionRecord(id, p, protocol.NodeID(n%10), protocol.NodeID((n+1)%10), protocol.NodeID((n+2)%10)))
		}
	}
	return delta.Build(Provenance{Offset: offset - 1})
}

func BenchmarkReplay(b *testing.B) {
	for b.Loop() {
		largeImage(b)
	}
}

func BenchmarkOneChange(b *testing.B) {
	image := largeImage(b)
	change := partitionChange(protocol.TopicID{1, 3, 3}, 5, func(r *schema.PartitionChangeRecord) { r.ISR = []protocol.NodeID{1} })
	b.ReportAllocs()
	for b.Loop() {
		delta := NewDelta(image)
		if err := delta.Replay(1, 1, change); err != nil {
			b.Fatal(err)
		}
		image = delta.Build(Provenance{})
		if changes := delta.Changes(); len(changes.Topics) != 1 {
			b.Fatal("the change is not reported")
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	image := largeImage(b)
	var buffer []byte
	for b.Loop() {
		buffer = buffer[:0]
		image.Records(MaxMetadataVersion, func(r schema.MetadataRecord, version int16) {
			buffer = schema.AppendMetadata(buffer[:0], r, version)
		})
	}
}
