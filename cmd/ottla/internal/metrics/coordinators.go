package metrics

import (
	"time"

	"ottla/controller/shard"
)

// What the coordinators do beside their groups. The load times are those of the last minute, and absent where nothing was loaded, as
// Apache Kafka's sensors say NaN then.
var (
	groupLoadAverage = gauge("kafka_server_group_coordinator_metrics_partition_load_time_avg", "Milliseconds that the loads of partitions of __consumer_offsets took in the last minute, on average.")
	groupLoadMost    = gauge("kafka_server_group_coordinator_metrics_partition_load_time_max", "The most of these.")
	txnLoadAverage   = gauge("kafka_server_transaction_coordinator_metrics_partition_load_time_avg", "Milliseconds that the loads of partitions of __transaction_state took in the last minute, on average.")
	txnLoadMost      = gauge("kafka_server_transaction_coordinator_metrics_partition_load_time_max", "The most of these.")
	txnPartitions    = gauge("ottla_transaction_coordinator_partitions", "Partitions of __transaction_state that this node coordinates.", "state")
	txnEnding        = gauge("ottla_transactions_ending", "Transactions whose markers are being written.")
	txnUnreached     = gauge("kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize", "Partitions that have no marker yet and whose leader was not reached.")
	txnUnreported    = gauge("kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize", "Transactions whose markers are written and whose end could not be noted yet.")
	txnUnverified    = count("kafka_server_addpartitionstotxnmanager_verificationfailurerate", "Partitions that a producer wanted to write to and that could not be made, or were not, part of its transaction.")
	lateTransactions = gauge("kafka_server_replicamanager_partitionswithlatetransactionscount", "Partitions that this node leads whose last stable offset is held by a transaction five minutes beyond the longest timeout.")
)

// lateAfter is how long beyond transaction.max.timeout.ms a transaction is late (ProducerStateManager.LATE_TRANSACTION_BUFFER_MS).
const lateAfter = 5 * time.Minute

func (c *Collector) collectCoordinators(p page, now time.Time) {
	loadTimes(p, c.source.Groups, now, groupLoadAverage, groupLoadMost)
	limit := time.Duration(c.source.Config.Int("transaction.max.timeout.ms")) * time.Millisecond
	p.put(lateTransactions, float64(c.source.Replicas.LateTransactions(now.Add(-limit-lateAfter))))
	if c.source.Transactions == nil {
		return
	}
	loadTimes(p, c.source.Transactions, now, txnLoadAverage, txnLoadMost)
	loading, active, failed := c.source.Transactions.Counts()
	p.put(txnPartitions, float64(loading), "loading")
	p.put(txnPartitions, float64(active), "active")
	p.put(txnPartitions, float64(failed), "failed")
	counts := c.source.Markers.Counts()
	p.put(txnEnding, float64(counts.Transactions))
	p.put(txnUnreached, float64(counts.Unreached))
	p.put(txnUnreported, float64(counts.Unreported))
	p.put(txnUnverified, float64(c.source.Additions.Failed()))
}

func loadTimes(p page, of *shard.Manager, now time.Time, average, most *family) {
	if a, m, ok := of.LoadTimes(now); ok {
		p.put(average, float64(a.Microseconds())/1000)
		p.put(most, float64(m.Microseconds())/1000)
	}
}
