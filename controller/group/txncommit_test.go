package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
)

// In stories with transactions `producer name=x` makes a producer, `txncommit
// producer=x …` commits in its transaction, and `end producer=x commit` or `abort`
// ends that.

// txnProducer is a transactional producer of a story.
type txnProducer struct {
	id    protocol.ProducerID
	epoch protocol.ProducerEpoch
	name  string // its transactional id
}

func (s *story) producer() *txnProducer {
	p := s.producers[s.arg("producer", "p")]
	if p == nil {
		s.t.Fatalf("there is no producer %s", s.arg("producer", "p"))
	}
	return p
}

// isTransactional tells commands about producers, which are no requests to groups.
func (s *story) isTransactional() bool { return s.d.Cmd == "producer" || s.d.Cmd == "end" }

// transact runs them on the core.
func (s *story) transact() answers {
	if s.d.Cmd == "producer" {
		name := s.arg("name", "p")
		s.addProducer(name, &txnProducer{id: protocol.ProducerID(100 + len(s.producers)), name: name})
		return answers{}
	}
	p := s.producer()
	s.mark(p.id, p.epoch, s.d.HasArg("commit"))
	p.epoch++
	return answers{}
}

func (s *story) addProducer(name string, p *txnProducer) {
	if s.producers == nil {
		s.producers = map[string]*txnProducer{}
	}
	s.producers[name] = p
}

func (s *story) txnCommit(group string) kmsg.Request {
	p := s.producer()
	m := kmsg.NewPtrTxnOffsetCommitRequest()
	m.Version = int16(s.number("v", 6))
	m.TransactionalID, m.ProducerID, m.ProducerEpoch = p.name, int64(p.id), int16(p.epoch)
	m.Group, m.MemberID, m.InstanceID, m.Generation = group, s.arg("member", ""), s.optional("instance"), int32(s.number("gen", -1))
	topic := kmsg.TxnOffsetCommitRequestTopic{Topic: s.arg("topic", "t"), TopicID: topicID(s.arg("id", ""))}
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset, part.LeaderEpoch, part.Metadata = int32(s.number("p", 0)), int64(s.number("offset", 0)), int32(s.number("epoch", -1)), s.optional("metadata")
	topic.Partitions = append(topic.Partitions, part)
	m.Topics = append(m.Topics, topic)
	return m
}

func showTxnCommit(r *kmsg.TxnOffsetCommitResponse) (text string) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			text += fmt.Sprintf("%s-%d: %s\n", t.Topic, p.Partition, showCode(p.ErrorCode))
		}
	}
	return text
}

// transact runs the commands about producers on Apache Kafka.
func (a *apache) transact() {
	s := a.story
	if s.d.Cmd == "producer" {
		name := s.arg("name", "p")
		id := fmt.Sprint(name, time.Now().UnixNano())
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, 1, []string{id}
		for (<-a.request(find, "oracle")).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode != 0 {
			pass(200 * time.Millisecond)
		}
		init := kmsg.NewPtrInitProducerIDRequest()
		init.Version, init.TransactionalID, init.TransactionTimeoutMillis, init.ProducerID, init.ProducerEpoch = 5, &id, 600_000, -1, -1
		for {
			if r := (<-a.request(init, "oracle")).(*kmsg.InitProducerIDResponse); r.ErrorCode == 0 {
				s.addProducer(name, &txnProducer{protocol.ProducerID(r.ProducerID), protocol.ProducerEpoch(r.ProducerEpoch), id})
				return
			}
			pass(200 * time.Millisecond)
		}
	}
	p := s.producer()
	end := kmsg.NewPtrEndTxnRequest()
	end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = 5, p.name, int64(p.id), int16(p.epoch), s.d.HasArg("commit")
	r := (<-a.request(end, "oracle")).(*kmsg.EndTxnResponse)
	if r.ErrorCode != 0 {
		a.t.Fatalf("EndTxn: %v", protocol.ErrorCode(r.ErrorCode))
	}
	p.epoch = protocol.ProducerEpoch(r.ProducerEpoch)
}

// beforeTxnCommit adds the group to the transaction for versions that do not do so
// by themselves.
func (a *apache) beforeTxnCommit(m *kmsg.TxnOffsetCommitRequest) {
	if m.Version >= txnCommitBumps {
		return
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = 4, m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Group
	if r := (<-a.request(add, "oracle")).(*kmsg.AddOffsetsToTxnResponse); r.ErrorCode != 0 {
		a.t.Fatalf("AddOffsetsToTxn: %v", protocol.ErrorCode(r.ErrorCode))
	}
}

// mark has both machines take a marker.
func (r *rig) mark(id protocol.ProducerID, epoch protocol.ProducerEpoch, committed bool) {
	offset, timestampMs := protocol.Offset(len(r.log)), r.now.UnixMilli()
	r.replay(func(c *Coordinator) error { return c.ApplyMarker(offset, 1, timestampMs, id, epoch, committed, 0) })
	r.log = append(r.log, machine.Record{}) // it has an offset of its own
	r.check()
}

// A transactional result changes nothing before the log has taken it.
func TestTransactionalResult(t *testing.T) {
	r := newRig(t, settings())
	m := kmsg.NewPtrTxnOffsetCommitRequest()
	m.Version, m.Group, m.ProducerID, m.ProducerEpoch, m.Generation = 5, "g", 7, 3, -1
	m.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 9}}}}
	before := durable(r.c)
	result, err := r.c.Handle(r.turn(), Request{Message: m, Guard: 42})
	if err != nil || len(result.Records) != 1 || durable(r.c) != before {
		t.Fatalf("%+v, %v", result, err)
	}
	if want := (machine.Transaction{ProducerID: 7, ProducerEpoch: 3, Guard: 42, Version: 2}); *result.Transaction != want {
		t.Errorf("the transaction is %+v", *result.Transaction)
	}
}
