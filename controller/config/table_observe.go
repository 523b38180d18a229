package config

// observeRows: metrics, telemetry and quotas.
var observeRows = []Row{
	{
		Name: "metric.reporters", Type: List, Default: "org.apache.kafka.common.metrics.JmxReporter", Mode: ClusterWide,
		Support: Harmless,
		Doc:     "Java classes that publish metrics; Ottla's come over HTTP.",
	},
	{
		Name: "metrics.num.samples", Type: Int, Default: "2", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many samples a metric is made of.",
	},
	{
		Name: "metrics.sample.window.ms", Type: Long, Default: "30000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long one sample of a metric is.",
	},
	{
		Name: "metrics.recording.level", Type: String, Default: "INFO",
		Support: Harmless,
		Doc:     "How much is measured.",
	},
	{
		Name: "kafka.metrics.reporters", Type: List,
		Support: Harmless,
		Doc:     "Java classes that publish metrics of the older kind.",
	},
	{
		Name: "kafka.metrics.polling.interval.secs", Type: Int, Default: "10", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often those classes are asked to publish.",
	},
	{
		Name: "telemetry.max.bytes", Type: Int, Default: "1048576", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "The most bytes of metrics a client may push at once.",
	},
	{
		Name: "quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many windows client quotas remember.",
	},
	{
		Name: "quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long one window of a client quota is.",
	},
	{
		Name: "controller.quota.window.num", Type: Int, Default: "11", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How many windows quotas on changes of topics remember.",
	},
	{
		Name: "controller.quota.window.size.seconds", Type: Int, Default: "1", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long one window of a quota on changes of topics is.",
	},
	{
		Name: "client.quota.callback.class", Type: Class, Default: Null,
		Support: Refused, Reason: noQuotaPlugins,
		Doc: "A plug-in that decides which quota applies to whom.",
	},
}
