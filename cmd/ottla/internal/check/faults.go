package check

// Fault is the name of an invariant. Scripts may rely on the names.
type Fault string

// The invariants of a log directory.
const (
	Unreadable       Fault = "unreadable"        // the system refuses to read a file or directory
	MetaProperties   Fault = "meta-properties"   // meta.properties is whole and of version 1
	ClusterID        Fault = "cluster-id"        // all directories are of one cluster, that of the quorum's state too
	NodeID           Fault = "node-id"           // all directories are of one node
	DirectoryID      Fault = "directory-id"      // no two directories have the same id
	CleanShutdown    Fault = "clean-shutdown"    // the clean-shutdown marker is one
	Name             Fault = "name"              // a directory's name is that of a partition
	PartitionTwice   Fault = "partition-twice"   // a partition has its plain name in one directory
	PartitionMissing Fault = "partition-missing" // what the metadata assigns to a directory is there
	Checkpoint       Fault = "checkpoint"        // an offset checkpoint is whole, and no partition is in it twice
	RecoveryPoint    Fault = "recovery-point"    // the log reaches the recovery point
	LogStart         Fault = "log-start"         // the log reaches its start
	HighWatermark    Fault = "high-watermark"    // the log reaches the high watermark
	CleanerOffset    Fault = "cleaner-offset"    // the log reaches what was compacted
)

// The invariants of a partition.
const (
	PartitionMetadata Fault = "partition-metadata" // partition.metadata is whole
	TopicID           Fault = "topic-id"           // the topic id is that of the metadata
	SegmentOverlap    Fault = "segment-overlap"    // a segment begins at or after the end of the one before it
	SegmentGap        Fault = "segment-gap"        // in a log that was never compacted it begins right there
	BatchFrame        Fault = "batch-frame"        // whole batches of format 2, from the start of the file to its end
	BatchCRC          Fault = "batch-crc"          // the checksum is that of the bytes
	BatchOffset       Fault = "batch-offset"       // offsets rise, and fit into the segment
	BatchEpoch        Fault = "batch-epoch"        // leader epochs never fall
	BatchHeader       Fault = "batch-header"       // attributes, codec, producer and counts are possible
	BatchRecords      Fault = "batch-records"      // the records can be read and fill the batch exactly
	BatchTimestamp    Fault = "batch-timestamp"    // the header's largest timestamp is that of the records
	BatchControl      Fault = "batch-control"      // control records are known and whole
	Index             Fault = "index"              // entries of the offset index rise and point at batches
	TimeIndex         Fault = "time-index"         // entries of the time index rise and are the largest timestamps so far
	TxnIndex          Fault = "txn-index"          // the aborted transactions are those of the log's markers
	EpochCheckpoint   Fault = "epoch-checkpoint"   // leader-epoch-checkpoint is whole
	EpochStart        Fault = "epoch-start"        // it says of each batch what the batch says
	ProducerSnapshot  Fault = "producer-snapshot"  // a producer snapshot is whole
	ProducerState     Fault = "producer-state"     // it is what a replay of the log gives
)

// The invariants of what brokers and controllers write for themselves.
const (
	QuorumState      Fault = "quorum-state"      // quorum-state is whole, and no batch is newer
	MetadataRecord   Fault = "metadata-record"   // records of the metadata log can be read and replayed
	MetadataSnapshot Fault = "metadata-snapshot" // a snapshot or bootstrap.checkpoint is whole
	MetadataState    Fault = "metadata-state"    // it is what a replay of the log gives
	CoordinatorState Fault = "coordinator-state" // records of the internal topics can be read and replayed
)

// What is only noted.
const (
	InUse          Fault = "in-use"           // a server has the directory open
	NotClosed      Fault = "not-closed"       // there is no clean-shutdown marker
	ForeignFile    Fault = "foreign-file"     // a file that is no server's
	LeftOver       Fault = "left-over"        // a file or directory that a start removes or finishes
	Stray          Fault = "stray"            // a partition that the metadata does not know, or that was put aside
	FutureLog      Fault = "future-log"       // a partition that moves
	AbsentEntry    Fault = "checkpoint-entry" // a checkpoint names a partition that is not there
	IndexMissing   Fault = "index-missing"    // a start makes a new one
	IndexPadded    Fault = "index-padded"     // zeros at the end, as in the index of an active segment
	OffsetGap      Fault = "offset-gap"       // offsets without a batch, as compaction leaves them
	TornTail       Fault = "torn-tail"        // what was never made durable has no whole batch; a start cuts it off
	NotRead        Fault = "not-read"         // too large for the limits, or gone since the directory was listed
	EpochsLate     Fault = "epochs-late"      // leader-epoch-checkpoint begins behind the log's start, which a kill may set back
	OpenAtEnd      Fault = "open-transaction" // the metadata log ends within a transaction
	ProducerUnseen Fault = "producer-unseen"  // a producer of the log that a snapshot does not have: it may have expired
)
