package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/controller/machine"
	"ottla/controller/offsets"
	"ottla/protocol"
)

// txnCommitTells is the version of TxnOffsetCommit from which on a producer is told
// that a group does not exist, or that a member's epoch is stale; before, its
// generation is said to be wrong.
const txnCommitTells = 6

// txnCommitBumps is the version from which on clients work the second way of
// transactions (KIP-890).
const txnCommitBumps = 5

// commitInTransaction has a producer commit a group's offsets when its transaction
// is committed. Until then they are pending.
func (c *Coordinator) commitInTransaction(d *decision, request Request, m *kmsg.TxnOffsetCommitRequest) kmsg.Response {
	check, bad := c.mayCommitInTransaction(m)
	if bad != protocol.None {
		return txnCommitResponse(m, func(kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode { return bad })
	}
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if c.checkTxnMetadata(p) != protocol.None {
				continue
			}
			if check != nil {
				if err := check(topic.Topic, topic.TopicID, p.Partition); err != nil {
					bad := txnCommitCode(m, err)
					d.records = nil
					return txnCommitResponse(m, func(kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode { return bad })
				}
			}
			o := offsets.Offset{
				Offset: protocol.Offset(p.Offset), Epoch: protocol.LeaderEpoch(p.LeaderEpoch), TopicID: topic.TopicID, CommitMs: d.nowMs(), ExpireMs: -1,
			}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			d.records = append(d.records, offsets.Record(m.Group, topic.Topic, p.Partition, o))
		}
	}
	if c.tooLarge(d.records) {
		d.records = nil
		return txnCommitResponse(m, func(kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode { return protocol.UnknownServerError })
	}
	if len(d.records) > 0 {
		d.transaction = &machine.Transaction{
			ProducerID: protocol.ProducerID(m.ProducerID), ProducerEpoch: protocol.ProducerEpoch(m.ProducerEpoch), Guard: request.Guard,
		}
		if m.Version >= txnCommitBumps {
			d.transaction.Version = 2
		}
	}
	return txnCommitResponse(m, c.checkTxnMetadata)
}

// mayCommitInTransaction checks for whom the producer commits. One that names no
// member is taken at its word: transactions fence producers by themselves.
func (c *Coordinator) mayCommitInTransaction(m *kmsg.TxnOffsetCommitRequest) (check partitionCheck, bad protocol.ErrorCode) {
	known := c.lookup(m.Group)
	switch {
	case known == nil && m.Generation < 0:
		return nil, protocol.None
	case known == nil && m.Version >= txnCommitTells:
		return nil, protocol.GroupIDNotFound
	case known == nil:
		return nil, protocol.IllegalGeneration
	case known.consumer != nil:
		commit := consumer.Commit{MemberID: m.MemberID, InstanceID: m.InstanceID, Epoch: m.Generation, Version: m.Version, Transactional: true}
		check, err := known.consumer.MayCommit(commit)
		return check, txnCommitCode(m, err)
	}
	g := known.classic
	if m.Generation < 0 && (g.state == stateEmpty || m.MemberID == "" && m.InstanceID == nil) {
		return nil, protocol.None
	}
	bad = g.validate(m.MemberID, m.InstanceID)
	if bad == protocol.None && m.Generation != g.generation {
		bad = protocol.IllegalGeneration
	}
	return nil, bad
}

// txnCommitCode is an error of the group in the words of the request's version.
func txnCommitCode(m *kmsg.TxnOffsetCommitRequest, err error) protocol.ErrorCode {
	code := protocol.CodeOf(err)
	if code == protocol.StaleMemberEpoch && m.Version < txnCommitTells {
		code = protocol.IllegalGeneration
	}
	return code
}

func (c *Coordinator) checkTxnMetadata(p kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode {
	return c.checkText(p.Metadata)
}

func txnCommitResponse(m *kmsg.TxnOffsetCommitRequest, outcome func(kmsg.TxnOffsetCommitRequestTopicPartition) protocol.ErrorCode) kmsg.Response {
	response := m.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	for _, topic := range m.Topics {
		t := kmsg.TxnOffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			t.Partitions = append(t.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code(outcome(p))})
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// ApplyTransactional implements shard.Transactional: the offsets are pending.
func (c *Coordinator) ApplyTransactional(base protocol.Offset, _ protocol.LeaderEpoch, timestampMs int64,
	id protocol.ProducerID, _ protocol.ProducerEpoch, records []machine.Record,
) error {
	return c.replay(base, 1, timestampMs, id, records)
}

// ApplyMarker implements shard.Transactional: what the producer has pending is
// committed, or forgotten.
func (c *Coordinator) ApplyMarker(_ protocol.Offset, _ protocol.LeaderEpoch, _ int64,
	id protocol.ProducerID, _ protocol.ProducerEpoch, committed bool, _ int32,
) error {
	c.offsets.End(id, committed)
	return nil
}
