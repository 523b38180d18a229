package protocol

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Offset is the position of a record in a partition.
type Offset int64

// Offsets with a meaning of their own in ListOffsets and in replies.
const (
	NoOffset Offset = -1
)

// LeaderEpoch counts the leaders of one partition; it only rises. -1 is none.
type LeaderEpoch int32

// NoLeaderEpoch stands where a batch or a reply has no leader epoch.
const NoLeaderEpoch LeaderEpoch = -1

// ProducerID names an idempotent producer; -1 is none.
type ProducerID int64

// NoProducerID stands in batches of plain producers.
const NoProducerID ProducerID = -1

// ProducerEpoch fences the older incarnations of a producer; -1 is none.
type ProducerEpoch int16

// NodeID names a broker or controller; -1 is none.
type NodeID int32

// NoNode stands where no node is known, as for a partition without leader.
const NoNode NodeID = -1

// BrokerEpoch is the metadata offset of a broker's registration; -1 is none.
type BrokerEpoch int64

// UUID is Kafka's 128-bit id, written as 22 characters of URL-safe base64.
type UUID [16]byte

// TopicID, DirectoryID and IncarnationID are UUIDs by use.
type (
	TopicID       = UUID
	DirectoryID   = UUID
	IncarnationID = UUID
)

// Ids that Kafka reserves.
var (
	ZeroUUID        = UUID{}
	MetadataTopicID = TopicID{15: 1} // __cluster_metadata: AAAAAAAAAAAAAAAAAAAAAQ

	DirectoryMigrating  = DirectoryID{}      // before directory ids existed (KIP-858)
	DirectoryUnassigned = DirectoryID{15: 1} // not yet known to the controller
	DirectoryLost       = DirectoryID{15: 2} // was in a directory that failed
)

// NewUUID makes a random UUID out of two random words, avoiding the reserved
// range (the first hundred) and, as Kafka does, a leading dash.
func NewUUID(random func() uint64) UUID {
	for {
		var u UUID
		binary.BigEndian.PutUint64(u[:8], random())
		binary.BigEndian.PutUint64(u[8:], random())
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if !strings.HasPrefix(u.String(), "-") {
			return u
		}
	}
}

// ParseUUID reads the 22 characters that String writes; padding is accepted.
func ParseUUID(text string) (UUID, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(raw) != 16 {
		return UUID{}, fmt.Errorf("%q is not a Kafka UUID: it takes 22 characters of URL-safe base64", text)
	}
	return UUID(raw), nil
}

// String gives the form of meta.properties and of every Kafka tool.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero tells the absent id.
func (u UUID) IsZero() bool { return u == UUID{} }

// TopicPartition names one partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String gives topic-partition, the name of the partition's directory.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Compare orders by topic, then by partition.
func (tp TopicPartition) Compare(other TopicPartition) int {
	return cmp.Or(strings.Compare(tp.Topic, other.Topic), cmp.Compare(tp.Partition, other.Partition))
}

// ParseTopicPartition splits a directory name at its last dash.
func ParseTopicPartition(dir string) (TopicPartition, error) {
	cut := strings.LastIndexByte(dir, '-')
	if cut <= 0 {
		return TopicPartition{}, fmt.Errorf("%q is not a topic-partition name", dir)
	}
	number, err := strconv.ParseInt(dir[cut+1:], 10, 32)
	if err != nil || number < 0 || strconv.Itoa(int(number)) != dir[cut+1:] {
		return TopicPartition{}, fmt.Errorf("%q is not a topic-partition name", dir)
	}
	return TopicPartition{dir[:cut], int32(number)}, nil
}

// Names of the topics that only brokers write.
const (
	ClusterMetadataTopic  = "__cluster_metadata"
	ConsumerOffsetsTopic  = "__consumer_offsets"
	TransactionStateTopic = "__transaction_state"
	ShareGroupStateTopic  = "__share_group_state"
)

// IsInternalTopic tells the topics that Metadata marks internal.
func IsInternalTopic(name string) bool {
	return name == ConsumerOffsetsTopic || name == TransactionStateTopic || name == ShareGroupStateTopic
}
