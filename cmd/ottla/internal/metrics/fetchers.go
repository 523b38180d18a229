package metrics

import (
	"fmt"
	"time"

	"ottla/protocol"
	"ottla/storage/fetcher"
	"ottla/storage/replica"
)

// What replicas here copy, from leaders and between log directories. The clientId is that of Apache Kafka's threads.
var (
	followerMaxLag  = gauge("kafka_server_replicafetchermanager_maxlag", "Records by which the replica that is furthest behind its leader is behind, as of the leaders' last answers.", "clientId")
	followerMinRate = gauge("kafka_server_replicafetchermanager_minfetchrate", "Fetches a second of the slowest of those that fetch from a leader, as a one-minute rate; 0 where nothing is fetched.", "clientId")
	followerFailed  = gauge("kafka_server_replicafetchermanager_failedpartitionscount", "Partitions that are not fetched any more because their log directory here failed.", "clientId")
	followerLag     = gauge("kafka_server_fetcherlagmetrics_consumerlag", "Records by which a replica here is behind its leader, as of the leader's last answer.", "clientId", "topic", "partition")
	moveMaxLag      = gauge("kafka_server_replicaalterlogdirsmanager_maxlag", "Records that the replica has still to copy that has most to copy to another log directory.", "clientId")
)

// collectFetchers tells what is copied; detailed: of each partition, too.
func (c *Collector) collectFetchers(p page, now time.Time, local []replica.Description, detailed bool) {
	var stats fetcher.Stats
	if c.source.Fetchers != nil {
		stats = c.source.Fetchers.Stats(now)
	}
	p.put(followerMaxLag, float64(stats.MaxLag), "Replica")
	p.put(followerMinRate, stats.MinRate, "Replica")
	p.put(followerFailed, float64(stats.Failed), "Replica")
	p.put(moveMaxLag, float64(c.moveLag(local)), "ReplicaAlterLogDirs")
	if !detailed || c.source.Fetchers == nil {
		return
	}
	for _, lag := range c.source.Fetchers.Lags() {
		thread := fmt.Sprintf("ReplicaFetcherThread-%d-%d", lag.Fetcher, lag.Leader)
		p.put(followerLag, float64(lag.Records), thread, lag.Partition.Topic, number(lag.Partition.Partition))
	}
}

// moveLag is the most that a future log has still to get.
func (c *Collector) moveLag(local []replica.Description) (most protocol.Offset) {
	futures := map[protocol.TopicPartition]protocol.Offset{}
	for _, future := range c.source.Store.Futures() {
		futures[future.Partition] = future.Log.View().LogEndOffset
	}
	for i := range local {
		if end, moving := futures[local[i].Partition]; moving {
			most = max(most, local[i].HighWatermark-end)
		}
	}
	return most
}
