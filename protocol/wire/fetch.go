package wire

import "ottla/protocol"

// FetchResponse is a Fetch response of any version from 4 to 18 whose record
// bytes are regions. Fields that the version lacks are not written, whatever
// they hold.
type FetchResponse struct {
	Version       int16
	ThrottleMs    int32
	ErrorCode     protocol.ErrorCode // from version 7 on
	SessionID     int32              // from version 7 on
	Topics        []FetchTopic
	NodeEndpoints []NodeEndpoint // from version 16 on
}

// FetchTopic is one topic of a FetchResponse, by name up to version 12 and by id
// from 13 on.
type FetchTopic struct {
	Topic      string
	TopicID    protocol.TopicID
	Partitions []FetchPartition
}

// FetchPartition is one partition's part of a FetchResponse.
type FetchPartition struct {
	Partition            int32
	ErrorCode            protocol.ErrorCode
	HighWatermark        protocol.Offset
	LastStableOffset     protocol.Offset
	LogStartOffset       protocol.Offset      // from version 5 on
	DivergingEpoch       *EpochEndOffset      // from version 12 on; nil: left out
	CurrentLeader        *LeaderIDAndEpoch    // from version 12 on; nil: left out
	SnapshotID           *SnapshotID          // from version 12 on; nil: left out
	AbortedTransactions  []AbortedTransaction // nil is null
	PreferredReadReplica protocol.NodeID      // from version 11 on; NoNode for none
	Records              Region
}

// AbortedTransaction tells a read_committed consumer to drop what a producer
// wrote from FirstOffset on, until its abort marker.
type AbortedTransaction struct {
	ProducerID  protocol.ProducerID
	FirstOffset protocol.Offset
}

// EpochEndOffset says where a leader epoch ends in the leader's log (KIP-595).
type EpochEndOffset struct {
	Epoch     protocol.LeaderEpoch
	EndOffset protocol.Offset
}

// LeaderIDAndEpoch names a partition's leader (KIP-595, KIP-951).
type LeaderIDAndEpoch struct {
	ID    protocol.NodeID
	Epoch protocol.LeaderEpoch
}

// SnapshotID names the snapshot a replica is to fetch instead (KIP-630).
type SnapshotID struct {
	EndOffset protocol.Offset
	Epoch     protocol.LeaderEpoch
}

// NodeEndpoint is where a leader that a response names listens (KIP-951).
type NodeEndpoint struct {
	ID   protocol.NodeID
	Host string
	Port int32
	Rack *string
}

// Chunk is a piece of a message on its way to a socket: bytes or a region.
type Chunk struct {
	Bytes  []byte
	Region *Region
}

// Release releases every region of the response. Call it once.
func (r *FetchResponse) Release() {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			r.Topics[i].Partitions[j].Records.Release()
		}
	}
}

// FailedFetch is one partition's part of a response where nothing was read: what
// Apache Kafka sets then. The zero FetchPartition would name node 0 as the
// replica to read from.
func FailedFetch(partition int32, code protocol.ErrorCode) FetchPartition {
	return FetchPartition{
		Partition: partition, ErrorCode: code, HighWatermark: protocol.NoOffset, LastStableOffset: protocol.NoOffset, LogStartOffset: protocol.NoOffset,
		AbortedTransactions: []AbortedTransaction{}, PreferredReadReplica: protocol.NoNode,
	}
}
