// Package metrics serves what a node counts: Prometheus metrics under /metrics,
// and /healthz and /readyz beside them, on a listener of its own.
//
// It counts nothing itself. Each scrape reads plain counters and published views
// of the layers below, so a node that nobody asks pays a few atomic additions and
// no more. The one thing that is asked for and not read are the groups'
// committed offsets: a group.Survey through the shard, answered among the group's
// other requests, waited for no longer than Source.Patience.
//
// It is not a time series: rates and averages are the scraper's to make, but for
// what Apache Kafka shows as a rate only (MinFetchRate, kept by storage/fetcher). The only
// memory between scrapes are the histograms behind the percentiles (percentiles.go)
// and the timestamps of first unconsumed records (firsts.go).
//
// # Names
//
// They are those that Strimzi's rules for the JMX exporter give Apache Kafka
// 4.4.0's MBeans, those of kafka_exporter for topics and groups, and two of
// kafka-lag-exporter. A count whose MBean is called Count has two names, `…_count`
// and `…_count_total`: exporters before and after 1.0. What Ottla does not measure
// is absent, not zero.
//
// # Invariants
//
//   - A scrape holds no lock while it writes, waits a bounded time, reads a bounded
//     number of bytes from logs, and one is made at a time.
//   - A group's series come from its coordinator and nobody else.
//   - Beyond PartitionsMax partitions no series is labelled with a partition, and
//     ottla_metrics_partition_series is 0.
//
// Package node starts it. Start reading at collector.go.
package metrics
