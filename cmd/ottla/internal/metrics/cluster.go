package metrics

import (
	"net"
	"slices"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/replica"
)

var (
	activeController = gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 if this node is the active controller.")
	activeBrokers    = gauge("kafka_controller_kafkacontroller_activebrokercount", "Registered brokers that are not fenced.")
	fencedBrokers    = gauge("kafka_controller_kafkacontroller_fencedbrokercount", "Registered brokers that are fenced.")
	leavingBrokers   = gauge("kafka_controller_kafkacontroller_controlledshutdownbrokercount", "Brokers in controlled shutdown.")
	globalTopics     = gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
	globalPartitions = gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
	offlineGlobally  = gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions of the cluster without a leader.")
	notPreferred     = gauge("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions of the cluster that another than the preferred replica leads.")
	controllerOffset = gauge("kafka_controller_kafkacontroller_lastappliedrecordoffset", "The offset of the last metadata record that was applied.")
	controllerTime   = gauge("kafka_controller_kafkacontroller_lastappliedrecordtimestamp", "Its timestamp.")
	committedOffset  = gauge("kafka_controller_kafkacontroller_lastcommittedrecordoffset", "The offset of the last metadata record that is committed.")
	brokerOffset     = gauge("kafka_server_brokermetadatametrics_last_applied_record_offset", "The offset of the last metadata record that the broker has applied.")
	brokerTime       = gauge("kafka_server_brokermetadatametrics_last_applied_record_timestamp", "Its timestamp.")

	raftState      = untyped("kafka_server_raftmetrics_current_state", "Where this node stands in the quorum.", "current_state")
	raftLeader     = gauge("kafka_server_raftmetrics_current_leader", "The quorum's leader; -1: not known.")
	raftEpoch      = gauge("kafka_server_raftmetrics_current_epoch", "The quorum's epoch.")
	raftWatermark  = gauge("kafka_server_raftmetrics_high_watermark", "Metadata below is committed.")
	raftLogEnd     = gauge("kafka_server_raftmetrics_log_end_offset", "The offset that the next metadata record gets.")
	raftVoterCount = gauge("kafka_server_raftmetrics_number_of_voters", "Voters.")

	brokerCount = gauge("kafka_brokers", "Brokers of the cluster that are not fenced.")
	brokerInfo  = gauge("kafka_broker_info", "Where a broker is reached by others.", "id", "address")
	topicParts  = gauge("kafka_topic_partitions", "Partitions of a topic; told by the active controller.", "topic")

	topicCurrent     = gauge("kafka_topic_partition_current_offset", "The high watermark; told by the leader, as all of these.", "topic", "partition")
	topicOldest      = gauge("kafka_topic_partition_oldest_offset", "The first offset that can be read.", "topic", "partition")
	topicISR         = gauge("kafka_topic_partition_in_sync_replica", "In-sync replicas.", "topic", "partition")
	topicLeader      = gauge("kafka_topic_partition_leader", "The leader's id.", "topic", "partition")
	topicIsPreferred = gauge("kafka_topic_partition_leader_is_preferred", "1 if the preferred replica leads.", "topic", "partition")
	topicReplicas    = gauge("kafka_topic_partition_replicas", "Replicas.", "topic", "partition")
	topicUnder       = gauge("kafka_topic_partition_under_replicated_partition", "1 if in-sync replicas are lacking.", "topic", "partition")
)

// controllerView is what takes a walk through all partitions. It is kept as long as
// the Image is the same.
type controllerView struct {
	of                    *metadata.Image
	leaderless, misplaced int
}

func (v *controllerView) look(image *metadata.Image) {
	if v.of == image {
		return
	}
	*v = controllerView{of: image}
	for topic := range image.Topics() {
		for _, partition := range topic.Partitions() {
			switch {
			case partition.Leader == protocol.NoNode:
				v.leaderless++
				v.misplaced++
			case len(partition.Replicas) > 0 && partition.Leader != partition.Replicas[0]:
				v.misplaced++
			}
		}
	}
}

func (c *Collector) collectController(p page, image *metadata.Image) {
	status := c.source.Quorum()
	c.controller.look(image)
	var active, fenced, leaving int
	for b := range image.Brokers() {
		active += int(oneIf(!b.Fenced))
		fenced += int(oneIf(b.Fenced))
		leaving += int(oneIf(b.InControlledShutdown))
	}
	applied := image.Provenance()
	p.put(activeController, oneIf(status.Leader == c.source.NodeID))
	p.put(activeBrokers, float64(active))
	p.put(fencedBrokers, float64(fenced))
	p.put(leavingBrokers, float64(leaving))
	p.put(globalTopics, float64(image.TopicCount()))
	p.put(globalPartitions, float64(image.PartitionCount()))
	p.put(offlineGlobally, float64(c.controller.leaderless))
	p.put(notPreferred, float64(c.controller.misplaced))
	p.put(controllerOffset, float64(applied.Offset))
	p.put(controllerTime, float64(applied.TimestampMs))
	p.put(committedOffset, float64(status.HighWatermark-1))
	p.put(brokerOffset, float64(applied.Offset))
	p.put(brokerTime, float64(applied.TimestampMs))
}

func (c *Collector) collectQuorum(p page) {
	status := c.source.Quorum()
	state := "unattached"
	switch status.Leader {
	case c.source.NodeID:
		state = "leader"
	case protocol.NoNode:
	default:
		state = "follower"
	}
	p.put(raftState, 1, state)
	p.put(raftLeader, float64(status.Leader))
	p.put(raftEpoch, float64(status.Epoch))
	p.put(raftWatermark, float64(status.HighWatermark))
	p.put(raftLogEnd, float64(status.LogEnd))
	p.put(raftVoterCount, float64(len(status.Voters)))
}

func (c *Collector) collectCluster(p page, image *metadata.Image) {
	active := 0
	for b := range image.Brokers() {
		active += int(oneIf(!b.Fenced))
		if at := b.Endpoint(c.source.Config.InterBrokerListener); at != nil {
			p.put(brokerInfo, 1, number(b.ID), net.JoinHostPort(at.Host, number(int(at.Port))))
		}
	}
	p.put(brokerCount, float64(active))
	if c.source.Quorum().Leader != c.source.NodeID || image.TopicCount() > c.source.PartitionsMax {
		return
	}
	for topic := range image.Topics() {
		p.put(topicParts, float64(topic.PartitionCount()), topic.Name)
	}
}

// collectTopicPartition makes kafka_exporter's series of a partition that this node
// leads.
func collectTopicPartition(p page, d *replica.Description, h health, labels []string) {
	p.put(topicCurrent, float64(d.HighWatermark), labels...)
	p.put(topicOldest, float64(d.LogStartOffset), labels...)
	p.put(topicISR, float64(len(d.View.ISR)), labels...)
	p.put(topicLeader, float64(d.View.Leader), labels...)
	p.put(topicIsPreferred, oneIf(slices.Index(d.View.Replicas, d.View.Leader) == 0), labels...)
	p.put(topicReplicas, float64(len(d.View.Replicas)), labels...)
	p.put(topicUnder, oneIf(h.underReplicated), labels...)
}
