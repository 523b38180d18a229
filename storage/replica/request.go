package replica

import (
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
)

// Acks as a Produce request carries them.
const (
	AcksNone   int16 = 0  // no answer at all
	AcksLeader int16 = 1  // once the leader has appended
	AcksAll    int16 = -1 // once the in-sync replicas have it
)

// AppendRequest is one batch for one partition.
type AppendRequest struct {
	Partition protocol.TopicPartition
	TopicID   protocol.TopicID // zero: not checked
	// Records must hold exactly one batch. It is stamped in place, and not
	// touched any more once Release was called.
	Records []byte
	Origin  log.Origin // client, coordinator or marker
	// LeaderEpoch, if not nil, is the only epoch in which the batch may be
	// appended: a coordinator that decided in one epoch must not write in a later.
	LeaderEpoch        *protocol.LeaderEpoch
	RequiredAcks       int16
	Timeout            time.Duration // for acks=all
	AllowZstd          bool          // Produce v7 and later
	TransactionVersion int8          // of a marker's coordinator
	Guard              log.Guard     // of BeginVerification, for the first batch of a transaction
	Release            func()        // Records are not needed any more; called once; may be nil
	// Abandon is called instead of Release where a write that was given up (vfs.ErrStalled) may still read Records: they
	// must never be changed again. nil: neither is called.
	Abandon func()
}

// AppendResult is what became of a batch.
type AppendResult struct {
	// Err is nil or a *protocol.Error. With REQUEST_TIMED_OUT and
	// NOT_ENOUGH_REPLICAS_AFTER_APPEND the batch is in the log all the same, and
	// BaseOffset says where.
	Err             error
	BaseOffset      protocol.Offset // of a duplicate: the original's; -1 if not appended
	LastOffset      protocol.Offset // -1 if not appended
	LogStartOffset  protocol.Offset // -1 if not known
	LogAppendTimeMs int64           // -1 unless message.timestamp.type is LogAppendTime
	RecordErrors    []record.RecordError
	CurrentLeader   *wire.LeaderIDAndEpoch // with NOT_LEADER_OR_FOLLOWER, if known here
}

// FetchPartition is one partition of a Fetch.
type FetchPartition struct {
	Partition          protocol.TopicPartition
	TopicID            protocol.TopicID // zero: not checked
	Offset             protocol.Offset
	MaxBytes           int
	CurrentLeaderEpoch protocol.LeaderEpoch // NoLeaderEpoch: not checked
	LastFetchedEpoch   protocol.LeaderEpoch // NoLeaderEpoch: divergence is not checked
	FollowerLogStart   protocol.Offset      // of a follower, else -1
}

// Consumer is the Replica of a FetchRequest or OffsetQuery that comes from a
// client; Debugging reads anywhere, as tools do (-2).
const (
	Consumer  protocol.NodeID = -1
	Debugging protocol.NodeID = -2
)

// FetchRequest is a Fetch with its session already resolved.
type FetchRequest struct {
	Partitions    []FetchPartition // answered in this order
	Replica       protocol.NodeID  // a follower's node id, or Consumer
	ReplicaEpoch  protocol.BrokerEpoch
	ReadCommitted bool
	MinBytes      int
	MaxBytes      int
	MaxWait       time.Duration
	ClientRack    string
	Version       int16 // of the Fetch request: from 11 on a consumer may read from followers
}

// FetchResult is one partition's part. Records is to be released once.
type FetchResult struct {
	Err                  error // nil or a *protocol.Error; the offsets are -1 then
	HighWatermark        protocol.Offset
	LastStableOffset     protocol.Offset
	LogStartOffset       protocol.Offset
	Records              wire.Region
	Aborted              []wire.AbortedTransaction // nil unless read_committed
	Diverging            *wire.EpochEndOffset
	PreferredReadReplica protocol.NodeID // NoNode if none
	CurrentLeader        *wire.LeaderIDAndEpoch
}

// The special timestamps of ListOffsets.
const (
	LatestTimestamp        int64 = -1
	EarliestTimestamp      int64 = -2
	MaxTimestamp           int64 = -3
	EarliestLocalTimestamp int64 = -4
	LatestTieredTimestamp  int64 = -5
	EarliestPendingUpload  int64 = -6
)

// OffsetQuery is one partition of a ListOffsets.
type OffsetQuery struct {
	Partition          protocol.TopicPartition
	CurrentLeaderEpoch protocol.LeaderEpoch // NoLeaderEpoch: not checked
	TimestampMs        int64                // milliseconds since 1970, or one of the special ones
	ReadCommitted      bool
	Replica            protocol.NodeID // Consumer, Debugging, or a follower's
}

// OffsetResult is what was found: -1 in each field where there is nothing.
type OffsetResult struct {
	TimestampMs int64
	Offset      protocol.Offset
	LeaderEpoch protocol.LeaderEpoch
}
