package consumer

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"

	"github.com/zeebo/xxh3"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// Topics is the cluster as the groups of one coordinator look at it. All of it is
// volatile.
type Topics struct {
	image  *metadata.Image
	hashes map[string]topicHash
	newest int64 // the offset of the last image in which a topic was new
}

// topicHash is what a topic hashes to, as long as the topic is this very one.
type topicHash struct {
	topic *metadata.Topic
	hash  uint64
}

// NewTopics looks at an empty cluster.
func NewTopics() *Topics {
	return &Topics{image: metadata.Empty(), hashes: map[string]topicHash{}, newest: -1}
}

// Follow looks at a newer image. The cost goes with the number of changes.
func (t *Topics) Follow(image *metadata.Image) {
	if image == nil || image == t.image {
		return
	}
	before := t.image
	t.image = image
	isNew := t.newest < 0
	if !isNew {
		changes := metadata.Diff(before, image)
		isNew = slices.ContainsFunc(changes.Topics, func(c metadata.TopicChange) bool { return c.Old == nil })
		for _, topic := range changes.DeletedTopics {
			delete(t.hashes, topic.Name)
		}
	}
	if isNew {
		t.newest = t.version()
	}
}

// version is the offset of the metadata that is looked at.
func (t *Topics) version() int64 { return int64(t.image.Provenance().Offset) }

// Image is what is looked at.
func (t *Topics) Image() *metadata.Image { return t.image }

// id finds a topic's id by its name.
func (t *Topics) id(name string) (protocol.TopicID, bool) {
	if topic := t.image.Topic(name); topic != nil {
		return topic.ID, true
	}
	return protocol.ZeroUUID, false
}

// hash tells what a group's topics hash to (KIP-1101). Those that do not exist
// are passed over. names are sorted.
func (t *Topics) hash(names []string) int64 {
	var all []byte
	for _, name := range names {
		topic := t.image.Topic(name)
		if topic == nil {
			continue
		}
		known, found := t.hashes[name]
		if !found || known.topic != topic {
			known = topicHash{topic, t.hashTopic(topic)}
			t.hashes[name] = known
		}
		all = binary.LittleEndian.AppendUint64(all, known.hash)
	}
	if len(all) == 0 {
		return 0
	}
	return int64(xxh3.Hash(all))
}

// hashTopic follows Utils.computeTopicHash of Apache Kafka 4.4.0 byte by byte: a
// broker of either kind that takes over finds the hash that it would have made.
func (t *Topics) hashTopic(topic *metadata.Topic) uint64 {
	little := binary.LittleEndian
	data := []byte{0} // the version of this scheme
	data = little.AppendUint64(data, binary.BigEndian.Uint64(topic.ID[:8]))
	data = little.AppendUint64(data, binary.BigEndian.Uint64(topic.ID[8:]))
	data = appendText(data, topic.Name)
	data = little.AppendUint32(data, uint32(topic.PartitionCount()))
	for n := range int32(topic.PartitionCount()) {
		data = little.AppendUint32(data, uint32(n))
		for _, rack := range t.racks(topic.Partition(n)) {
			data = little.AppendUint32(data, uint32(len(utf16.Encode([]rune(rack)))))
			data = appendText(data, rack)
		}
	}
	return xxh3.Hash(data)
}

// appendText appends a string as Java's UTF-16 units and their number.
func appendText(data []byte, text string) []byte {
	units := utf16.Encode([]rune(text))
	for _, unit := range units {
		data = binary.LittleEndian.AppendUint16(data, unit)
	}
	return binary.LittleEndian.AppendUint32(data, uint32(len(units)))
}

// racks are those of a partition's replicas, sorted.
func (t *Topics) racks(partition *metadata.Partition) (racks []string) {
	if partition == nil {
		return nil
	}
	for _, replica := range partition.Replicas {
		if broker := t.image.Broker(replica); broker != nil && broker.Rack != nil {
			racks = append(racks, *broker.Rack)
		}
	}
	slices.Sort(racks)
	return racks
}
