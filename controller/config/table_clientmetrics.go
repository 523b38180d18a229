package config

// clientMetricsRows: client metrics subscriptions.
var clientMetricsRows = []Row{
	{
		Name: "metrics", Type: List,
		Support: Harmless,
		Doc:     "The prefixes of the metrics that clients are asked for; * is all.",
	},
	{
		Name: "interval.ms", Type: Int, Default: "300000",
		Support: Harmless,
		Doc:     "How often clients push the metrics.",
	},
	{
		Name: "match", Type: List,
		Support: Harmless,
		Doc:     "Which clients are meant, as name=pattern pairs.",
	},
}
