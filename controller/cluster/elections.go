package cluster

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// Kinds of elections that can be asked for (KIP-460).
const (
	preferredElection int8 = 0 // the first replica leads, if it is in sync
	uncleanElection   int8 = 1 // whoever lives leads, where nobody does
)

// electLeaders holds elections. Without a list all partitions are meant; then
// those that need none are not told of.
func (c *Controller) electLeaders(req *kmsg.ElectLeadersRequest) (machine.Result, error) {
	nobody := req.Topics != nil && len(req.Topics) == 0 // then Apache Kafka does not look at the kind
	if req.ElectionType != preferredElection && req.ElectionType != uncleanElection && !nobody {
		return machine.Result{}, protocol.Errorf(protocol.InvalidRequest, "Unknown election type %d", req.ElectionType)
	}
	e := election{c: c, kind: req.ElectionType, propose: c.proposer(), met: map[*metadata.Partition]bool{}}
	response := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	if req.Topics == nil {
		for topic := range c.image.Topics() {
			answer := kmsg.ElectLeadersResponseTopic{Topic: topic.Name}
			for n := range topic.Partitions() {
				if one := e.elect(topic.Name, n); protocol.ErrorCode(one.ErrorCode) != protocol.ElectionNotNeeded {
					answer.Partitions = append(answer.Partitions, one)
				}
			}
			response.Topics = append(response.Topics, answer)
		}
	}
	for _, asked := range req.Topics {
		answer := kmsg.ElectLeadersResponseTopic{Topic: asked.Topic}
		for _, n := range asked.Partitions {
			answer.Partitions = append(answer.Partitions, e.elect(asked.Topic, n))
		}
		response.Topics = append(response.Topics, answer)
	}
	result := c.result(response, e.records...)
	result.Divisible = true
	return result, nil
}

// election is an ElectLeaders under way.
type election struct {
	c       *Controller
	kind    int8
	propose func(*metadata.Topic, int32, *metadata.Partition, brokerChange) *proposal
	met     map[*metadata.Partition]bool // partitions that got a leader already
	records []schema.MetadataRecord
}

func (e *election) elect(name string, n int32) kmsg.ElectLeadersResponseTopicPartition {
	answer := kmsg.NewElectLeadersResponseTopicPartition()
	answer.Partition = n
	if err := e.hold(name, n); err != nil {
		answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
	}
	return answer
}

func (e *election) hold(name string, n int32) *protocol.Error {
	topic := e.c.image.Topic(name)
	if topic == nil {
		return protocol.Errorf(protocol.UnknownTopicOrPartition, "No such topic as %s", name)
	}
	partition := topic.Partition(n)
	if partition == nil {
		return protocol.Errorf(protocol.UnknownTopicOrPartition, "No such partition as %s-%d", name, n)
	}
	notNeeded := partition.Leader != protocol.NoNode
	if e.kind == preferredElection {
		notNeeded = len(partition.Replicas) > 0 && partition.Leader == partition.Replicas[0]
	}
	if notNeeded || e.met[partition] {
		return protocol.Errorf(protocol.ElectionNotNeeded, "Leader election not needed for topic partition.")
	}
	proposed := e.propose(topic, n, partition, nobody())
	proposed.preferred = e.kind == preferredElection
	proposed.rules.uncleanElection = e.kind == uncleanElection
	record := proposed.build()
	switch {
	case record != nil:
		e.met[partition] = true
		e.records = append(e.records, record)
		return nil
	case e.kind == preferredElection:
		return protocol.Errorf(protocol.PreferredLeaderNotAvailable, "The preferred leader was not available.")
	default:
		return protocol.Errorf(protocol.EligibleLeadersNotAvailable, "Eligible topic partition leaders are not available.")
	}
}
