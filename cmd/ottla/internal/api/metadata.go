package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/wire"
)

// describeMetadata tells clients which brokers there are and where the partitions
// of topics lie, and begins the creation of topics that are missing.
func describeMetadata(c *call, req *kmsg.MetadataRequest) {
	if err := c.checkMetadata(req); err != nil {
		c.reply(errorResponse(req, err))
		return
	}
	image := c.Image()
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID = kmsg.StringPtr(c.ClusterID)
	resp.ControllerID = c.anyLiveBroker(image)
	resp.Brokers = c.liveBrokers(image)
	topics := metadataTopics{call: c, image: image, operations: c.version >= 8 && req.IncludeTopicAuthorizedOperations}
	names, ids := askedTopics(req)
	switch {
	case req.Topics == nil || c.version == 0 && len(req.Topics) == 0:
		topics.all()
	case len(ids) > 0: // names beside ids are not looked at
		topics.byID(ids)
	default:
		topics.byName(once(names), c.version < 4 || req.AllowAutoTopicCreation)
	}
	resp.Topics = topics.answers
	if 8 <= c.version && c.version <= 10 && req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = c.clusterOperations()
	}
	c.reply(resp)
}

// checkMetadata refuses what a version does not have: ids before 12, though 10 and
// 11 have a place for them, and topics that are neither named nor identified.
func (c *call) checkMetadata(req *kmsg.MetadataRequest) error {
	for _, t := range req.Topics {
		switch id := protocol.TopicID(t.TopicID); {
		case c.version < 12 && t.Topic == nil:
			return protocol.Errorf(protocol.InvalidRequest, "Topic name can not be null for version %d", c.version)
		case c.version < 12 && !id.IsZero():
			return protocol.Errorf(protocol.InvalidRequest, "Topic IDs are not supported in requests for version %d", c.version)
		case t.Topic == nil && id.IsZero(): // Apache Kafka 4.4.0 runs into a null here and says -1
			return protocol.Errorf(protocol.InvalidRequest, "Neither topic name nor id were specified.")
		}
	}
	return nil
}

func askedTopics(req *kmsg.MetadataRequest) (names []string, ids []protocol.TopicID) {
	seen := map[protocol.TopicID]bool{}
	for _, t := range req.Topics {
		if id := protocol.TopicID(t.TopicID); !id.IsZero() && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		if t.Topic != nil {
			names = append(names, *t.Topic)
		}
	}
	return names, ids
}

// liveBrokers gives the brokers that are not fenced and have the request's
// listener, by id. Where there is none it gives this one, which is alive enough to
// answer: the only broker of a cluster is fenced for its last moments when it
// stops, and after a pause. Apache Kafka then lists nobody, and librdkafka (2.11
// and later), told of no broker, forgets those it knows and stays away for good.
func (c *call) liveBrokers(image *metadata.Image) []kmsg.MetadataResponseBroker {
	var brokers []kmsg.MetadataResponseBroker
	add := func(at *wire.NodeEndpoint) {
		if at != nil {
			brokers = append(brokers, kmsg.MetadataResponseBroker{NodeID: int32(at.ID), Host: at.Host, Port: at.Port, Rack: at.Rack})
		}
	}
	for b := range image.Brokers() {
		add(c.endpoint(image, b.ID))
	}
	if own := image.Broker(c.ID); len(brokers) == 0 && own != nil {
		add(c.address(own))
	}
	return brokers
}

// metadataTopics collects the answers about topics.
type metadataTopics struct {
	*call
	image      *metadata.Image
	operations bool // say what the requester may do
	answers    []kmsg.MetadataResponseTopic
}

// all tells every topic that the requester may describe, by name; of the others
// there is no trace.
func (m *metadataTopics) all() {
	for topic := range m.image.Topics() {
		if m.mayTopic(kmsg.ACLOperationDescribe, topic.Name) {
			m.found(topic)
		}
	}
}

