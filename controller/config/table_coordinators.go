package config

// coordinatorRows: group, transaction and share coordinators.
var coordinatorRows = []Row{
	{
		Name: "offset.metadata.max.bytes", Type: Int, Default: "4096",
		Support: Acted,
		Doc:     "The most bytes of text a client may attach to a committed offset.",
	},
	{
		Name: "offsets.load.buffer.size", Type: Int, Default: "5242880", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many bytes at once are read when committed offsets are loaded.",
	},
	{
		Name: "offsets.topic.replication.factor", Type: Short, Default: "3", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many replicas the topic of committed offsets gets.",
	},
	{
		Name: "offsets.topic.num.partitions", Type: Int, Default: "50", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many partitions the topic of committed offsets gets; it must not change afterwards.",
	},
	{
		Name: "offsets.topic.segment.bytes", Type: Int, Default: "104857600", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The segment size of the topic of committed offsets.",
	},
	{
		Name: "offsets.topic.compression.codec", Type: Int, Default: "0", Allowed: between(0, 4),
		Support: Acted,
		Doc:     "The codec of the topic of committed offsets, as a number.",
	},
	{
		Name: "offsets.retention.minutes", Type: Int, Default: "10080", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How long the offsets of an empty group are kept.",
	},
	{
		Name: "offsets.retention.check.interval.ms", Type: Long, Default: "600000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often offsets that are too old are looked for.",
	},
	{
		Name: "offsets.commit.timeout.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How long the commit of offsets waits for their replicas.",
	},
	{
		Name: "group.min.session.timeout.ms", Type: Int, Default: "6000",
		Support: Acted,
		Doc:     "The shortest session timeout a member of a classic group may ask for.",
	},
	{
		Name: "group.max.session.timeout.ms", Type: Int, Default: "1800000",
		Support: Acted,
		Doc:     "The longest session timeout a member of a classic group may ask for.",
	},
	{
		Name: "group.initial.rebalance.delay.ms", Type: Int, Default: "3000",
		Support: Acted,
		Doc:     "How long a classic group that was empty waits for more members.",
	},
	{
		Name: "group.max.size", Type: Int, Default: "2147483647", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many members a classic group may have.",
	},
	{
		Name: "group.coordinator.rebalance.protocols", Type: List, Default: "classic,consumer,streams", Allowed: someOf("consumer", "classic", "share", "streams"),
		Support: Acted,
		Doc:     "Which kinds of groups are served; classic groups always are, share and streams groups not yet.",
	},
	{
		Name: "group.coordinator.append.linger.ms", Type: Int, Default: "-1", Allowed: atLeast(-1),
		Support: Harmless,
		Doc:     "How long the group coordinator gathers records before it writes them; -1 lets it choose.",
	},
	{
		Name: "group.coordinator.threads", Type: Int, Default: "4", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many partitions of committed offsets the group coordinator loads at the same time.",
	},
	{
		Name: "group.coordinator.background.threads", Type: Int, Default: "2", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many threads compute assignments for the group coordinator.",
	},
	{
		Name: "group.coordinator.cached.buffer.max.bytes", Type: Int, Default: "1048588", Allowed: atLeast(524288), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How large a buffer the group coordinator keeps for its next write.",
	},
	{
		Name: "group.consumer.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "After how much silence a member leaves its consumer group.",
	},
	{
		Name: "group.consumer.min.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The shortest session timeout a consumer group may be given.",
	},
	{
		Name: "group.consumer.max.session.timeout.ms", Type: Int, Default: "60000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The longest session timeout a consumer group may be given.",
	},
	{
		Name: "group.consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often a member of a consumer group sends its heartbeat.",
	},
	{
		Name: "group.consumer.min.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The shortest heartbeat interval a consumer group may be given.",
	},
	{
		Name: "group.consumer.max.heartbeat.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The longest heartbeat interval a consumer group may be given.",
	},
	{
		Name: "group.consumer.max.size", Type: Int, Default: "2147483647", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many members a consumer group may have.",
	},
	{
		Name: "group.consumer.assignors", Type: List, Default: "uniform,range", Allowed: someOf("uniform", "range"),
		Support: Acted,
		Doc:     "The assignors of consumer groups; the first is the default.",
	},
	{
		Name: "group.consumer.migration.policy", Type: String, Default: "bidirectional", Allowed: oneOfFold("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
		Support: Acted,
		Doc:     "Whether groups may change between the classic and the consumer protocol.",
	},
	{
		Name: "group.consumer.regex.refresh.interval.ms", Type: Int, Default: "600000", Allowed: atLeast(10000), Internal: true,
		Support: Acted,
		Doc:     "How often subscriptions by pattern are matched with the topics anew.",
	},
	{
		Name: "group.consumer.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How long at least lies between two assignments of a consumer group.",
	},
	{
		Name: "group.consumer.min.assignment.interval.ms", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The shortest assignment interval a consumer group may be given.",
	},
	{
		Name: "group.consumer.max.assignment.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The longest assignment interval a consumer group may be given.",
	},
	{
		Name: "group.consumer.assignor.offload.enable", Type: Boolean, Default: "true", Mode: ClusterWide, Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of consumer groups are computed in the background.",
	},
	{
		Name: "group.share.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "After how much silence a member leaves its share group.",
	},
	{
		Name: "group.share.min.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The shortest session timeout a share group may be given.",
	},
	{
		Name: "group.share.max.session.timeout.ms", Type: Int, Default: "60000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The longest session timeout a share group may be given.",
	},
	{
		Name: "group.share.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often a member of a share group sends its heartbeat.",
	},
	{
		Name: "group.share.min.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The shortest heartbeat interval a share group may be given.",
	},
	{
		Name: "group.share.max.heartbeat.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The longest heartbeat interval a share group may be given.",
	},
	{
		Name: "group.share.max.size", Type: Int, Default: "200", Allowed: between(1, 1000),
		Support: Harmless,
		Doc:     "How many members a share group may have.",
	},
	{
		Name: "group.share.assignors", Type: List, Default: "simple", Allowed: someOf("simple"),
		Support: Harmless,
		Doc:     "The assignor of share groups.",
	},
	{
		Name: "group.share.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How long at least lies between two assignments of a share group.",
	},
	{
		Name: "group.share.min.assignment.interval.ms", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "The shortest assignment interval a share group may be given.",
	},
	{
		Name: "group.share.max.assignment.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "The longest assignment interval a share group may be given.",
	},
	{
		Name: "group.share.assignor.offload.enable", Type: Boolean, Default: "true", Mode: ClusterWide, Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of share groups are computed in the background.",
	},
	{
		Name: "group.share.initialize.retry.interval.ms", Type: Int, Default: "30000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often the set-up of a share group's state is tried again.",
	},
	{
		Name: "group.share.delivery.count.limit", Type: Int, Default: "5", Allowed: between(2, 10),
		Support: Harmless,
		Doc:     "How often a record is delivered to a share group before it is given up.",
	},
	{
		Name: "group.share.min.delivery.count.limit", Type: Int, Default: "2", Allowed: between(2, 5),
		Support: Harmless,
		Doc:     "The fewest deliveries a share group may be given.",
	},
	{
		Name: "group.share.max.delivery.count.limit", Type: Int, Default: "10", Allowed: between(5, 25),
		Support: Harmless,
		Doc:     "The most deliveries a share group may be given.",
	},
	{
		Name: "group.share.partition.max.record.locks", Type: Int, Default: "2000", Allowed: between(100, 10000),
		Support: Harmless,
		Doc:     "How many records of a partition a share group may have under way.",
	},
	{
		Name: "group.share.min.partition.max.record.locks", Type: Int, Default: "100", Allowed: between(100, 2000),
		Support: Harmless,
		Doc:     "The fewest records under way a share group may be given.",
	},
	{
		Name: "group.share.max.partition.max.record.locks", Type: Int, Default: "4000", Allowed: between(2000, 10000),
		Support: Harmless,
		Doc:     "The most records under way a share group may be given.",
	},
	{
		Name: "group.share.record.lock.duration.ms", Type: Int, Default: "30000", Allowed: between(1000, 3600000),
		Support: Harmless,
		Doc:     "How long a member has a record before it is given to another.",
	},
	{
		Name: "group.share.min.record.lock.duration.ms", Type: Int, Default: "15000", Allowed: between(1000, 30000),
		Support: Harmless,
		Doc:     "The shortest hold on a record a share group may be given.",
	},
	{
		Name: "group.share.max.record.lock.duration.ms", Type: Int, Default: "60000", Allowed: between(30000, 3600000),
		Support: Harmless,
		Doc:     "The longest hold on a record a share group may be given.",
	},
	{
		Name: "group.share.max.share.sessions", Type: Int, Default: "2000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many share sessions are kept at once.",
	},
	{
		Name: "group.share.persister.class.name", Type: String, Default: "org.apache.kafka.server.share.persister.DefaultStatePersister", Internal: true,
		Support: Harmless,
		Doc:     "The class that keeps the state of share groups.",
	},
	{
		Name: "group.share.dlq.manager.class.name", Type: String, Default: "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", Internal: true,
		Support: Harmless,
		Doc:     "The class that writes dead-letter queues of share groups.",
	},
	{
		Name: "errors.deadletterqueue.auto.create.topics.enable", Type: Boolean, Default: "false", Mode: ClusterWide,
		Support: Harmless,
		Doc:     "Whether topics for dead letters of share groups come into being by themselves.",
	},
	{
		Name: "errors.deadletterqueue.topic.name.prefix", Type: String, Default: "dlq.", Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How the names of topics for dead letters must begin.",
	},
	{
		Name: "group.streams.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "After how much silence a member leaves its streams group.",
	},
	{
		Name: "group.streams.min.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The shortest session timeout a streams group may be given.",
	},
	{
		Name: "group.streams.max.session.timeout.ms", Type: Int, Default: "60000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The longest session timeout a streams group may be given.",
	},
	{
		Name: "group.streams.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often a member of a streams group sends its heartbeat.",
	},
	{
		Name: "group.streams.min.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The shortest heartbeat interval a streams group may be given.",
	},
	{
		Name: "group.streams.max.heartbeat.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The longest heartbeat interval a streams group may be given.",
	},
	{
		Name: "group.streams.max.size", Type: Int, Default: "2147483647", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many members a streams group may have.",
	},
	{
		Name: "group.streams.assignors", Type: List, Default: "sticky", Allowed: someOf("sticky"),
		Support: Harmless,
		Doc:     "The assignors of streams groups; the first is the default.",
	},
	{
		Name: "group.streams.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How long at least lies between two assignments of a streams group.",
	},
	{
		Name: "group.streams.min.assignment.interval.ms", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "The shortest assignment interval a streams group may be given.",
	},
	{
		Name: "group.streams.max.assignment.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "The longest assignment interval a streams group may be given.",
	},
	{
		Name: "group.streams.assignor.offload.enable", Type: Boolean, Default: "true", Mode: ClusterWide, Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of streams groups are computed in the background.",
	},
	{
		Name: "group.streams.initial.rebalance.delay.ms", Type: Int, Default: "3000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How long a streams group that was empty waits for more members.",
	},
	{
		Name: "group.streams.num.standby.replicas", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How many spare copies of a task's state a streams group keeps.",
	},
	{
		Name: "group.streams.max.standby.replicas", Type: Int, Default: "2", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "The most spare copies a streams group may be given.",
	},
	{
		Name: "group.streams.num.warmup.replicas", Type: Int, Default: "2", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "How many copies of state a streams group may be building up at once.",
	},
	{
		Name: "group.streams.max.warmup.replicas", Type: Int, Default: "20", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "The most copies under construction a streams group may be given.",
	},
	{
		Name: "group.streams.acceptable.recovery.lag", Type: Long, Default: "10000", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "How far behind a copy of state may be and still count as caught up.",
	},
	{
		Name: "group.streams.rack.aware.assignment.tags", Type: List, Allowed: distinctTags(),
		Support: Harmless,
		Doc:     "The client tags over which copies of state are spread.",
	},
	{
		Name: "group.streams.task.offset.interval.ms", Type: Int, Default: "60000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often members of a streams group report how far their tasks are.",
	},
	{
		Name: "group.streams.min.task.offset.interval.ms", Type: Int, Default: "15000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "The shortest interval of those reports a streams group may be given.",
	},
	{
		Name: "group.streams.topology.description.plugin.class", Type: Class, Default: Null,
		Support: Harmless,
		Doc:     "A plug-in that is told the topologies of streams groups.",
	},
	{
		Name: "transaction.max.timeout.ms", Type: Int, Default: "900000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The longest transaction timeout a producer may ask for.",
	},
	{
		Name: "transactional.id.expiration.ms", Type: Int, Default: "604800000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How long a transactional id is remembered after its last transaction.",
	},
	{
		Name: "transaction.state.log.replication.factor", Type: Short, Default: "3", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many replicas the topic of transactions gets.",
	},
	{
		Name: "transaction.state.log.num.partitions", Type: Int, Default: "50", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many partitions the topic of transactions gets; it must not change afterwards.",
	},
	{
		Name: "transaction.state.log.min.isr", Type: Int, Default: "2", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many replicas of the topic of transactions must have a record.",
	},
	{
		Name: "transaction.state.log.segment.bytes", Type: Int, Default: "104857600", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The segment size of the topic of transactions.",
	},
	{
		Name: "transaction.state.log.load.buffer.size", Type: Int, Default: "5242880", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many bytes at once are read when transactions are loaded.",
	},
	{
		Name: "transaction.abort.timed.out.transaction.cleanup.interval.ms", Type: Int, Default: "10000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often transactions that took too long are looked for and aborted.",
	},
	{
		Name: "transaction.remove.expired.transaction.cleanup.interval.ms", Type: Int, Default: "3600000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often forgotten transactional ids are looked for.",
	},
	{
		Name: "transaction.partition.verification.enable", Type: Boolean, Default: "true", Mode: ClusterWide,
		Support: Acted,
		Doc:     "Whether a partition is checked to be part of the transaction that writes to it.",
	},
	{
		Name: "transaction.two.phase.commit.enable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether producers may take part in commits that another system decides.",
	},
	{
		Name: "add.partitions.to.txn.retry.backoff.ms", Type: Int, Default: "20", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The pause before a failed check of a transaction is tried again.",
	},
	{
		Name: "add.partitions.to.txn.retry.backoff.max.ms", Type: Int, Default: "100", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "The longest time such checks are tried again.",
	},
	{
		Name: "share.coordinator.state.topic.num.partitions", Type: Int, Default: "50", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many partitions the topic of share groups' state gets; it must not change afterwards.",
	},
	{
		Name: "share.coordinator.state.topic.replication.factor", Type: Short, Default: "3", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many replicas the topic of share groups' state gets.",
	},
	{
		Name: "share.coordinator.state.topic.min.isr", Type: Short, Default: "2", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many replicas of the topic of share groups' state must have a record.",
	},
	{
		Name: "share.coordinator.state.topic.segment.bytes", Type: Int, Default: "104857600", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The segment size of the topic of share groups' state.",
	},
	{
		Name: "share.coordinator.state.topic.compression.codec", Type: Int, Default: "0", Allowed: between(0, 4),
		Support: Harmless,
		Doc:     "The codec of the topic of share groups' state, as a number.",
	},
	{
		Name: "share.coordinator.state.topic.prune.interval.ms", Type: Int, Default: "300000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often the topic of share groups' state is cut at its old end.",
	},
	{
		Name: "share.coordinator.load.buffer.size", Type: Int, Default: "5242880", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many bytes at once are read when share groups' state is loaded.",
	},
	{
		Name: "share.coordinator.threads", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many threads the share coordinator has.",
	},
	{
		Name: "share.coordinator.append.linger.ms", Type: Int, Default: "-1", Allowed: atLeast(-1),
		Support: Harmless,
		Doc:     "How long the share coordinator gathers records before it writes them; -1 lets it choose.",
	},
	{
		Name: "share.coordinator.cached.buffer.max.bytes", Type: Int, Default: "1048588", Allowed: atLeast(524288), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How large a buffer the share coordinator keeps for its next write.",
	},
	{
		Name: "share.coordinator.write.timeout.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long a write of share groups' state waits for its replicas.",
	},
	{
		Name: "share.coordinator.snapshot.update.records.per.snapshot", Type: Int, Default: "500", Allowed: between(0, 500),
		Support: Harmless,
		Doc:     "How many changes of a share group's state lie between two full copies.",
	},
	{
		Name: "share.coordinator.cold.partition.snapshot.interval.ms", Type: Int, Default: "300000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often the state of share groups that rest is written in full.",
	},
}
