package group

import (
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/controller/offsets"
	"ottla/protocol"
)

// commitTellsGroup is the version from which on a commit to a group that does
// not exist is told so; before, its generation is said to be wrong.
const commitTellsGroup = 9

// commitOffsets commits a group's offsets. Commits with a generation come of a
// member and prolong its session.
func (c *Coordinator) commitOffsets(d *decision, m *kmsg.OffsetCommitRequest) kmsg.Response {
	check, bad := c.mayCommit(d, m)
	if bad == protocol.None && check != nil {
		bad = c.mayCommitAll(m, check)
	}
	if bad != protocol.None {
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
			o := offsets.Offset{
				Offset: protocol.Offset(p.Offset), Epoch: protocol.LeaderEpoch(p.LeaderEpoch), TopicID: topic.TopicID,
				CommitMs: d.nowMs(), ExpireMs: expireMs,
			}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			d.records = append(d.records, offsets.Record(m.Group, topic.Topic, p.Partition, o))
		}
	}
	if c.tooLarge(d.records) {
		d.records = nil
		return commitResponse(m, func(kmsg.OffsetCommitRequestTopicPartition) protocol.ErrorCode { return protocol.UnknownServerError })
	}
	return commitResponse(m, c.checkMetadata)
}

// partitionCheck tells whether a partition's offset may be committed.
type partitionCheck = func(topic string, id protocol.TopicID, partition int32) error

// mayCommit checks who commits. check, if there is one, is to be asked about each
// partition, too.
func (c *Coordinator) mayCommit(d *decision, m *kmsg.OffsetCommitRequest) (check partitionCheck, bad protocol.ErrorCode) {
	known := c.lookup(m.Group)
	switch {
	case known == nil && m.Generation < 0:
		return nil, protocol.None // a consumer that assigns itself, or an administrator
	case known == nil && m.Version >= commitTellsGroup:
		return nil, protocol.GroupIDNotFound
	case known == nil:
		return nil, protocol.IllegalGeneration
	case known.consumer != nil:
		commit := consumer.Commit{MemberID: m.MemberID, InstanceID: m.InstanceID, Epoch: m.Generation, Version: m.Version}
		check, err := known.consumer.MayCommit(commit)
		return check, protocol.CodeOf(err)
	}
	return nil, c.mayCommitClassic(d, known.classic, m)
}

// mayCommitAll asks about every partition whose commit is sound otherwise: one
// refusal refuses all.
func (c *Coordinator) mayCommitAll(m *kmsg.OffsetCommitRequest, check partitionCheck) protocol.ErrorCode {
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if c.checkMetadata(p) != protocol.None {
				continue
			}
			if err := check(topic.Topic, topic.TopicID, p.Partition); err != nil {
				return protocol.CodeOf(err)
			}
		}
	}
	return protocol.None
}

func (c *Coordinator) mayCommitClassic(d *decision, g *classicGroup, m *kmsg.OffsetCommitRequest) protocol.ErrorCode {
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
	return c.checkText(p.Metadata)
}

func (c *Coordinator) checkText(metadata *string) protocol.ErrorCode {
	if metadata != nil && utf16Length(*metadata) > c.options.Settings.OffsetMetadataBytes {
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
	case known.classic != nil && known.classic.state != stateEmpty && known.classic.protocolType != consumerProtocol:
		response.ErrorCode = code(protocol.NonEmptyGroup)
		return response
	}
	for _, topic := range m.Topics {
		t := kmsg.OffsetDeleteResponseTopic{Topic: topic.Topic}
		outcome := protocol.None
		if known.subscribed(topic.Topic) {
			outcome = protocol.GroupSubscribedToTopic
		}
		for _, p := range topic.Partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: code(outcome)})
			_, found := c.offsets.Get(m.Group, topic.Topic, p.Partition)
			if outcome == protocol.None && (found || c.offsets.Open(m.Group, topic.Topic, p.Partition)) {
				d.records = append(d.records, offsets.Tombstone(m.Group, topic.Topic, p.Partition))
			}
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}
