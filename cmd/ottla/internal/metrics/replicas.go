package metrics

import (
	"os"
	"strconv"
	"strings"

	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/traffic"
)

var (
	bytesIn         = topicCounter("kafka_server_brokertopicmetrics_bytesin_total", "Bytes appended; without a label: of all topics.")
	bytesOut        = topicCounter("kafka_server_brokertopicmetrics_bytesout_total", "Bytes given to consumers; without a label: of all topics.")
	bytesRejected   = topicCounter("kafka_server_brokertopicmetrics_bytesrejected_total", "Bytes of batches that were larger than allowed; without a label: of all topics.")
	messagesIn      = topicCounter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended; without a label: of all topics.")
	produceRequests = topicCounter("kafka_server_brokertopicmetrics_totalproducerequests_total", "Batches to be appended; without a label: of all topics.")
	produceFailed   = topicCounter("kafka_server_brokertopicmetrics_failedproducerequests_total", "Batches refused; without a label: of all topics.")
	fetchRequests   = topicCounter("kafka_server_brokertopicmetrics_totalfetchrequests_total", "Partitions read; without a label: of all topics.")
	fetchFailed     = topicCounter("kafka_server_brokertopicmetrics_failedfetchrequests_total", "Partitions that could not be read; without a label: of all topics.")
	replicatedIn    = counter("kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes copied from leaders.")
	replicatedOut   = counter("kafka_server_brokertopicmetrics_replicationbytesout_total", "Bytes given to followers.")

	partitionCount  = gauge("kafka_server_replicamanager_partitioncount", "Partitions on this node.")
	leaderCount     = gauge("kafka_server_replicamanager_leadercount", "Partitions that this node leads.")
	offlineCount    = gauge("kafka_server_replicamanager_offlinereplicacount", "Partitions here that are out of reach.")
	underReplicated = gauge("kafka_server_replicamanager_underreplicatedpartitions", "Partitions that this node leads and that lack in-sync replicas.")
	underMinISR     = gauge("kafka_server_replicamanager_underminisrpartitioncount", "Of those, with fewer than min.insync.replicas.")
	atMinISR        = gauge("kafka_server_replicamanager_atminisrpartitioncount", "Of those, with exactly min.insync.replicas.")

	isrShrinks = counter("kafka_server_replicamanager_isrshrinks_total", "Times that the controller took members of an ISR out as leaders here asked for.")
	isrExpands = counter("kafka_server_replicamanager_isrexpands_total", "Times that it let members in.")
	isrFailed  = counter("kafka_server_replicamanager_failedisrupdates_total", "Times that it refused.")

	partitionUnderReplicated = gauge("kafka_cluster_partition_underreplicated", "1 if this node leads the partition and it lacks in-sync replicas.", "topic", "partition")
	partitionUnderMinISR     = gauge("kafka_cluster_partition_underminisr", "1 if it has fewer than min.insync.replicas.", "topic", "partition")
	partitionAtMinISR        = gauge("kafka_cluster_partition_atminisr", "1 if it has exactly min.insync.replicas.", "topic", "partition")
	partitionReplicas        = gauge("kafka_cluster_partition_replicascount", "Replicas, where this node leads; else 0.", "topic", "partition")
	partitionISR             = gauge("kafka_cluster_partition_insyncreplicascount", "In-sync replicas, where this node leads; else 0.", "topic", "partition")
	partitionStableLag       = gauge("kafka_cluster_partition_laststableoffsetlag", "Records between the last stable offset and the high watermark.", "topic", "partition")

	logSize     = gauge("kafka_log_log_size", "Bytes.", "topic", "partition")
	logEnd      = gauge("kafka_log_log_logendoffset", "The offset that the next record gets.", "topic", "partition")
	logStart    = gauge("kafka_log_log_logstartoffset", "The first offset that can be read.", "topic", "partition")
	logSegments = gauge("kafka_log_log_numlogsegments", "Segments.", "topic", "partition")

	directoriesOffline = gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.")
	directoryOffline   = gauge("kafka_log_logmanager_logdirectoryoffline", "1 if the log directory failed.", "logdirectory")

	diskRead    = gauge("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes that this process had read from disks.")
	diskWritten = gauge("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes that this process had written to disks.")
)

