package config

// ownRows: properties of Ottla's own. Apache Kafka knows none of them, and
// describes them, where they are given, as unknown keys.
var ownRows = []Row{
	{
		Name: "ottla.auto.format", Type: Boolean, Default: "true", Support: Acted,
		Doc: "Whether empty directories are formatted by serve itself when this node is the only voter.",
	},
	{
		Name: "ottla.request.memory.bytes", Type: Long, Default: "268435456", Allowed: atLeast(1 << 20), Support: Acted,
		Doc: "How much memory the requests of clients may hold at once, where queued.max.request.bytes sets no bound.",
	},
	{
		Name: "ottla.cluster.memory.bytes", Type: Long, Default: "67108864", Allowed: atLeast(1 << 20), Support: Acted,
		Doc: "How much memory the requests of other nodes may hold at once, apart from those of clients.",
	},
	{
		Name: "ottla.open.files.max", Type: Int, Default: "1024", Allowed: atLeast(16), Support: Acted,
		Doc: "How many files of logs are kept open at once.",
	},
}
