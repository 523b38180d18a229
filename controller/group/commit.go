package group

import (
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// commitTellsGroup is the version from which on a commit to a group that does
// not exist is told so; before, its generation is said to be wrong.
const commitTellsGroup = 9

// commitOffsets commits a group's offsets. Commits with a generation come of a
// member and prolong its session.
func (c *Coordinator) commitOffsets(d *decision, m *kmsg.OffsetCommitRequest) kmsg.Response {
	if bad := c.mayCommit(d, m); bad != protocol.None {
		return commitResponse(m, func(kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode { return bad })
	}
	expireMs := int64(-1)
	if m.RetentionTimeMillis >= 0 {
		expireMs = d.nowMs() + m.RetentionTimeMillis
	}
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if c.checkMetadata(p) != protocol.None {
				continue
			}
			o := committedOffset{
				offset: protocol.Offset(p.Offset), epoch: protocol.LeaderEpoch(p.LeaderEpoch), topicID: topic.TopicID,
				commitMs: d.nowMs(), expireMs: expireMs,
			}
			if p.Metadata != nil {
				o.metadata = *p.Metadata
			}
			d.writeOffset(m.Group, topic.Topic, p.Partition, o)
		}
	}
	if c.tooLarge(d.records) {
		d.records = nil
		return commitResponse(m, func(kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode { return protocol.UnknownServerError })
	}
	return commitResponse(m, c.checkMetadata)
}

// mayCommit checks who commits.
func (c *Coordinator) mayCommit(d *decision, m *kmsg.OffsetCommitRequest) protocol.ErrorCode {
	known := c.lookup(m.Group)
	switch {
	case known == nil && m.Generation < 0:
		return protocol.None // a consumer that assigns itself, or an administrator
	case known == nil && m.Version >= commitTellsGroup:
		return protocol.GroupIDNotFound
	case known == nil:
		return protocol.IllegalGeneration
	}
	g := known.classic
	switch {
	case m.Generation < 0 && g.state == stateEmpty:
		return protocol.None
	case m.Generation < 0 && m.MemberID == "" && m.InstanceID == nil:
		return protocol.UnknownMemberID
	}
	if bad := g.validate(m.MemberID, m.InstanceID); bad != protocol.None {
		return bad
	}
	switch {
	case m.Generation != g.generation:
		return protocol.IllegalGeneration
	case g.state == stateCompleting:
		return protocol.RebalanceInProgress // its partitions may be another's already
	}
	c.prolong(d, g.members[m.MemberID])
	return protocol.None
}

func (c *Coordinator) checkMetadata(p kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode {
	if p.Metadata != nil && utf16Length(*p.Metadata) > c.options.Settings.OffsetMetadataBytes {
		return protocol.OffsetMetadataTooLarge
	}
	return protocol.None
}

// utf16Length is the length that Java gives a string, which is what
// offset.metadata.max.bytes limits.
func utf16Length(s string) int {
	units := utf8.RuneCountInString(s)
	for _, r := range s {
		if r > 0xffff {
			units++
		}
	}
	return units
}

func commitResponse(m *kmsg.OffsetCommitRequest, outcome func(kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode) kmsg.Response {
	response := m.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, topic := range m.Topics {
		t := kmsg.OffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code(outcome(p))})
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// deleteOffsets deletes a group's offsets of topics that it does not subscribe to
// (KIP-496).
func (c *Coordinator) deleteOffsets(d *decision, m *kmsg.OffsetDeleteRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.OffsetDeleteResponse)
	known := c.lookup(m.Group)
	switch {
	case m.Group == "":
		response.ErrorCode = code(protocol.InvalidGroupID)
		return response
	case known == nil:
		response.ErrorCode = code(protocol.GroupIDNotFound)
		return response
	case known.classic.state != stateEmpty && known.classic.protocolType != consumerProtocol:
		response.ErrorCode = code(protocol.NonEmptyGroup)
		return response
	}
	for _, topic := range m.Topics {
		t := kmsg.OffsetDeleteResponseTopic{Topic: topic.Topic}
		outcome := protocol.None
		if known.classic.subscribed(topic.Topic) {
			outcome = protocol.GroupSubscribedToTopic
		}
		for _, p := range topic.Partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: code(outcome)})
			if _, found := c.offsets.get(m.Group, topic.Topic, p.Partition); found && outcome == protocol.None {
				d.deleteOffset(m.Group, topic.Topic, p.Partition)
			}
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}
