package config

// nodeRows: identity, roles, quorum and cluster metadata.
var nodeRows = []Row{
	{
		Name: "process.roles", Type: List, Default: Required, Allowed: someOf("broker", "controller"),
		Support: Acted,
		Doc:     "What this node is: broker, controller, or both.",
	},
	{
		Name: "node.id", Type: Int, Default: Required, Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The number that names this node in the cluster.",
	},
	{
		Name: "broker.id", Type: Int, Default: "-1",
		Support: Acted,
		Doc:     "The older name of node.id; where both are given they must agree.",
	},
	{
		Name: "broker.rack", Type: String, Default: Null,
		Support: Acted,
		Doc:     "The rack or zone this broker stands in, told to clients and used to spread replicas.",
	},
	{
		Name: "controller.listener.names", Type: List, Default: Required, Allowed: notEmpty(),
		Support: Acted,
		Doc:     "Which listeners belong to the controller; the first is the one this node uses to reach it.",
	},
	{
		Name: "controller.quorum.voters", Type: List, Allowed: quorumVoters(),
		Support: Acted,
		Doc:     "The fixed voters of the metadata quorum, each as id@host:port.",
	},
	{
		Name: "controller.quorum.bootstrap.servers", Type: List, Allowed: bootstrapServers(),
		Support: Acted,
		Doc:     "Where to find the metadata quorum, each as host:port, when its voters are kept in the metadata log.",
	},
	{
		Name: "controller.quorum.auto.join.enable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether a controller that is no voter makes itself one.",
	},
	{
		Name: "controller.quorum.election.timeout.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long a voter waits for an election to be won before it starts another.",
	},
	{
		Name: "controller.quorum.election.backoff.max.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The longest pause before a candidate that lost stands again.",
	},
	{
		Name: "controller.quorum.fetch.timeout.ms", Type: Int, Default: "2000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long a follower fetches in vain, or a leader hears from no majority, before a new election begins.",
	},
	{
		Name: "controller.quorum.request.timeout.ms", Type: Int, Default: "2000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long a node waits for an answer from another member of the quorum.",
	},
	{
		Name: "controller.quorum.retry.backoff.ms", Type: Int, Default: "20", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The pause before a failed request to the quorum is sent again.",
	},
	{
		Name: "controller.quorum.append.linger.ms", Type: Int, Default: "25", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long the quorum's leader gathers records before it writes them together.",
	},
	{
		Name: "controller.quorum.fetch.max.bytes", Type: Int, Default: "1048576", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The most bytes of the metadata log that one fetch of a voter or observer asks for.",
	},
	{
		Name: "controller.quorum.fetch.snapshot.max.bytes", Type: Int, Default: "1048576", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The most bytes of a metadata snapshot that one request brings.",
	},
	{
		Name: "controller.performance.sample.period.ms", Type: Long, Default: "60000", Allowed: atLeast(100), Internal: true,
		Support: Harmless,
		Doc:     "How often the controller reports which kinds of events were slow.",
	},
	{
		Name: "controller.performance.always.log.threshold.ms", Type: Long, Default: "2000", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "An event of the controller that takes longer than this is always logged.",
	},
	{
		Name: "controller.socket.timeout.ms", Type: Int, Default: "30000",
		Support: Harmless,
		Doc:     "How long a broker waits on the connection to the controller.",
	},
	{
		Name: "server.max.startup.time.ms", Type: Long, Default: "9223372036854775807", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "How long a start may take before the node gives up.",
	},
	{
		Name: "initial.broker.registration.timeout.ms", Type: Int, Default: "60000",
		Support: Acted,
		Doc:     "How long a broker tries to register with the controller before it stops.",
	},
	{
		Name: "broker.heartbeat.interval.ms", Type: Int, Default: "2000",
		Support: Acted,
		Doc:     "How often a broker sends its heartbeat to the controller.",
	},
	{
		Name: "broker.session.timeout.ms", Type: Int, Default: "9000",
		Support: Acted,
		Doc:     "How long the controller misses a broker's heartbeat before it fences the broker.",
	},
	{
		Name: "controlled.shutdown.enable", Type: Boolean, Default: "true",
		Support: Harmless,
		Doc:     "Whether a broker that stops first hands its leaderships to others.",
	},
	{
		Name: "metadata.log.dir", Type: String, Default: Null,
		Support: Acted,
		Doc:     "The directory of the metadata log; by default the first of log.dirs.",
	},
	{
		Name: "metadata.log.segment.bytes", Type: Int, Default: "1073741824", Allowed: atLeast(8388608),
		Support: Acted,
		Doc:     "The size at which a new segment of the metadata log begins.",
	},
	{
		Name: "metadata.log.segment.ms", Type: Long, Default: "604800000",
		Support: Acted,
		Doc:     "The age at which a new segment of the metadata log begins.",
	},
	{
		Name: "metadata.max.retention.bytes", Type: Long, Default: "104857600",
		Support: Acted,
		Doc:     "The size the metadata log and its snapshots may reach before old ones are deleted.",
	},
	{
		Name: "metadata.max.retention.ms", Type: Long, Default: "604800000",
		Support: Acted,
		Doc:     "The age at which metadata segments and snapshots that a newer snapshot covers are deleted.",
	},
	{
		Name: "metadata.log.max.record.bytes.between.snapshots", Type: Long, Default: "20971520", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many bytes of new metadata records bring about a snapshot.",
	},
	{
		Name: "metadata.log.max.snapshot.interval.ms", Type: Long, Default: "3600000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long to wait for a snapshot when there are new records but too few for one; 0 is for ever.",
	},
	{
		Name: "metadata.max.idle.interval.ms", Type: Int, Default: "500", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How often the active controller writes a record that says nothing, so that progress can be seen; 0 never.",
	},
	{
		Name: "internal.metadata.log.segment.bytes", Type: Int, Default: Null, Internal: true,
		Support: Acted,
		Doc:     "A segment size of the metadata log below the usual minimum, for tests.",
	},
	{
		Name: "internal.metadata.max.batch.size.in.bytes", Type: Int, Default: "8388608", Internal: true,
		Support: Acted,
		Doc:     "The largest batch the metadata log takes, for tests.",
	},
	{
		Name: "internal.metadata.delete.delay.millis", Type: Long, Default: "60000", Internal: true,
		Support: Acted,
		Doc:     "How long files of the metadata log are kept after they were marked deleted, for tests.",
	},
	{
		Name: "unstable.api.versions.enable", Type: Boolean, Default: "false", Internal: true,
		Support: Harmless,
		Doc:     "Whether versions of the protocol still in development are offered.",
	},
	{
		Name: "unstable.feature.versions.enable", Type: Boolean, Default: "false", Internal: true,
		Support: Harmless,
		Doc:     "Whether feature levels still in development are offered.",
	},
	{
		Name: "config.providers", Type: List, Mode: ClusterWide,
		Support: Refused, Reason: noProviders,
		Doc: "Plug-ins that replace references in values by what is kept elsewhere.",
	},
	{
		Name: "create.topic.policy.class.name", Type: Class, Default: Null,
		Support: Refused, Reason: noPolicies,
		Doc: "A plug-in that may forbid the creation of a topic.",
	},
	{
		Name: "alter.config.policy.class.name", Type: Class, Default: Null,
		Support: Refused, Reason: noPolicies,
		Doc: "A plug-in that may forbid a change of configuration.",
	},
	{
		Name: "auto.create.topics.enable", Type: Boolean, Default: "true",
		Support: Acted,
		Doc:     "Whether a topic that a client asks about comes into being by that.",
	},
	{
		Name: "delete.topic.enable", Type: Boolean, Default: "true",
		Support: Acted,
		Doc:     "Whether topics can be deleted at all.",
	},
	{
		Name: "num.partitions", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many partitions a topic gets that is created without a number of its own.",
	},
	{
		Name: "default.replication.factor", Type: Int, Default: "1",
		Support: Acted,
		Doc:     "How many replicas a topic gets that is created without a number of its own.",
	},
	{
		Name: "auto.leader.rebalance.enable", Type: Boolean, Default: "true",
		Support: Harmless,
		Doc:     "Whether the controller gives leadership back to preferred replicas by itself.",
	},
	{
		Name: "leader.imbalance.check.interval.seconds", Type: Long, Default: "300", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often the controller looks for leaderships to give back.",
	},
	{
		Name: "unclean.leader.election.enable", Type: Boolean, Default: "false", Mode: ClusterWide,
		Support: Harmless,
		Doc:     "Whether a replica that lacks acknowledged records may lead when no other is left.",
	},
	{
		Name: "unclean.leader.election.interval.ms", Type: Long, Default: "300000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often the controller looks for partitions that need an unclean leader.",
	},
}
