package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/group"
	"ottla/controller/metadata"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/replica"
)

// The versions of TxnOffsetCommit: from which on loading has a code of its own, the
// client knows TRANSACTION_ABORTABLE, the broker adds the group's partition to the
// transaction (KIP-890), and topics have ids.
const (
	txnCommitKnowsLoadingFrom   = 2
	txnCommitKnowsAbortableFrom = 4
	txnCommitAddsFrom           = 5
	txnCommitHasIDsFrom         = 6
)

// commitOffsetsInTxn has a group's coordinator take offsets that a producer commits
// with its transaction.
func commitOffsetsInTxn(c *call, req *kmsg.TxnOffsetCommitRequest) {
	t := &txnCommit{call: c, asked: req, ask: kmsg.NewPtrTxnOffsetCommitRequest()}
	switch {
	case !c.mayTransact(&req.TransactionalID):
		t.refuse(protocol.TransactionalIDAuthorizationFailed)
		return
	case !c.mayGroup(kmsg.ACLOperationRead, req.Group):
		t.refuse(protocol.GroupAuthorizationFailed)
		return
	}
	*t.ask = *req
	t.ask.Topics = nil
	image := c.Image()
	for i := range req.Topics {
		topic := req.Topics[i]
		if code := c.checkTxnCommit(image, &topic); code != protocol.None {
			t.answer(&topic, topic.Partitions, code)
			continue
		}
		topic.Partitions = slices.DeleteFunc(slices.Clone(topic.Partitions), func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
			unknown := image.Partition(protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}) == nil
			if unknown {
				t.answer(&topic, []kmsg.TxnOffsetCommitRequestTopicPartition{p}, protocol.UnknownTopicOrPartition)
			}
			return unknown
		})
		if len(topic.Partitions) > 0 {
			t.ask.Topics = append(t.ask.Topics, topic)
		}
	}
	switch {
	case len(t.ask.Topics) == 0:
		t.reply()
	case req.Group == "":
		t.fail(protocol.InvalidGroupID.Err())
	default:
		t.verify()
	}
}

// txnCommit is a TxnOffsetCommit under way.
type txnCommit struct {
	*call
	asked, ask *kmsg.TxnOffsetCommitRequest // as it came; what the coordinator is asked
	resp       kmsg.TxnOffsetCommitResponse
}

// checkTxnCommit completes a topic's name and id, and tells why its offsets cannot
// be committed.
func (c *call) checkTxnCommit(image *metadata.Image, topic *kmsg.TxnOffsetCommitRequestTopic) protocol.ErrorCode {
	if c.version >= txnCommitHasIDsFrom {
		if topic.Topic = topicName(image, topic.TopicID); topic.Topic == "" {
			return protocol.UnknownTopicID
		}
	}
	if !c.mayTopic(kmsg.ACLOperationRead, topic.Topic) {
		return protocol.TopicAuthorizationFailed
	}
	known := image.Topic(topic.Topic)
	if known == nil {
		return protocol.UnknownTopicOrPartition
	}
	topic.TopicID = known.ID
	return protocol.None
}

// verify has the coordinator of the transaction add the group's partition to it, or
// verify that it is in it.
func (t *txnCommit) verify() {
	partition := protocol.TopicPartition{Topic: protocol.ConsumerOffsetsTopic, Partition: t.groupPartition(t.asked.Group)}
	producer := producerOf(t.asked.ProducerID, t.asked.ProducerEpoch)
	add := t.version >= txnCommitAddsFrom
	guard, err := t.Replicas.BeginVerification(t.now, partition, replica.VerificationRequest{
		ProducerID: producer.ID, Epoch: producer.Epoch, BumpsEpochs: add,
	})
	switch {
	case err != nil:
		t.fail(shard.CoordinatorError(err))
	case guard == log.NoGuard:
		t.commit(partition.Partition, guard)
	default:
		t.Additions.Ask(t.now, broker.Addition{
			TransactionalID: t.asked.TransactionalID, ProducerID: producer.ID, Epoch: producer.Epoch,
			Partitions: []protocol.TopicPartition{partition}, Add: add, Abortable: t.version >= txnCommitKnowsAbortableFrom,
		}, func(codes []protocol.ErrorCode) {
			t.guard(func() {
				if codes[0] != protocol.None {
					t.fail(shard.CoordinatorError(codes[0].Err()))
					return
				}
				t.commit(partition.Partition, guard)
			})
		})
	}
}

func (t *txnCommit) commit(partition int32, guard log.Guard) {
	request := group.Request{Message: t.ask, ClientID: t.clientID(), ClientHost: javaAddress(t.request.Conn.RemoteAddr()), Guard: uint64(guard)}
	t.Groups.Submit(t.now, partition, request, func(reply any, err error) {
		t.guard(func() {
			if err != nil {
				t.fail(err)
				return
			}
			t.merge(reply.(*kmsg.TxnOffsetCommitResponse).Topics)
			t.reply()
		})
	})
}

// refuse answers everything that was asked with one code.
func (t *txnCommit) refuse(code protocol.ErrorCode) {
	for i := range t.asked.Topics {
		t.answer(&t.asked.Topics[i], t.asked.Topics[i].Partitions, code)
	}
	t.reply()
}

// fail answers everything that the coordinator was to be asked with one error.
func (t *txnCommit) fail(err error) {
	var failed []kmsg.TxnOffsetCommitResponseTopic
	for i := range t.ask.Topics {
		asked := &t.ask.Topics[i]
		topic := kmsg.TxnOffsetCommitResponseTopic{Topic: asked.Topic, TopicID: asked.TopicID}
		for _, p := range asked.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(protocol.CodeOf(err))})
		}
		failed = append(failed, topic)
	}
	t.merge(failed)
	t.reply()
}

// merge adds what the coordinator says. Where nothing was refused here that is all,
// also of a topic that was named twice.
func (t *txnCommit) merge(topics []kmsg.TxnOffsetCommitResponseTopic) {
	if len(t.resp.Topics) == 0 {
		t.resp.Topics = topics
		return
	}
	for _, topic := range topics {
		to := t.topic(topic.Topic, topic.TopicID)
		to.Partitions = append(to.Partitions, topic.Partitions...)
	}
}

func (t *txnCommit) answer(topic *kmsg.TxnOffsetCommitRequestTopic, partitions []kmsg.TxnOffsetCommitRequestTopicPartition, code protocol.ErrorCode) {
	to := t.topic(topic.Topic, topic.TopicID)
	for _, p := range partitions {
		to.Partitions = append(to.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
	}
}

// topic finds a topic's place in the response.
func (t *txnCommit) topic(name string, id protocol.TopicID) *kmsg.TxnOffsetCommitResponseTopic {
	for i := range t.resp.Topics {
		if is := &t.resp.Topics[i]; is.Topic == name && protocol.TopicID(is.TopicID) == id {
			return is
		}
	}
	t.resp.Topics = append(t.resp.Topics, kmsg.TxnOffsetCommitResponseTopic{Topic: name, TopicID: id})
	return &t.resp.Topics[len(t.resp.Topics)-1]
}

func (t *txnCommit) reply() {
	if t.version < txnCommitKnowsLoadingFrom {
		for i := range t.resp.Topics {
			for j := range t.resp.Topics[i].Partitions {
				if p := &t.resp.Topics[i].Partitions[j]; protocol.ErrorCode(p.ErrorCode) == protocol.CoordinatorLoadInProgress {
					p.ErrorCode = int16(protocol.CoordinatorNotAvailable)
				}
			}
		}
	}
	t.call.reply(&t.resp)
}
