package config

// logRows: logs: segments, flushing, retention, compaction.
var logRows = []Row{
	{
		Name: "log.dirs", Type: List, Default: Null, Allowed: notEmpty(),
		Support: Acted,
		Doc:     "The directories that hold the partitions, with commas between; goes before log.dir.",
	},
	{
		Name: "log.dir", Type: List, Default: "/tmp/kafka-logs", Allowed: notEmpty(),
		Support: Acted,
		Doc:     "The directories that hold the partitions, where log.dirs is not set.",
	},
	{
		Name: "log.dir.failure.timeout.ms", Type: Long, Default: "30000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How long the controller may remain ignorant of a failed directory before the broker stops.",
	},
	{
		Name: "cordoned.log.dirs", Type: List, Mode: PerBroker,
		Support: Refused, Reason: noCordon,
		Doc: "Directories that take no new partitions; * is all of them.",
	},
	{
		Name: "message.max.bytes", Type: Int, Default: "1048588", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The largest record batch that is taken, after compression.",
	},
	{
		Name: "max.decompressed.message.bytes", Type: Int, Default: "2147483639", Allowed: between(1, 2147483639), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The largest single record, once unfolded, that is taken from a compressed batch.",
	},
	{
		Name: "compression.type", Type: String, Default: "producer", Allowed: oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The codec records are stored with; producer keeps what they came with.",
	},
	{
		Name: "compression.gzip.level", Type: Int, Default: "-1", Allowed: gzipLevel(), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How hard gzip works when the broker compresses; -1 is gzip's own choice.",
	},
	{
		Name: "compression.lz4.level", Type: Int, Default: "9", Allowed: between(1, 17), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How hard lz4 works when the broker compresses.",
	},
	{
		Name: "compression.zstd.level", Type: Int, Default: "3", Allowed: between(-131072, 22), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How hard zstd works when the broker compresses.",
	},
	{
		Name: "log.segment.bytes", Type: Int, Default: "1073741824", Allowed: atLeast(1048576), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The size at which a new segment begins.",
	},
	{
		Name: "log.segment.delete.delay.ms", Type: Long, Default: "60000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long the files of a deleted segment or partition stay on disk under another name.",
	},
	{
		Name: "log.roll.ms", Type: Long, Default: Null, Mode: ClusterWide,
		Support: Acted,
		Doc:     "The age at which a new segment begins; goes before log.roll.hours.",
	},
	{
		Name: "log.roll.hours", Type: Int, Default: "168", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The age in hours at which a new segment begins.",
	},
	{
		Name: "log.roll.jitter.ms", Type: Long, Default: Null, Mode: ClusterWide,
		Support: Acted,
		Doc:     "How much earlier, at random, a segment may be rolled; goes before log.roll.jitter.hours.",
	},
	{
		Name: "log.roll.jitter.hours", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How many hours earlier, at random, a segment may be rolled.",
	},
	{
		Name: "log.index.interval.bytes", Type: Int, Default: "4096", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many bytes of records lie between two entries of an index.",
	},
	{
		Name: "log.index.size.max.bytes", Type: Int, Default: "10485760", Allowed: atLeast(4), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The size of an index at which a new segment begins.",
	},
	{
		Name: "log.preallocate", Type: Boolean, Default: "false", Mode: ClusterWide,
		Support: Harmless,
		Doc:     "Whether a segment's file gets its full size at once; Ottla's grow as they are written.",
	},
	{
		Name: "log.retention.ms", Type: Long, Default: Null, Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long records are kept; goes before minutes and hours; -1 is for ever.",
	},
	{
		Name: "log.retention.minutes", Type: Int, Default: Null,
		Support: Acted,
		Doc:     "How many minutes records are kept; goes before log.retention.hours.",
	},
	{
		Name: "log.retention.hours", Type: Int, Default: "168",
		Support: Acted,
		Doc:     "How many hours records are kept.",
	},
	{
		Name: "log.retention.bytes", Type: Long, Default: "-1", Mode: ClusterWide,
		Support: Acted,
		Doc:     "The size of a partition beyond which its oldest segments are deleted; -1 is none.",
	},
	{
		Name: "log.retention.check.interval.ms", Type: Long, Default: "300000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often segments are looked through for those that may go.",
	},
	{
		Name: "log.cleanup.policy", Type: List, Default: "delete", Allowed: listOf("compact", "delete"), Mode: ClusterWide,
		Support: Acted,
		Doc:     "What becomes of old segments: delete drops them, compact keeps the last record of a key.",
	},
	{
		Name: "log.flush.interval.messages", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many records are written before they are forced to disk.",
	},
	{
		Name: "log.flush.interval.ms", Type: Long, Default: Null, Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long records may wait before they are forced to disk; by default log.flush.scheduler.interval.ms.",
	},
	{
		Name: "log.flush.scheduler.interval.ms", Type: Long, Default: "9223372036854775807",
		Support: Acted,
		Doc:     "How often partitions are looked through for those that need forcing to disk.",
	},
	{
		Name: "log.flush.offset.checkpoint.interval.ms", Type: Int, Default: "60000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How often it is noted how far each partition is known to be on disk.",
	},
	{
		Name: "log.flush.start.offset.checkpoint.interval.ms", Type: Int, Default: "60000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How often it is noted where each partition begins.",
	},
	{
		Name: "log.initial.task.delay.ms", Type: Long, Default: "30000", Allowed: atLeast(0), Internal: true,
		Support: Acted,
		Doc:     "How long after the start the periodic work on logs begins.",
	},
	{
		Name: "log.message.timestamp.type", Type: String, Default: "CreateTime", Allowed: oneOf("CreateTime", "LogAppendTime"), Mode: ClusterWide,
		Support: Acted,
		Doc:     "Whose time a record carries: its producer's, or the broker's at the append.",
	},
	{
		Name: "log.message.timestamp.before.max.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How far a record's time may lie before the broker's clock.",
	},
	{
		Name: "log.message.timestamp.after.max.ms", Type: Long, Default: "3600000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How far a record's time may lie after the broker's clock.",
	},
	{
		Name: "num.recovery.threads.per.data.dir", Type: Int, Default: "2", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many partitions of one directory are recovered at the same time.",
	},
	{
		Name: "num.replica.alter.log.dirs.threads", Type: Int, Default: Null,
		Support: Acted,
		Doc:     "How many replicas move from one directory to another at a time; as many as there are directories if not set.",
	},
	{
		Name: "producer.id.expiration.ms", Type: Int, Default: "86400000", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long the broker remembers an idempotent producer that is silent.",
	},
	{
		Name: "producer.id.expiration.check.interval.ms", Type: Int, Default: "600000", Allowed: atLeast(1), Internal: true,
		Support: Acted,
		Doc:     "How often forgotten producers are looked for.",
	},
	{
		Name: "log.cleaner.enable", Type: Boolean, Default: "true",
		Support: Acted,
		Doc:     "Whether compaction runs.",
	},
	{
		Name: "log.cleaner.threads", Type: Int, Default: "1", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many threads compact.",
	},
	{
		Name: "log.cleaner.backoff.ms", Type: Long, Default: "15000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long a cleaner sleeps when there is nothing to compact.",
	},
	{
		Name: "log.cleaner.dedupe.buffer.size", Type: Long, Default: "134217728", Mode: ClusterWide,
		Support: Acted,
		Doc:     "The memory in which cleaners remember keys.",
	},
	{
		Name: "log.cleaner.io.buffer.size", Type: Int, Default: "524288", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "The memory cleaners read and write through.",
	},
	{
		Name: "log.cleaner.io.buffer.load.factor", Type: Double, Default: "0.9", Mode: ClusterWide,
		Support: Acted,
		Doc:     "How full the cleaners' memory of keys may become.",
	},
	{
		Name: "log.cleaner.io.max.bytes.per.second", Type: Double, Default: "1.7976931348623157E308", Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many bytes a second cleaners read and write together.",
	},
	{
		Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: "0.5", Allowed: between(0, 1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How much of a log must be uncompacted before it is compacted.",
	},
	{
		Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: "0", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long a record stays uncompacted at least.",
	},
	{
		Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long a record stays uncompacted at most.",
	},
	{
		Name: "log.cleaner.delete.retention.ms", Type: Long, Default: "86400000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long a compacted log keeps the markers of deletion.",
	},
}
