package config

// groupRows: groups.
var groupRows = []Row{
	{
		Name: "consumer.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "After how much silence a member leaves this consumer group.",
	},
	{
		Name: "consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How often a member of this consumer group sends its heartbeat.",
	},
	{
		Name: "consumer.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How long at least lies between two assignments of this consumer group.",
	},
	{
		Name: "consumer.assignor.offload.enable", Type: Boolean, Default: "true", Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of this consumer group are computed in the background.",
	},
	{
		Name: "errors.deadletterqueue.copy.record.enable", Type: Boolean, Default: "false",
		Support: Harmless,
		Doc:     "Whether a dead letter holds the record itself.",
	},
	{
		Name: "errors.deadletterqueue.topic.name", Type: String,
		Support: Harmless,
		Doc:     "The topic for dead letters of this share group; empty is none.",
	},
	{
		Name: "share.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "After how much silence a member leaves this share group.",
	},
	{
		Name: "share.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often a member of this share group sends its heartbeat.",
	},
	{
		Name: "share.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How long at least lies between two assignments of this share group.",
	},
	{
		Name: "share.assignor.offload.enable", Type: Boolean, Default: "true", Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of this share group are computed in the background.",
	},
	{
		Name: "share.auto.offset.reset", Type: String, Default: "latest", Allowed: shareOffsetReset(),
		Support: Harmless,
		Doc:     "Where this share group begins on a partition that is new to it.",
	},
	{
		Name: "share.delivery.count.limit", Type: Int, Default: "5", Allowed: atLeast(2),
		Support: Harmless,
		Doc:     "How often a record is delivered to this share group before it is given up.",
	},
	{
		Name: "share.isolation.level", Type: String, Default: "read_uncommitted", Allowed: oneOf("read_committed", "read_uncommitted"),
		Support: Harmless,
		Doc:     "Whether this share group sees records of open and aborted transactions.",
	},
	{
		Name: "share.partition.max.record.locks", Type: Int, Default: "2000", Allowed: atLeast(100),
		Support: Harmless,
		Doc:     "How many records of a partition this share group may have under way.",
	},
	{
		Name: "share.record.lock.duration.ms", Type: Int, Default: "30000", Allowed: atLeast(1000),
		Support: Harmless,
		Doc:     "How long a member has a record before it is given to another.",
	},
	{
		Name: "share.renew.acknowledge.enable", Type: Boolean, Default: "true",
		Support: Harmless,
		Doc:     "Whether members may prolong their hold on a record.",
	},
	{
		Name: "streams.session.timeout.ms", Type: Int, Default: "45000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "After how much silence a member leaves this streams group.",
	},
	{
		Name: "streams.heartbeat.interval.ms", Type: Int, Default: "5000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often a member of this streams group sends its heartbeat.",
	},
	{
		Name: "streams.assignment.interval.ms", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How long at least lies between two assignments of this streams group.",
	},
	{
		Name: "streams.assignor.name", Type: String, Default: Null,
		Support: Harmless,
		Doc:     "The assignor of this streams group.",
	},
	{
		Name: "streams.assignor.offload.enable", Type: Boolean, Default: "true", Internal: true,
		Support: Harmless,
		Doc:     "Whether assignments of this streams group are computed in the background.",
	},
	{
		Name: "streams.initial.rebalance.delay.ms", Type: Int, Default: "3000", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How long this streams group waits for more members when it was empty.",
	},
	{
		Name: "streams.num.standby.replicas", Type: Int, Default: "0", Allowed: atLeast(0),
		Support: Harmless,
		Doc:     "How many spare copies of a task's state this streams group keeps.",
	},
	{
		Name: "streams.num.warmup.replicas", Type: Int, Default: "2", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "How many copies of state this streams group may be building up at once.",
	},
	{
		Name: "streams.acceptable.recovery.lag", Type: Long, Default: "10000", Allowed: atLeast(0), Internal: true,
		Support: Harmless,
		Doc:     "How far behind a copy of state may be and still count as caught up.",
	},
	{
		Name: "streams.rack.aware.assignment.tags", Type: List,
		Support: Harmless,
		Doc:     "The client tags over which copies of state are spread.",
	},
	{
		Name: "streams.task.offset.interval.ms", Type: Int, Default: "60000", Allowed: atLeast(1), Internal: true,
		Support: Harmless,
		Doc:     "How often members report how far their tasks are.",
	},
}
