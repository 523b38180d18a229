package log

import (
	"fmt"
	"log/slog"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/segment"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// Options is all that a partition's log needs of its topic's configuration, resolved by node. The Kafka
// property is named beside each.
type Options struct {
	SegmentBytes       int64         // segment.bytes
	SegmentAge         time.Duration // segment.ms
	SegmentJitter      time.Duration // segment.jitter.ms
	SegmentIndexBytes  int           // segment.index.bytes
	IndexIntervalBytes int           // index.interval.bytes
	MaxMessageBytes    int           // max.message.bytes; 0 is no limit
	RetentionBytes     int64         // retention.bytes; -1 none
	RetentionAge       time.Duration // retention.ms; -1 none
	Delete             bool          // cleanup.policy has delete
	Compact            bool          // cleanup.policy has compact
	FileDeleteDelay    time.Duration // file.delete.delay.ms
	FlushMessages      int64         // flush.messages; 0 or less: never by count
	FlushAge           time.Duration // flush.ms; 0 or less: never by age
	// Of storage/clean; the log only rolls by MaxCompactionLag.
	MinCleanableRatio float64       // min.cleanable.dirty.ratio
	MinCompactionLag  time.Duration // min.compaction.lag.ms
	MaxCompactionLag  time.Duration // max.compaction.lag.ms; 0 or less: none
	DeleteRetention   time.Duration // delete.retention.ms

	// What follows is not used by the log itself but kept for whoever appends (storage/replica).
	LogAppendTime         bool          // message.timestamp.type; the log stamps it
	TimestampBeforeMax    time.Duration // message.timestamp.before.max.ms
	TimestampAfterMax     time.Duration // message.timestamp.after.max.ms
	ProducerCompression   bool          // compression.type=producer
	Compression           compress.Codec
	CompressionLevel      int // 0: Kafka's default for the codec
	MinInSyncReplicas     int
	UncleanLeaderElection bool
	MaxRecordBytes        int // max.decompressed.message.bytes, of one record; 0: replica.Options says

	ProducerIDExpiration time.Duration // producer.id.expiration.ms
	// VerifyTransactions refuses the first batch of a transaction that does not show the guard of a verification
	// (transaction.partition.verification.enable).
	VerifyTransactions bool
}

// DefaultOptions are the defaults of Apache Kafka 4.4.0.
func DefaultOptions() Options {
	return Options{
		SegmentBytes: 1 << 30, SegmentAge: 7 * 24 * time.Hour, SegmentIndexBytes: 10 << 20,
		IndexIntervalBytes: 4096, MaxMessageBytes: 1048588, RetentionBytes: -1, RetentionAge: 7 * 24 * time.Hour,
		Delete: true, FileDeleteDelay: time.Minute, TimestampBeforeMax: 1<<63 - 1, TimestampAfterMax: time.Hour,
		ProducerCompression: true, MinInSyncReplicas: 1, ProducerIDExpiration: 24 * time.Hour,
		VerifyTransactions: true, MinCleanableRatio: 0.5, DeleteRetention: 24 * time.Hour,
	}
}

// Env is what a log takes from its node.
type Env struct {
	FS     vfs.FS
	Files  *segment.FileCache
	Pool   *compress.Pool
	Logger *slog.Logger     // nil: silent
	Random func() uint64    // segment jitter; nil: none
	Space  *space.Directory // what is left in the directory; nil: nobody is refused

	// MaxDecompressed bounds what one batch may expand to when records are read, in bytes; 0: 1 GiB.
	MaxDecompressed int

	// LowerRecoveryPoint is called before a truncation cuts below DurableEnd or LogStartOffset, and must make the lower recovery
	// point durable before it returns: otherwise a crash in between leaves a log that ends before its recovery
	// point, which is what lost data looks like. If the checkpoint of the log's start is above offset it must be
	// lowered too, whatever DurableEnd was. It is called under the caller's serialisation. nil: nobody keeps a checkpoint (tests, tools).
	LowerRecoveryPoint func(tp protocol.TopicPartition, offset protocol.Offset) error
	// SyncParent makes the names in the log directory durable, where one sync may do for logs that are created side by
	// side. nil: Create syncs it itself.
	SyncParent func() error
}

// Trust says how much of a directory may be believed at Open.
type Trust int8

const (
	// Clean: closed in order (.kafka_cleanshutdown). Nothing is scanned.
	Clean Trust = iota
	// SameBoot: the process died, the machine did not: the page cache is whole. Only what lies beyond the
	// last index entry of the last segment is checked.
	SameBoot
	// OtherBoot: power may have been lost: everything beyond the recovery point is checked.
	OtherBoot
)

// OpenState is what the node's checkpoints say of a log.
type OpenState struct {
	RecoveryPoint  protocol.Offset // all below is durable (recovery-point-offset-checkpoint)
	LogStartOffset protocol.Offset // log-start-offset-checkpoint; 0 if none
	Trust          Trust
	Now            time.Time // for the expiry of producers; zero: none expire at open
}

// Recovery says in numbers what Open did.
type Recovery struct {
	Segments         int             // segments of the opened log
	SegmentsScanned  int             // whose batches were walked
	BatchesScanned   int64           // batch headers read
	BytesChecked     int64           // bytes whose checksum was computed
	BytesCut         int64           // bytes cut off the unsynced tail
	CutAt            protocol.Offset // the end of the log after a cut, else -1
	SegmentsRemoved  int             // segments beyond a hole, or beyond the cut
	IndexesRebuilt   int             // .index, .timeindex or .txnindex files written anew
	SnapshotsDropped int             // damaged .snapshot files removed
	EpochsRebuilt    bool            // leader-epoch-checkpoint made anew
	TopicIDLost      bool            // partition.metadata cannot be read; see SetTopicID
	StrayFiles       int             // .deleted, .cleaned, .swap and .tmp files, orphaned indexes and snapshots dealt with
}

// NoteWorthy tells whether anything had to be repaired.
func (r Recovery) NoteWorthy() bool {
	return r.BytesCut > 0 || r.SegmentsRemoved > 0 || r.IndexesRebuilt > 0 || r.SnapshotsDropped > 0 || r.EpochsRebuilt
}

// DamagedError says that bytes that were durable are gone or garbled. What is left of them was not touched.
type DamagedError struct {
	File     string // path
	Position int64  // byte in the file
	Reason   string // a sentence
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.File, e.Position, e.Reason)
}
