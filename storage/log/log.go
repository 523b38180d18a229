package log

import (
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// Log is one partition's log. See the package comment for which calls may overlap.
type Log struct{}

// Create makes the directory of a new partition, with partition.metadata (unless topicID is zero), and its first,
// empty segment.
func Create(env Env, dir string, tp protocol.TopicPartition, topicID protocol.TopicID, opts Options) (*Log, error) {
	panic("todo")
}

// Open opens an existing directory and repairs what may be repaired. A *DamagedError means that durable bytes
// are damaged: nothing was cut, and the partition must go offline.
func Open(env Env, dir string, tp protocol.TopicPartition, opts Options, state OpenState) (*Log, Recovery, error) {
	panic("todo")
}

// View is a consistent look at a log's offsets.
type View struct {
	LogStartOffset      protocol.Offset
	LocalLogStartOffset protocol.Offset
	LogEndOffset        protocol.Offset
	FirstUnstableOffset protocol.Offset // NoOffset if nothing is undecided or unreplicated
	DurableEnd          protocol.Offset // all below survives a power cut: the recovery point
	ActiveSegmentBase   protocol.Offset
	LatestEpoch         protocol.LeaderEpoch // NoLeaderEpoch if none
}

// View is published atomically; no lock is taken.
func (l *Log) View() View { panic("todo") }

// Origin tells who appends, which decides the checks (AppendOrigin.java).
type Origin int8

const (
	OriginClient      Origin = iota // a producer's batch: sequences and epochs are checked
	OriginCoordinator               // this node's group, transaction or share coordinator
	OriginMarker                    // a transaction marker (WriteTxnMarkers)
	OriginFollower                  // bytes from the leader: offsets are theirs and must fit
	OriginRaft                      // the metadata log's leader
)

// Entry is one batch to append and what became of it.
type Entry struct {
	Batch  record.Batch
	Info   record.Info
	Origin Origin
	// TransactionVersion is that of the request or marker: 2 makes a producer without state start at sequence
	// 0, and makes a marker's epoch be beyond the producer's. 0 and 1 are alike (KIP-890).
	TransactionVersion int8

	Err             error           // a fault of this entry alone, *protocol.Error; nothing of it was written
	FirstOffset     protocol.Offset // of a duplicate: the original's
	LastOffset      protocol.Offset
	LogAppendTimeMs int64 // -1 unless the topic stamps the append time; of a duplicate: the original's timestamp
	Duplicate       bool  // had been appended before; not written again
}

// Append writes the entries' batches in order. Batches are stamped in place (offsets, leader epoch, append
// time), except a follower's, which must continue the log. Faults of an entry stand in its Err; the returned
// error is the environment's, and then no entry counts as written: vfs ENOSPC and EDQUOT leave the log as it
// was and usable, any other error poisons it. The bytes are not kept.
func (l *Log) Append(now time.Time, epoch protocol.LeaderEpoch, entries []*Entry) error { panic("todo") }

// Read is a stretch of whole batches.
type Read struct {
	Region           wire.Region // release it once; empty if there is nothing in [from, bound)
	FirstBatchOffset protocol.Offset // base offset of the first batch; may be below from
	NextOffset       protocol.Offset // what to read next; valid only if Exact
	SegmentBase      protocol.Offset
}

// Read finds whole batches from the one that holds from on, up to maxBytes, none of which reaches bound. With
// atLeastOne the first batch comes even if it is larger than maxBytes. It reads within one segment. An offset
// outside [LogStartOffset, LogEndOffset] is protocol.OffsetOutOfRange.
func (l *Log) Read(from protocol.Offset, maxBytes int, bound protocol.Offset, atLeastOne bool) (Read, error) {
	panic("todo")
}

// AbortedIn lists the aborted transactions that have records in [from, to), by first offset. Never nil.
func (l *Log) AbortedIn(from, to protocol.Offset) ([]wire.AbortedTransaction, error) { panic("todo") }

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	TimestampMs int64
	Offset      protocol.Offset
	LeaderEpoch protocol.LeaderEpoch
}

// OffsetForTime finds the first record at or after the log's start whose timestamp is not before timestampMs.
func (l *Log) OffsetForTime(timestampMs int64) (found TimestampOffset, ok bool, err error) { panic("todo") }

// MaxTimestamp finds the first record with the largest timestamp in the log.
func (l *Log) MaxTimestamp() (found TimestampOffset, ok bool, err error) { panic("todo") }

