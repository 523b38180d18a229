package consumer

import (
	"encoding/binary"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/assign"
	"ottla/protocol"
)

// What members of the classic protocol tell each other is opaque to a classic
// group; here the coordinator speaks in their place (ConsumerProtocol of Kafka's
// clients).

var errEmbedded = errors.New("the version of an embedded message is negative or missing")

// highestEmbedded is the newest version of both messages; newer ones are read as
// far as they are known.
const highestEmbedded = 3

func embeddedVersion(message []byte) (int16, error) {
	if len(message) < 2 || int16(binary.BigEndian.Uint16(message)) < 0 {
		return 0, errEmbedded
	}
	return int16(binary.BigEndian.Uint16(message)), nil
}

func readSubscription(message []byte) (*kmsg.ConsumerMemberMetadata, error) {
	if _, err := embeddedVersion(message); err != nil {
		return nil, err
	}
	subscription := new(kmsg.ConsumerMemberMetadata)
	return subscription, subscription.ReadFrom(message)
}

func readAssignment(message []byte) (*kmsg.ConsumerMemberAssignment, error) {
	if _, err := embeddedVersion(message); err != nil {
		return nil, err
	}
	assignment := new(kmsg.ConsumerMemberAssignment)
	return assignment, assignment.ReadFrom(message)
}

// owned is what a member says that it has, as far as the topics exist.
func (t *Topics) owned(subscription *kmsg.ConsumerMemberMetadata) map[protocol.TopicID][]int32 {
	owned := map[protocol.TopicID][]int32{}
	for _, topic := range subscription.OwnedPartitions {
		if id, exists := t.id(topic.Topic); exists {
			owned[id] = append(owned[id], topic.Partitions...)
		}
	}
	return owned
}

// AppendAssignment appends what a classic member is to be told of its partitions,
// in the version of what it has subscribed with.
func (t *Topics) AppendAssignment(dst []byte, of assign.Assignment, subscription []byte) []byte {
	version, err := embeddedVersion(subscription)
	if err != nil {
		version = 0 // a protocol that nobody has looked at until now
	}
	message := kmsg.ConsumerMemberAssignment{Version: min(version, highestEmbedded)}
	for _, id := range sortedTopics(of) {
		if topic := t.image.TopicByID(id); topic != nil {
			one := kmsg.ConsumerMemberAssignmentTopic{Topic: topic.Name, Partitions: of[id]}
			message.Topics = append(message.Topics, one)
		}
	}
	return message.AppendTo(dst)
}

// partitions leaves the epochs out.
func (o Owned) partitions() assign.Assignment {
	of := assign.Assignment{}
	for topic, partitions := range o {
		of[topic] = partitionsOf(partitions)
	}
	return of
}
