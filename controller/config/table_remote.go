package config

// remoteRows: remote storage of segments.
var remoteRows = []Row{
	{
		Name: "remote.log.storage.system.enable", Type: Boolean, Default: "false",
		Support: Refused, Reason: noRemote,
		Doc: "Whether segments may be moved to remote storage.",
	},
	{
		Name: "log.local.retention.ms", Type: Long, Default: "-2", Allowed: atLeast(-2), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long segments stay on disk once they are in remote storage; -2 is as long as log.retention.ms.",
	},
	{
		Name: "log.local.retention.bytes", Type: Long, Default: "-2", Allowed: atLeast(-2), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many bytes stay on disk once they are in remote storage; -2 is as much as log.retention.bytes.",
	},
	{
		Name: "log.remote.copy.lag.ms", Type: Long, Default: "0", Allowed: atLeast(-1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How old a segment must be before it is copied to remote storage.",
	},
	{
		Name: "log.remote.copy.lag.bytes", Type: Long, Default: "-1", Allowed: atLeast(-1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many newer bytes there must be before a segment is copied to remote storage.",
	},
	{
		Name: "remote.fetch.max.wait.ms", Type: Int, Default: "500", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long a fetch waits for records from remote storage.",
	},
	{
		Name: "remote.list.offsets.request.timeout.ms", Type: Long, Default: "30000", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long the search for an offset in remote storage may take.",
	},
	{
		Name: "remote.log.index.file.cache.total.size.bytes", Type: Long, Default: "1073741824", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How much disk the cached indexes of remote segments may take.",
	},
	{
		Name: "remote.log.index.file.cache.ttl.ms", Type: Long, Default: "900000", Allowed: atLeast(-1), Internal: true,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long a cached index that nobody uses is kept.",
	},
	{
		Name: "remote.log.manager.thread.pool.size", Type: Int, Default: "2", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many threads serve remote partitions, where no finer number is given.",
	},
	{
		Name: "remote.log.manager.copier.thread.pool.size", Type: Int, Default: "10", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many threads copy segments to remote storage.",
	},
	{
		Name: "remote.log.manager.expiration.thread.pool.size", Type: Int, Default: "10", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many threads delete old segments in remote storage.",
	},
	{
		Name: "remote.log.manager.follower.thread.pool.size", Type: Int, Default: "2", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many threads follow remote storage for partitions led elsewhere.",
	},
	{
		Name: "remote.log.manager.copy.max.bytes.per.second", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many bytes a second are copied to remote storage.",
	},
	{
		Name: "remote.log.manager.copy.quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many windows the throttle on those copies remembers.",
	},
	{
		Name: "remote.log.manager.copy.quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long one window of the throttle on those copies is.",
	},
	{
		Name: "remote.log.manager.fetch.max.bytes.per.second", Type: Long, Default: "9223372036854775807", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many bytes a second are read from remote storage.",
	},
	{
		Name: "remote.log.manager.fetch.quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many windows the throttle on those reads remembers.",
	},
	{
		Name: "remote.log.manager.fetch.quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How long one window of the throttle on those reads is.",
	},
	{
		Name: "remote.log.manager.task.interval.ms", Type: Long, Default: "30000", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How often each partition is looked at for segments to copy or delete.",
	},
	{
		Name: "remote.log.manager.task.retry.backoff.ms", Type: Long, Default: "500", Allowed: atLeast(1), Internal: true,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The first pause after remote storage failed.",
	},
	{
		Name: "remote.log.manager.task.retry.backoff.max.ms", Type: Long, Default: "30000", Allowed: atLeast(1), Internal: true,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The longest pause after remote storage failed.",
	},
	{
		Name: "remote.log.manager.task.retry.jitter", Type: Double, Default: "0.2", Allowed: between(0, 0.5), Internal: true,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How much chance plays in those pauses.",
	},
	{
		Name: "remote.log.metadata.custom.metadata.max.bytes", Type: Int, Default: "128", Allowed: atLeast(0),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The most bytes a storage plug-in may attach to a segment.",
	},
	{
		Name: "remote.log.metadata.manager.class.name", Type: String, Default: "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", Allowed: notEmpty(),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The plug-in that remembers which segments are in remote storage.",
	},
	{
		Name: "remote.log.metadata.manager.class.path", Type: String, Default: Null,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "Where that plug-in is loaded from.",
	},
	{
		Name: "remote.log.metadata.manager.impl.prefix", Type: String, Default: "rlmm.config.", Allowed: notEmpty(),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How the properties meant for that plug-in begin.",
	},
	{
		Name: "remote.log.metadata.manager.listener.name", Type: String, Default: Null, Allowed: notEmpty(),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The listener over which that plug-in reaches the broker.",
	},
	{
		Name: "remote.log.storage.manager.class.name", Type: String, Default: Null, Allowed: notEmpty(),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "The plug-in that stores segments remotely.",
	},
	{
		Name: "remote.log.storage.manager.class.path", Type: String, Default: Null,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "Where the storage plug-in is loaded from.",
	},
	{
		Name: "remote.log.storage.manager.impl.prefix", Type: String, Default: "rsm.config.", Allowed: notEmpty(),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How the properties meant for the storage plug-in begin.",
	},
	{
		Name: "remote.log.reader.threads", Type: Int, Default: "10", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many threads read from remote storage.",
	},
	{
		Name: "remote.log.reader.max.pending.tasks", Type: Int, Default: "100", Allowed: atLeast(1),
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "How many reads from remote storage may wait.",
	},
	{
		Name: "follower.fetch.last.tiered.offset.enable", Type: Boolean, Default: "false", Mode: ClusterWide,
		Support: Refused, Use: WithRemote, Reason: noRemote,
		Doc: "Whether an empty follower begins after what is in remote storage.",
	},
}