// EpochEnd gives the largest known epoch not above the asked one and its end offset, or (-1, -1) if unknown
// (LeaderEpochFileCache.endOffsetFor).
func (l *Log) EpochEnd(epoch protocol.LeaderEpoch) (protocol.LeaderEpoch, protocol.Offset) { panic("todo") }

// EpochOf gives the leader epoch that wrote the record at offset, or NoLeaderEpoch.
func (l *Log) EpochOf(offset protocol.Offset) protocol.LeaderEpoch { panic("todo") }

// LatestEpoch gives the newest leader epoch in the cache, or NoLeaderEpoch.
func (l *Log) LatestEpoch() protocol.LeaderEpoch { panic("todo") }

// AssignEpoch records that epoch begins at start: what a new leader does before its first append. It is durable
// when it returns.
func (l *Log) AssignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) error { panic("todo") }

// Flush makes everything up to the present end durable and moves DurableEnd there. It may run beside appends;
// callers that ask for the same end share one fsync.
func (l *Log) Flush(now time.Time) error { panic("todo") }

// TruncateTo cuts the log so that it ends at offset, or before it if offset lies within a batch.
func (l *Log) TruncateTo(offset protocol.Offset) error { panic("todo") }

// TruncateFullyAndStartAt drops everything; the log is empty and begins at offset.
func (l *Log) TruncateFullyAndStartAt(offset protocol.Offset) error { panic("todo") }

// AdvanceLogStart moves the log's start up (DeleteRecords, or a follower after its leader). A lower offset
// changes nothing; one beyond the end is protocol.OffsetOutOfRange. Segments go at the next Maintain.
func (l *Log) AdvanceLogStart(now time.Time, offset protocol.Offset) error { panic("todo") }

// SetHighWatermark tells how far the log is replicated: retention stops there, and transactions whose marker
// lies below it are stable.
func (l *Log) SetHighWatermark(offset protocol.Offset) { panic("todo") }

// Maintenance is what Maintain did and what it wants.
type Maintenance struct {
	Rolled          bool
	SegmentsDeleted int
	BytesDeleted    int64
	LogStartOffset  protocol.Offset
	FlushWanted     bool      // call Flush (on a worker): a segment was rolled, or flush.ms is over
	NextDeadline    time.Time // zero: nothing is due by itself
	Err             error     // of the environment
}

// Maintain does what is due: rolls by age, retention, removal of files whose delay is over, expiry of
// producers. It never flushes; it says so in FlushWanted.
func (l *Log) Maintain(now time.Time) Maintenance { panic("todo") }

// SetOptions replaces the options.
func (l *Log) SetOptions(opts Options) { panic("todo") }

// Options gives the present ones.
func (l *Log) Options() Options { panic("todo") }

// TopicPartition names the partition.
func (l *Log) TopicPartition() protocol.TopicPartition { panic("todo") }

// TopicID is that of partition.metadata, or zero.
func (l *Log) TopicID() protocol.TopicID { panic("todo") }

// SetTopicID writes partition.metadata for a log that has none.
func (l *Log) SetTopicID(id protocol.TopicID) error { panic("todo") }

// Dir is the log's directory.
func (l *Log) Dir() string { panic("todo") }

// Size is the number of record bytes in all segments.
func (l *Log) Size() int64 { panic("todo") }

// SegmentInfo describes a segment.
type SegmentInfo struct {
	Base           protocol.Offset
	SizeBytes      int64
	MaxTimestampMs int64
}

// Segments lists the segments by base offset; the last is the active one.
func (l *Log) Segments() []SegmentInfo { panic("todo") }

// ActiveProducer is one producer, as DescribeProducers shows it.
type ActiveProducer struct {
	ProducerID            protocol.ProducerID
	Epoch                 protocol.ProducerEpoch
	LastSequence          int32
	LastTimestampMs       int64
	CoordinatorEpoch      int32
	CurrentTxnFirstOffset protocol.Offset // NoOffset if none
}

// ActiveProducers lists the producers by id.
func (l *Log) ActiveProducers() []ActiveProducer { panic("todo") }

// MarkDeleted renames the directory to <topic>-<partition>.<32 hex digits>-delete, from where the store removes
// it later. The log is closed.
func (l *Log) MarkDeleted(random func() uint64) (newDir string, err error) { panic("todo") }

// Close ends the log. A clean close flushes, writes the producer snapshot and the index files as Apache Kafka
// leaves them, and returns the recovery point for the checkpoint, the end of the log.
func (l *Log) Close(now time.Time, clean bool) (recoveryPoint protocol.Offset, err error) { panic("todo") }
