package consumer

import (
	"encoding/binary"
	"fmt"
	"testing"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// cluster is an image under construction.
type cluster struct {
	t     testing.TB
	image *metadata.Image
}

func (c *cluster) change(records ...schema.MetadataRecord) {
	c.t.Helper()
	delta, at := metadata.NewDelta(c.image), c.image.Provenance()
	for _, record := range records {
		at.Offset++
		if err := delta.Replay(at.Offset, 1, record); err != nil {
			c.t.Fatal(err)
		}
	}
	c.image = delta.Build(at)
}

func (c *cluster) partition(topic protocol.TopicID, n int32, replicas ...protocol.NodeID) {
	record := schema.NewPartitionRecord()
	record.TopicID, record.PartitionID, record.Replicas, record.ISR, record.Leader = topic, n, replicas, replicas, replicas[0]
	c.change(record)
}

func (c *cluster) topic(name string, id protocol.TopicID) {
	record := schema.NewTopicRecord()
	record.Name, record.TopicID = name, id
	c.change(record)
}

func (c *cluster) broker(id protocol.NodeID, rack string) {
	record := schema.NewRegisterBrokerRecord()
	record.BrokerID = id
	if rack != "" {
		record.Rack = &rack
	}
	c.change(record)
}

func uuid(high, low uint64) (id protocol.UUID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

// TestHashIsKafkas compares with what testdata/TopicHash.java printed.
func TestHashIsKafkas(t *testing.T) {
	c := &cluster{t, metadata.Empty()}
	for i, rack := range []string{"", "a", "b", "rack-é😀", "r0", "r1", "r2"} {
		c.broker(protocol.NodeID(i), rack)
	}
	one, two, many := uuid(0x0102030405060708, 0x090a0b0c0d0e0f10), uuid(0xf1f2f3f4f5f6f7f8, 0x8081828384858687), uuid(7, 9)
	c.topic("t", one)
	c.partition(one, 0, 0)
	c.topic("orders.eu-west_1", two)
	c.partition(two, 0, 2, 1)
	c.partition(two, 1, 1, 99)
	c.partition(two, 2, 3, 1)
	c.topic("many", many)
	for n := range int32(1000) {
		c.partition(many, n, protocol.NodeID(4+n%3), protocol.NodeID(4+(n+1)%3))
	}
	topics := NewTopics()
	topics.Follow(c.image)
	for _, want := range []struct {
		name       string
		alone, all int64
		names      []string
	}{
		{"t", -3545285224434551672, 4573825593198515515, []string{"t"}},
		{"orders.eu-west_1", 93859723801404525, 3697569124642622388, []string{"orders.eu-west_1", "t"}},
		{"many", 5644110642964093045, 5997323187692338713, []string{"many", "nothing", "orders.eu-west_1", "t"}},
	} {
		if got := int64(topics.hashTopic(c.image.Topic(want.name))); got != want.alone {
			t.Errorf("%s: %d, want %d", want.name, got, want.alone)
		}
		if got := topics.hash(want.names); got != want.all {
			t.Errorf("%v: %d, want %d", want.names, got, want.all)
		}
	}
	if got := topics.hash([]string{"nothing"}); got != 0 {
		t.Errorf("no topic: %d", got)
	}
}

// TestFollow wants new topics to be noticed, and nothing else taken for them.
func TestFollow(t *testing.T) {
	c := &cluster{t, metadata.Empty()}
	c.topic("t", uuid(1, 1))
	c.partition(uuid(1, 1), 0, 1)
	topics := NewTopics()
	topics.Follow(c.image)
	first := topics.newest
	if first != topics.version() {
		t.Fatalf("newest is %d", first)
	}
	before := topics.hash([]string{"t"})
	c.partition(uuid(1, 1), 1, 1)
	topics.Follow(c.image)
	if topics.newest != first || topics.hash([]string{"t"}) == before {
		t.Fatalf("after another partition: newest %d, hash %d", topics.newest, topics.hash([]string{"t"}))
	}
	gone := schema.NewRemoveTopicRecord()
	gone.TopicID = uuid(1, 1)
	c.change(gone)
	topics.Follow(c.image)
	if topics.newest != first || len(topics.hashes) != 0 || topics.hash([]string{"t"}) != 0 {
		t.Fatalf("after a deletion: %+v", topics)
	}
	c.topic("u", uuid(1, 2))
	topics.Follow(c.image)
	if topics.newest != topics.version() {
		t.Fatalf("a new topic is not noticed")
	}
	topics.Follow(nil)
	if topics.Image() != c.image {
		t.Fatal("it follows nothing")
	}
}

func ExampleGroup_State() {
	fmt.Println(New("g").State())
	// Output: Empty
}
