package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// describeTopicPartitions tells topics with their eligible leader replicas, in
// pages (KIP-966): by name, from the cursor on, until the limit of partitions is
// reached.
func describeTopicPartitions(c *call, req *kmsg.DescribeTopicPartitionsRequest) {
	names := make([]string, len(req.Topics))
	for i := range req.Topics {
		names[i] = req.Topics[i].Topic
	}
	page := topicPage{call: c, image: c.Image(), remaining: int(max(min(c.Config.Int("max.request.partition.size.limit"), req.ResponsePartitionLimit), 1))}
	if at := req.Cursor; at != nil {
		page.from, page.fromPartition = at.Topic, at.Partition
		if err := checkCursor(at, names); err != nil {
			c.reply(errorResponse(req, err))
			return
		}
	}
	if len(names) == 0 {
		page.all()
	} else {
		page.named(sortedOnce(names))
	}
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	resp.Topics, resp.NextCursor = append(page.answers, page.denied...), page.next
	c.reply(resp)
}

func checkCursor(at *kmsg.DescribeTopicPartitionsRequestCursor, names []string) error {
	named := len(names) == 0
	for _, name := range names {
		named = named || name == at.Topic
	}
	switch {
	case !named:
		return protocol.Errorf(protocol.InvalidRequest, "DescribeTopicPartitionsRequest topic list should contain the cursor topic: %s", at.Topic)
	case at.Partition < 0:
		return protocol.Errorf(protocol.InvalidRequest, "DescribeTopicPartitionsRequest cursor partition must be valid: %d", at.Partition)
	}
	return nil
}

// topicPage is one page of topics in the making.
type topicPage struct {
	*call
	image         *metadata.Image
	from          string // the first topic, and the first partition of it
	fromPartition int32
	remaining     int // partitions that still fit

	answers []kmsg.DescribeTopicPartitionsResponseTopic
	denied  []kmsg.DescribeTopicPartitionsResponseTopic
	next    *kmsg.DescribeTopicPartitionsResponseNextCursor
}

func (p *topicPage) all() {
	for topic := range p.image.TopicsFrom(p.from) {
		if p.mayTopic(kmsg.ACLOperationDescribe, topic.Name) && !p.add(topic.Name, topic) {
			return
		}
	}
}

func (p *topicPage) named(names []string) {
	full := false
	for _, name := range names {
		switch {
		case name < p.from:
		case !p.mayTopic(kmsg.ACLOperationDescribe, name):
			topic := kmsg.NewDescribeTopicPartitionsResponseTopic()
			topic.Topic, topic.ErrorCode = kmsg.StringPtr(name), int16(protocol.TopicAuthorizationFailed)
			p.denied = append(p.denied, topic)
		default:
			full = !p.add(name, p.image.Topic(name))
		}
		if full {
			return
		}
	}
}

// add puts a topic, which may be nil, on the page. false: the page is full, and the
// cursor says what comes next.
func (p *topicPage) add(name string, topic *metadata.Topic) bool {
	if p.remaining == 0 {
		p.turn(name, 0)
		return false
	}
	answer := kmsg.NewDescribeTopicPartitionsResponseTopic()
	answer.Topic, answer.IsInternal = &name, protocol.IsInternalTopic(name)
	answer.AuthorizedOperations = p.authorizedOperations(kmsg.ACLResourceTypeTopic, name)
	if topic == nil {
		answer.ErrorCode = int16(missingTopicCode(name))
		p.answers = append(p.answers, answer)
		return true
	}
	answer.TopicID = topic.ID
	first := int32(0)
	if name == p.from {
		first = p.fromPartition
	}
	for n, partition := range topic.PartitionsFrom(first) {
		if p.remaining == 0 {
			p.turn(name, n)
			break
		}
		answer.Partitions = append(answer.Partitions, p.partition(n, partition))
		p.remaining--
	}
	p.answers = append(p.answers, answer)
	return p.next == nil
}

// turn sets the cursor of the next page.
func (p *topicPage) turn(topic string, partition int32) {
	next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	next.Topic, next.Partition = topic, partition
	p.next = &next
}

// partition tells one partition. That it has no leader, or none that can be reached,
// is said by leader -1 and not by a code, as Apache Kafka 4.4.0 has it.
func (p *topicPage) partition(n int32, partition *metadata.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	v := p.view(p.image, partition)
	answer := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	answer.Partition, answer.LeaderID, answer.LeaderEpoch = n, int32(v.leader), int32(partition.LeaderEpoch)
	answer.Replicas, answer.ISR, answer.OfflineReplicas = nodes(partition.Replicas), nodes(partition.ISR), v.offline
	answer.EligibleLeaderReplicas, answer.LastKnownELR = nodes(partition.ELR), nodes(partition.LastKnownELR)
	return answer
}
