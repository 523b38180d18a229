package logconfig

import (
	"time"

	"ottla/protocol/compress"
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

// Default gives the defaults of Apache Kafka 4.4.0.
func Default() Options {
	return Options{
		SegmentBytes: 1 << 30, SegmentAge: 7 * 24 * time.Hour, SegmentIndexBytes: 10 << 20,
		IndexIntervalBytes: 4096, MaxMessageBytes: 1048588, RetentionBytes: -1, RetentionAge: 7 * 24 * time.Hour,
		Delete: true, FileDeleteDelay: time.Minute, TimestampBeforeMax: 1<<63 - 1, TimestampAfterMax: time.Hour,
		ProducerCompression: true, MinInSyncReplicas: 1, ProducerIDExpiration: 24 * time.Hour,
		VerifyTransactions: true, MinCleanableRatio: 0.5, DeleteRetention: 24 * time.Hour,
	}
}
