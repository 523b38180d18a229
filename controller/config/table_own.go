package config

import "math"

// ownRows: properties of Ottla's own. Apache Kafka knows none of them, and
// describes them, where they are given, as unknown keys.
var ownRows = []Row{
	{
		Name: "ottla.auto.format", Type: Boolean, Default: "true", Support: Acted,
		Doc: "Whether empty directories are formatted by serve itself when this node is the only voter.",
	},
	{
		Name: "ottla.request.memory.bytes", Type: Long, Default: "0", Allowed: between(0, math.MaxInt64), Support: Acted,
		Doc: "How much memory the requests of clients may hold at once, where queued.max.request.bytes sets no bound. 0: an eighth of the memory that the machine or the control group grants, at most 256 MiB.",
	},
	{
		Name: "ottla.decompressed.batch.bytes", Type: Long, Default: "0", Allowed: between(0, math.MaxInt32), Support: Acted,
		Doc: "How much a client's record batch may expand to where it has to be decompressed; a larger one is refused (MESSAGE_TOO_LARGE). 0: a thirty-second of the memory that the machine or the control group grants, at most 1 GiB.",
	},
	{
		Name: "ottla.cluster.memory.bytes", Type: Long, Default: "67108864", Allowed: atLeast(1 << 20), Support: Acted,
		Doc: "How much memory the requests of other nodes may hold at once, apart from those of clients.",
	},
	{
		Name: "ottla.disk.free.bytes", Type: Long, Default: "-1", Allowed: between(-1, math.MaxInt64), Mode: ClusterWide, Support: Acted,
		Doc: "How many bytes must be free on the file system of a log directory for clients to write to it; with fewer they get KAFKA_STORAGE_ERROR, which they retry, until a quarter more is free, while reads, deletions and the commits of groups and transactions go on. -1: a twentieth of the file system, at most 1 GiB. 0: they write until it is full.",
	},
	{
		Name: "ottla.disk.reserve.bytes", Type: Long, Default: "-1", Allowed: between(-1, math.MaxInt64), Mode: ClusterWide, Support: Acted,
		Doc: "How many of these bytes not even groups and transactions may use, so that what is left is for the metadata log and the checkpoints; at most ottla.disk.free.bytes. -1: a quarter of that, at most 64 MiB. 0: they write until it is full.",
	},
	{
		Name: "ottla.disk.timeout.ms", Type: Int, Default: "30000", Allowed: between(0, 3600000), Support: Acted,
		Doc: "How long one operation on a file of a log directory may take. One that has not come back by then, as on a device or a network file system that hangs, takes the directory offline, as an error would; where nothing can go on without the directory, because it is the only one or holds the metadata, the process ends. Less than 1000 counts as that. 0: for ever.",
	},
	{
		Name: "ottla.open.files.max", Type: Int, Default: "1024", Allowed: atLeast(16), Support: Acted,
		Doc: "How many files of logs are kept open at once.",
	},
	{
		Name: "ottla.metrics.listener", Type: String, Default: "", Support: Acted,
		Doc: "The host:port on which metrics for Prometheus, /healthz and /readyz are served; empty: nowhere. The host may be empty, for all addresses.",
	},
	{
		Name: "ottla.metrics.partitions.max", Type: Int, Default: "2000", Allowed: atLeast(0), Support: Acted,
		Doc: "Beyond how many partitions on this node, and beyond how many committed offsets of groups that it coordinates, the metrics have no series of single partitions.",
	},
	{
		Name: "ottla.debug.pprof.listener", Type: String, Default: "", Support: Acted,
		Doc: "The host:port, of this machine's loopback alone, on which profiles of the process are served under /debug/pprof/; empty: nowhere.",
	},
}
