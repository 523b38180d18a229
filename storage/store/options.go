package store

import (
	"log/slog"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// Options is all that the store takes from its node. The Kafka property is named beside each.
type Options struct {
	FS          vfs.FS
	Dirs        []string        // log.dirs, in order; empty on a node that is only a controller
	MetadataDir string          // metadata.log.dir; "" is the first of Dirs
	NodeID      protocol.NodeID // node.id
	ClusterID   string          // what meta.properties must say; "" takes what it says

	LogOptions func(topic string) log.Options // asked at Load and Create; nil gives log.DefaultOptions
	// Assigned gives the directory that the cluster's metadata has for a partition's replica here, zero if none or
	// unknown; asked at Load. nil: nothing is known.
	Assigned func(tp protocol.TopicPartition) protocol.DirectoryID
	// TopicID gives the id of the topic that has a name now, zero if none; asked at Load. nil: nothing is known.
	TopicID func(topic string) protocol.TopicID
	Files   *segment.FileCache // of the node; nil makes one of 1,000 files
	Pool    *compress.Pool
	Logger  *slog.Logger // nil is silent
	Random  func() uint64
	// MaxDecompressed bounds what one batch may expand to, in bytes; see log.Env.
	MaxDecompressed int

	// Clock tells the time, by which it is found out whether logs of a directory are quicker flushed together; nil: each is by
	// itself.
	Clock func() time.Time

	// Space gives what is left in a directory, which its logs ask before they append, and by which the directory of a new
	// partition is chosen. It may give nil. nil: nobody is refused.
	Space func(dir string) *space.Directory

	// Workers runs a task on another goroutine, or inline if nil. Tasks flush, remove and recover.
	Workers func(task func())
	// RecoveryParallelism is how many logs of one directory are opened at a time
	// (num.recovery.threads.per.data.dir); 0 is 2.
	RecoveryParallelism int

	// Offline is told of each directory that fails after Load, without a lock held. May be nil.
	Offline func(Directory)
	// PartitionOffline is told of each partition whose files turn out to be damaged after Load, though its directory
	// works; without a lock held. May be nil.
	PartitionOffline func(protocol.TopicPartition)

	// Wake is told that NextDeadline may have become earlier. It must not block. May be nil.
	Wake func()

	RetentionCheckInterval time.Duration // log.retention.check.interval.ms; 0 is 5 minutes
	// CheckpointInterval is how often what was written since is flushed in the background and the recovery points
	// and log start offsets are written (log.flush.offset.checkpoint.interval.ms, log.flush.start.offset.checkpoint.interval.ms); 0 is 1 minute.
	CheckpointInterval time.Duration
	// FlushCheckInterval is how often topics with flush.ms are looked at (log.flush.scheduler.interval.ms);
	// 0 is never by itself.
	FlushCheckInterval time.Duration
	// DisableBackgroundFlush leaves flushing to the roll of segments and to flush.messages and flush.ms, as Apache
	// Kafka does; recovery after a power cut then takes longer.
	DisableBackgroundFlush bool
}