func (c *Collector) collectTraffic(p page) {
	c.source.Replicas.EachTraffic(func(topic string, t *traffic.Counters) {
		put := func(of perTopic, value int64) {
			if topic == "" {
				p.put(of.all, float64(value))
			} else {
				p.put(of.one, float64(value), topic)
			}
		}
		put(bytesIn, t.BytesIn.Load())
		put(bytesOut, t.BytesOut.Load())
		put(bytesRejected, t.BytesRejected.Load())
		put(messagesIn, t.MessagesIn.Load())
		put(produceRequests, t.ProduceRequests.Load())
		put(produceFailed, t.ProduceFailed.Load())
		put(fetchRequests, t.FetchRequests.Load())
		put(fetchFailed, t.FetchFailed.Load())
		if topic == "" {
			p.put(replicatedIn, float64(t.ReplicatedIn.Load()))
			p.put(replicatedOut, float64(t.ReplicatedOut.Load()))
		}
	})
}

// health is how a partition that this node leads stands; all false elsewhere.
type health struct{ leads, underReplicated, underMin, atMin bool }

func healthOf(view *partition.View) health {
	if view.Role != partition.Leader {
		return health{}
	}
	isr := len(view.ISR)
	return health{true, isr < len(view.Replicas), isr < view.MinISR, isr == view.MinISR}
}

func (c *Collector) collectReplicas(p page, local []replica.Description) {
	var leaders, offline, lacking, under, at int
	for i := range local {
		h := healthOf(local[i].View)
		leaders += int(oneIf(h.leads))
		lacking += int(oneIf(h.underReplicated))
		under += int(oneIf(h.underMin))
		at += int(oneIf(h.atMin))
		offline += int(oneIf(local[i].View.Role == partition.Offline))
	}
	p.put(partitionCount, float64(len(local)))
	p.put(leaderCount, float64(leaders))
	p.put(offlineCount, float64(offline))
	p.put(underReplicated, float64(lacking))
	p.put(underMinISR, float64(under))
	p.put(atMinISR, float64(at))
	var shrinks, expands, failed int64
	if isr := c.source.ISR; isr != nil {
		shrinks, expands, failed = isr.Shrinks.Load(), isr.Expands.Load(), isr.Failed.Load()
	}
	p.put(isrShrinks, float64(shrinks))
	p.put(isrExpands, float64(expands))
	p.put(isrFailed, float64(failed))
}

// collectPartitions makes the series of each partition on this node.
func collectPartitions(p page, local []replica.Description) {
	for i := range local {
		d := &local[i]
		h := healthOf(d.View)
		labels := []string{d.Partition.Topic, number(d.Partition.Partition)}
		p.put(partitionUnderReplicated, oneIf(h.underReplicated), labels...)
		p.put(partitionUnderMinISR, oneIf(h.underMin), labels...)
		p.put(partitionAtMinISR, oneIf(h.atMin), labels...)
		replicas, isr := 0, 0
		if h.leads {
			replicas, isr = len(d.View.Replicas), len(d.View.ISR)
			collectTopicPartition(p, d, h, labels)
		}
		p.put(partitionReplicas, float64(replicas), labels...)
		p.put(partitionISR, float64(isr), labels...)
		p.put(partitionStableLag, float64(d.HighWatermark-d.LastStableOffset), labels...)
		p.put(logSize, float64(d.SizeBytes), labels...)
		p.put(logEnd, float64(d.LogEndOffset), labels...)
		p.put(logStart, float64(d.LogStartOffset), labels...)
		p.put(logSegments, float64(d.Segments), labels...)
	}
}

func (c *Collector) collectDirectories(p page) {
	failed := 0
	for _, directory := range c.source.Store.Directories() {
		offline := directory.Offline != nil
		failed += int(oneIf(offline))
		p.put(directoryOffline, oneIf(offline), directory.Path)
	}
	p.put(directoriesOffline, float64(failed))
}

// collectDisk tells what the kernel counts for this process; nothing where it
// counts nothing.
func collectDisk(p page) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		of := map[string]*family{"read_bytes": diskRead, "write_bytes": diskWritten}[name]
		if n, err := strconv.ParseInt(value, 10, 64); of != nil && err == nil {
			p.put(of, float64(n))
		}
	}
}
