package config

// topicRows: topics.
var topicRows = []Row{
	{
		Name: "cleanup.policy", Type: List, Default: "delete", Allowed: listOf("compact", "delete"),
		Support: Acted,
		Doc:     "What becomes of old segments: delete drops them, compact keeps the last record of a key.",
	},
	{
		Name: "compression.type", Type: String, Default: "producer", Allowed: oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
		Support: Acted,
		Doc:     "The codec the topic is stored with; producer keeps what records came with.",
	},
	{
		Name: "compression.gzip.level", Type: Int, Default: "-1", Allowed: gzipLevel(),
		Support: Acted,
		Doc:     "How hard gzip works when the broker compresses; -1 is gzip's own choice.",
	},
	{
		Name: "compression.lz4.level", Type: Int, Default: "9", Allowed: between(1, 17),
		Support: Acted,
		Doc:     "How hard lz4 works when the broker compresses.",
	},
	{
		Name: "compression.zstd.level", Type: Int, Default: "3", Allowed: between(-131072, 22),
		Support: Acted,
		Doc:     "How hard zstd works when the broker compresses.",
	},
	{
		Name: "delete.retention.ms", Type: Long, Default: "86400000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long a compacted topic keeps the markers of deletion.",
	},
	{
		Name: "errors.deadletterqueue.group.enable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether the topic may take dead letters of share groups.",
	},
	{
		Name: "file.delete.delay.ms", Type: Long, Default: "60000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long the files of a deleted segment stay on disk under another name.",
	},
	{
		Name: "flush.messages", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many records are written before they are forced to disk.",
	},
	{
		Name: "flush.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long records may wait before they are forced to disk.",
	},
	{
		Name: "follower.replication.throttled.replicas", Type: List, Allowed: throttledReplicas(),
		Support: Acted,
		Doc:     "Which replicas are throttled while they follow, as partition:broker, or * for all.",
	},
	{
		Name: "index.interval.bytes", Type: Int, Default: "4096", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How many bytes of records lie between two entries of an index.",
	},
	{
		Name: "internal.segment.bytes", Type: Int, Default: Null, Internal: true,
		Support: Acted,
		Doc:     "A segment size below the usual minimum, for tests.",
	},
	{
		Name: "leader.replication.throttled.replicas", Type: List, Allowed: throttledReplicas(),
		Support: Acted,
		Doc:     "Which replicas are throttled while they lead, as partition:broker, or * for all.",
	},
	{
		Name: "local.retention.bytes", Type: Long, Default: "-2", Allowed: atLeast(-2),
		Support: Harmless,
		Doc:     "How many bytes stay on disk once they are in remote storage; -2 is as much as retention.bytes.",
	},
	{
		Name: "local.retention.ms", Type: Long, Default: "-2", Allowed: atLeast(-2),
		Support: Harmless,
		Doc:     "How long segments stay on disk once they are in remote storage; -2 is as long as retention.ms.",
	},
	{
		Name: "max.compaction.lag.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How long a record stays uncompacted at most.",
	},
	{
		Name: "max.decompressed.message.bytes", Type: Int, Default: "2147483639", Allowed: between(1, 2147483639),
		Support: Acted,
		Doc:     "The largest single record, once unfolded, that is taken from a compressed batch.",
	},
	{
		Name: "max.message.bytes", Type: Int, Default: "1048588", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The largest record batch that is taken, after compression.",
	},
	{
		Name: "message.timestamp.after.max.ms", Type: Long, Default: "3600000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How far a record's time may lie after the broker's clock.",
	},
	{
		Name: "message.timestamp.before.max.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How far a record's time may lie before the broker's clock.",
	},
	{
		Name: "message.timestamp.type", Type: String, Default: "CreateTime", Allowed: oneOf("CreateTime", "LogAppendTime"),
		Support: Acted,
		Doc:     "Whose time a record carries: its producer's, or the broker's at the append.",
	},
	{
		Name: "min.cleanable.dirty.ratio", Type: Double, Default: "0.5", Allowed: between(0, 1),
		Support: Acted,
		Doc:     "How much of the log must be uncompacted before it is compacted.",
	},
	{
		Name: "min.compaction.lag.ms", Type: Long, Default: "0", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long a record stays uncompacted at least.",
	},
	{
		Name: "min.insync.replicas", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many replicas must have a record before acks=all is answered.",
	},
	{
		Name: "preallocate", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether a segment's file gets its full size at once; Ottla's grow as they are written.",
	},
	{
		Name: "remote.copy.lag.bytes", Type: Long, Default: "-1", Allowed: atLeast(-1),
		Support: Harmless,
		Doc:     "How many newer bytes there must be before a segment is copied to remote storage.",
	},
	{
		Name: "remote.copy.lag.ms", Type: Long, Default: "0", Allowed: atLeast(-1),
		Support: Harmless,
		Doc:     "How old a segment must be before it is copied to remote storage.",
	},
	{
		Name: "remote.log.copy.disable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether no more segments are copied to remote storage.",
	},
	{
		Name: "remote.log.delete.on.disable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether the remote copies go when remote storage is turned off for the topic.",
	},
	{
		Name: "remote.storage.enable", Type: Boolean, Default: "false",
		Support: Refused, Reason: noRemote,
		Doc: "Whether the topic's segments are moved to remote storage.",
	},
	{
		Name: "retention.bytes", Type: Long, Default: "-1",
		Support: Acted,
		Doc:     "The size of a partition beyond which its oldest segments are deleted; -1 is none.",
	},
	{
		Name: "retention.ms", Type: Long, Default: "604800000", Allowed: atLeast(-1),
		Support: Acted,
		Doc:     "How long records are kept; -1 is for ever.",
	},
	{
		Name: "segment.bytes", Type: Int, Default: "1073741824", Allowed: atLeast(1048576),
		Support: Acted,
		Doc:     "The size at which a new segment begins.",
	},
	{
		Name: "segment.index.bytes", Type: Int, Default: "10485760", Allowed: atLeast(4),
		Support: Acted,
		Doc:     "The size of an index at which a new segment begins.",
	},
	{
		Name: "segment.jitter.ms", Type: Long, Default: "0", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How much earlier, at random, a segment may be rolled.",
	},
	{
		Name: "segment.ms", Type: Long, Default: "604800000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The age at which a new segment begins.",
	},
	{
		Name: "unclean.leader.election.enable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether a replica that lacks acknowledged records may lead when no other is left.",
	},
}
