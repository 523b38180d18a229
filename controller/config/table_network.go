package config

// networkRows: listeners, connections and requests.
var networkRows = []Row{
	{
		Name: "listeners", Type: List, Default: "PLAINTEXT://:9092", Allowed: notEmpty(), Mode: PerBroker,
		Support: Acted,
		Doc:     "The addresses this node listens on, each as NAME://host:port; without a host, all interfaces.",
	},
	{
		Name: "advertised.listeners", Type: List, Default: Null, Allowed: notEmpty(),
		Support: Acted,
		Doc:     "The addresses that clients and other nodes are told to use; by default those of listeners.",
	},
	{
		Name: "listener.security.protocol.map", Type: String, Default: "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Mode: PerBroker,
		Support: Acted,
		Doc:     "Which security protocol each listener name speaks.",
	},
	{
		Name: "inter.broker.listener.name", Type: String, Default: Null,
		Support: Acted,
		Doc:     "The listener over which brokers talk to one another.",
	},
	{
		Name: "security.inter.broker.protocol", Type: String, Default: "PLAINTEXT", Allowed: oneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
		Support: Acted,
		Doc:     "Names the listener between brokers by its protocol, where inter.broker.listener.name is not set.",
	},
	{
		Name: "early.start.listeners", Type: List, Default: Null,
		Support: Harmless,
		Doc:     "Listeners that answer before the authorizer is ready.",
	},
	{
		Name: "socket.send.buffer.bytes", Type: Int, Default: "102400",
		Support: Acted,
		Doc:     "The kernel's send buffer of a connection; -1 leaves it to the system.",
	},
	{
		Name: "socket.receive.buffer.bytes", Type: Int, Default: "102400",
		Support: Acted,
		Doc:     "The kernel's receive buffer of a connection; -1 leaves it to the system.",
	},
	{
		Name: "socket.listen.backlog.size", Type: Int, Default: "50", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many connections may wait to be accepted; Ottla leaves it to the system.",
	},
	{
		Name: "socket.request.max.bytes", Type: Int, Default: "104857600", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "The largest request that is read; a larger one ends the connection.",
	},
	{
		Name: "socket.connection.setup.timeout.ms", Type: Long, Default: "10000",
		Support: Acted,
		Doc:     "How long a connection to another node may take to be set up at the first try.",
	},
	{
		Name: "socket.connection.setup.timeout.max.ms", Type: Long, Default: "30000",
		Support: Acted,
		Doc:     "The longest a connection to another node may take to be set up after many failed tries.",
	},
	{
		Name: "max.connections", Type: Int, Default: "2147483647", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many connections this node, or with a listener's prefix that listener, holds at once.",
	},
	{
		Name: "max.connections.per.ip", Type: Int, Default: "2147483647", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Acted,
		Doc:     "How many connections one address may hold at once.",
	},
	{
		Name: "max.connections.per.ip.overrides", Type: String, Mode: ClusterWide,
		Support: Acted,
		Doc:     "Exceptions to max.connections.per.ip, as host:count with commas between.",
	},
	{
		Name: "max.connection.creation.rate", Type: Int, Default: "2147483647", Allowed: atLeast(0), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How many connections a second a broker or a listener accepts.",
	},
	{
		Name: "connections.max.idle.ms", Type: Long, Default: "600000",
		Support: Acted,
		Doc:     "A connection on which nothing happened for this long is closed; below 0 never.",
	},
	{
		Name: "connection.failed.authentication.delay.ms", Type: Int, Default: "100", Allowed: atLeast(0),
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How long the answer to a failed login is held back.",
	},
	{
		Name: "connections.max.reauth.ms", Type: Long, Default: "0",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How long a login is good for before the client must log in again; 0 for ever.",
	},
	{
		Name: "queued.max.requests", Type: Int, Default: "500", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many requests may wait at once before connections are no longer read.",
	},
	{
		Name: "queued.max.request.bytes", Type: Long, Default: "-1",
		Support: Acted,
		Doc:     "How many bytes of requests may wait at once; -1 leaves it to Ottla's own budget.",
	},
	{
		Name: "request.timeout.ms", Type: Int, Default: "30000",
		Support: Acted,
		Doc:     "How long this node waits for an answer from another.",
	},
	{
		Name: "num.network.threads", Type: Int, Default: "3", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How many threads read and write sockets; Ottla has a goroutine a connection.",
	},
	{
		Name: "num.io.threads", Type: Int, Default: "8", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How many threads handle requests; Ottla has a goroutine a connection.",
	},
	{
		Name: "background.threads", Type: Int, Default: "10", Allowed: atLeast(1), Mode: ClusterWide,
		Support: Harmless,
		Doc:     "How many threads do background work; Ottla sizes its own pools.",
	},
	{
		Name: "fetch.max.bytes", Type: Int, Default: "57671680", Allowed: atLeast(1024),
		Support: Acted,
		Doc:     "The most bytes a fetch brings back, whatever the client asks for.",
	},
	{
		Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Allowed: atLeast(0),
		Support: Acted,
		Doc:     "How many fetch sessions are kept at once.",
	},
	{
		Name: "max.request.partition.size.limit", Type: Int, Default: "2000", Allowed: atLeast(1),
		Support: Acted,
		Doc:     "How many partitions a request that is answered page by page may bring at once.",
	},
	{
		Name: "fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Support: Harmless,
		Doc:     "How many finished fetches may lie about before they are swept up; Ottla removes them at once.",
	},
	{
		Name: "producer.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Support: Harmless,
		Doc:     "How many finished produces may lie about before they are swept up; Ottla removes them at once.",
	},
	{
		Name: "delete.records.purgatory.purge.interval.requests", Type: Int, Default: "1",
		Support: Harmless,
		Doc:     "How many finished deletions of records may lie about before they are swept up; Ottla removes them at once.",
	},
	{
		Name: "share.fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Support: Harmless,
		Doc:     "How many finished share fetches may lie about before they are swept up.",
	},
}
