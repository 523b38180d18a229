package config

// replicationRows: replication.
var replicationRows = []Row{
	{
		Name: "min.insync.replicas", Type: Int, Default: "1", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many replicas must have a record before acks=all is answered.",
	},
	{
		Name: "replica.lag.time.max.ms", Type: Long, Default: "30000",
		Support: Acted,
		Doc:     "How long a follower may be behind before it leaves the in-sync set.",
	},
	{
		Name: "replica.fetch.max.bytes", Type: Int, Default: "1048576", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The most bytes of one partition that a follower asks for at once.",
	},
	{
		Name: "replica.fetch.min.bytes", Type: Int, Default: "1",
		Support: Acted,
		Doc:     "How many bytes a follower waits for.",
	},
	{
		Name: "replica.fetch.wait.max.ms", Type: Int, Default: "500",
		Support: Acted,
		Doc:     "How long a follower waits for them.",
	},
	{
		Name: "replica.fetch.response.max.bytes", Type: Int, Default: "10485760", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The most bytes a follower asks for at once over all partitions.",
	},
	{
		Name: "replica.fetch.backoff.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The pause of a follower after a failed fetch.",
	},
	{
		Name: "replica.socket.timeout.ms", Type: Int, Default: "30000",
		Support: Acted,
		Doc:     "How long a follower waits on its connection to the leader.",
	},
	{
		Name: "replica.socket.receive.buffer.bytes", Type: Int, Default: "65536",
		Support: Harmless,
		Doc:     "The kernel's receive buffer of a follower's connection.",
	},
	{
		Name: "replica.high.watermark.checkpoint.interval.ms", Type: Long, Default: "5000",
		Support: Acted,
		Doc:     "How often the high watermarks are noted on disk.",
	},
	{
		Name: "replica.selector.class", Type: String, Default: Null,
		Support: Acted,
		Doc:     "Which replica a consumer is told to read from: with org.apache.kafka.common.replica.RackAwareReplicaSelector one in its rack, else the leader.",
	},
	{
		Name: "num.replica.fetchers", Type: Int, Default: "1", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many connections a follower fetches over from each leader.",
	},
	{
		Name: "replication.quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many windows the replication throttle remembers.",
	},
	{
		Name: "replication.quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long one window of the replication throttle is.",
	},
	{
		Name: "alter.log.dirs.replication.quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many windows the throttle on moves between directories remembers.",
	},
	{
		Name: "alter.log.dirs.replication.quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long one window of the throttle on moves between directories is.",
	},
}