func (m *metadataTopics) byID(ids []protocol.TopicID) {
	for _, id := range ids {
		switch topic := m.image.TopicByID(id); {
		case topic == nil:
			m.add(nil, id, protocol.UnknownTopicID)
		case !m.mayTopic(kmsg.ACLOperationDescribe, topic.Name): // ids are no secret, names are
			m.add(nil, id, protocol.TopicAuthorizationFailed)
		default:
			m.found(topic)
		}
	}
}

// byName tells topics by name. Whether one that may not be described exists is not
// looked at. A missing one may be made; the answer is that it is not there yet.
func (m *metadataTopics) byName(names []string, create bool) {
	create = create && m.Config.Bool("auto.create.topics.enable")
	var missing []string
	for _, name := range names {
		topic := m.image.Topic(name)
		switch {
		case !m.mayTopic(kmsg.ACLOperationDescribe, name):
			m.add(&name, protocol.ZeroUUID, protocol.TopicAuthorizationFailed)
		case topic != nil:
			m.found(topic)
		case create && !m.mayCreateTopic(name):
			m.add(&name, protocol.ZeroUUID, protocol.TopicAuthorizationFailed).IsInternal = protocol.IsInternalTopic(name)
		default:
			answer := m.add(&name, protocol.ZeroUUID, missingTopicCode(name))
			answer.IsInternal = protocol.IsInternalTopic(name)
			m.addOperations(answer)
			if create && answer.ErrorCode == int16(protocol.UnknownTopicOrPartition) {
				missing = append(missing, name)
			}
		}
	}
	m.autoCreate(missing)
}

func (m *metadataTopics) add(name *string, id protocol.TopicID, code protocol.ErrorCode) *kmsg.MetadataResponseTopic {
	answer := kmsg.NewMetadataResponseTopic()
	answer.Topic, answer.TopicID, answer.ErrorCode = name, id, int16(code)
	m.answers = append(m.answers, answer)
	return &m.answers[len(m.answers)-1]
}

func (m *metadataTopics) addOperations(answer *kmsg.MetadataResponseTopic) {
	if m.operations {
		answer.AuthorizedOperations = m.authorizedOperations(kmsg.ACLResourceTypeTopic, *answer.Topic)
	}
}

func (m *metadataTopics) found(topic *metadata.Topic) {
	answer := m.add(&topic.Name, topic.ID, protocol.None)
	answer.IsInternal = protocol.IsInternalTopic(topic.Name)
	answer.Partitions = make([]kmsg.MetadataResponseTopicPartition, 0, topic.PartitionCount())
	for n, p := range topic.Partitions() {
		answer.Partitions = append(answer.Partitions, m.partition(n, p))
	}
	m.addOperations(answer)
}

// partition tells one partition in the words of the version: below 6 there is no
// LISTENER_NOT_FOUND, and version 0 leaves out replicas that cannot be reached and
// says so.
func (m *metadataTopics) partition(n int32, p *metadata.Partition) kmsg.MetadataResponseTopicPartition {
	v := m.view(m.image, p)
	answer := kmsg.NewMetadataResponseTopicPartition()
	answer.Partition, answer.Leader, answer.LeaderEpoch = n, int32(v.leader), int32(p.LeaderEpoch)
	answer.Replicas, answer.ISR, answer.OfflineReplicas = nodes(p.Replicas), nodes(p.ISR), v.offline
	if v.code == protocol.ListenerNotFound && m.version < 6 {
		v.code = protocol.LeaderNotAvailable
	}
	if m.version == 0 {
		answer.Replicas, answer.ISR = nodes(m.reachable(p.Replicas)), nodes(m.reachable(p.ISR))
		if v.code == protocol.None && (len(answer.Replicas) < len(p.Replicas) || len(answer.ISR) < len(p.ISR)) {
			v.code = protocol.ReplicaNotAvailable
		}
	}
	answer.ErrorCode = int16(v.code)
	return answer
}

// reachable gives those of the brokers that are alive and have the listener.
func (m *metadataTopics) reachable(ids []protocol.NodeID) []protocol.NodeID {
	var out []protocol.NodeID
	for _, id := range ids {
		if m.endpoint(m.image, id) != nil {
			out = append(out, id)
		}
	}
	return out
}
