package api

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
)

// adminClientID is the client id under which tools may write to internal topics.
const adminClientID = "__admin_client"

// zstdFrom is the first version of Produce whose senders may use zstd (KIP-110).
const zstdFrom = 7

// produce appends one batch to each partition named. The batches stay slices of
// the request's frame, which is held until the replica has them in its log.
func produce(c *call, req *kmsg.ProduceRequest) {
	p := &producing{call: c, acks: req.Acks, slots: c.produceSlots(req)}
	switch transactional := p.isTransactional(); {
	case transactional && !c.mayTransact(req.TransactionID):
		p.refuse(protocol.TransactionalIDAuthorizationFailed.Err())
	case transactional && c.Transactions != nil:
		p.transact(req)
	default:
		p.appendAll(req)
	}
}

// appendAll gives every batch that was not refused to its replica.
func (p *producing) appendAll(req *kmsg.ProduceRequest) {
	p.left.Store(int32(len(p.slots)) + 1) // one for this function
	for i := range p.slots {
		slot := &p.slots[i]
		if slot.result.Err != nil {
			p.finish()
			continue
		}
		if accepted := p.append(req, slot, p); !accepted && !p.held {
			p.request.HoldReading()
		}
	}
	p.finish()
}

// producing is a Produce whose partitions are under way.
type producing struct {
	*call
	acks  int16
	slots []produceSlot
	left  atomic.Int32
	held  bool // the connection is not read until the answer
}

// produceSlot is one partition's place in the response.
type produceSlot struct {
	topicID   protocol.TopicID // zero before version 13
	partition protocol.TopicPartition
	records   []byte
	batch     record.Batch // nil if records are not one batch: malformed
	malformed error
	guard     log.Guard // of the verification of its transaction

	unverified bool // that went wrong
	result     replica.AppendResult
}

// append gives one batch to the replica; accepted as replica.Manager.Append.
func (c *call) append(req *kmsg.ProduceRequest, slot *produceSlot, p *producing) (accepted bool) {
	frame := c.request.Frame
	frame.Retain()
	version := int8(0)
	if c.version >= produceAddsFrom && slot.transactional() {
		version = int8(txn.Version2)
	}
	return c.Replicas.Append(c.now, replica.AppendRequest{
		Partition:    slot.partition,
		TopicID:      slot.topicID,
		Records:      slot.records,
		Origin:       log.OriginClient,
		RequiredAcks: req.Acks,
		Timeout:      time.Duration(req.TimeoutMillis) * time.Millisecond,
		AllowZstd:    c.version >= zstdFrom,
		Guard:        slot.guard, TransactionVersion: version,
		Release: frame.Release, Abandon: frame.Abandon,
	}, func(result replica.AppendResult) {
		slot.result = result
		c.guard(p.finish)
	})
}

// produceSlots lists the partitions of a request, with an error in those that
// cannot be appended to. The order of the checks is Apache Kafka's. Of a partition
// that is named twice the last counts, as there.
func (c *call) produceSlots(req *kmsg.ProduceRequest) []produceSlot {
	image := c.Image()
	var slots []produceSlot
	places := map[protocol.TopicPartition]int{}
	for i := range req.Topics {
		topic := &req.Topics[i]
		name, id := topic.Topic, protocol.TopicID(topic.TopicID)
		if c.version >= 13 {
			name = topicName(image, id)
		}
		writable := (name != "" || c.version < 13) && c.mayTopic(kmsg.ACLOperationWrite, name)
		for j := range topic.Partitions {
			q := &topic.Partitions[j]
			slot := produceSlot{topicID: id, partition: protocol.TopicPartition{Topic: name, Partition: q.Partition}, records: q.Records}
			slot.batch, slot.malformed = record.OneBatch(q.Records)
			slot.result = notAppended(c.checkProduce(image, &slot, writable, req))
			if name == "" {
				slots = append(slots, slot)
				continue
			}
			if at, twice := places[slot.partition]; twice {
				slots[at] = slot
				continue
			}
			places[slot.partition] = len(slots)
			slots = append(slots, slot)
		}
	}
	return slots
}

// checkProduce tells why a batch is not even shown to the replica.
func (c *call) checkProduce(image *metadata.Image, slot *produceSlot, writable bool, req *kmsg.ProduceRequest) error {
	switch topic := slot.partition.Topic; {
	case topic == "" && c.version >= 13:
		return protocol.UnknownTopicID.Err()
	case !writable:
		return protocol.TopicAuthorizationFailed.Err()
	case image.Partition(slot.partition) == nil:
		return protocol.UnknownTopicOrPartition.Err()
	case slot.malformed != nil:
		return slot.malformed
	case c.version < zstdFrom && slot.batch.Codec() == compress.Zstd:
		return protocol.UnsupportedCompressionType.Err()
	case req.Acks < replica.AcksAll || req.Acks > replica.AcksLeader:
		return protocol.InvalidRequiredAcks.Err()
	case protocol.IsInternalTopic(topic) && c.clientID() != adminClientID:
		return protocol.InvalidTopicException.Err()
	case slot.batch.IsTransactional() && c.Transactions == nil:
		// This node has no coordinators. This is what Apache Kafka's transaction
		// coordinator says of a transactional id that never got a producer id.
		return protocol.InvalidProducerIDMapping.Err()
	}
	return nil
}

// notAppended is the result of a batch that was refused here; nothing is known of
// the log.
func notAppended(err error) replica.AppendResult {
	return replica.AppendResult{
		Err: err, BaseOffset: protocol.NoOffset, LastOffset: protocol.NoOffset, LogStartOffset: protocol.NoOffset, LogAppendTimeMs: record.NoTimestamp,
	}
}

// mayTransact tells whether the requester may write in the name of a transactional
// id; nobody may without one.
func (c *call) mayTransact(id *string) bool {
	return id != nil && c.may(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, *id)
}

// refuse answers every partition with one error.
func (p *producing) refuse(err error) {
	for i := range p.slots {
		p.slots[i].result = notAppended(err)
	}
	p.answer()
}

// finish counts one part that is done; the last one answers.
func (p *producing) finish() {
	if p.left.Add(-1) == 0 {
		p.answer()
	}
}

// answer sends the response. With acks=0 there is none, and an error ends the
// connection, so that the client looks for the leader anew.
func (p *producing) answer() {
	if p.acks != replica.AcksNone {
		p.reply(p.response())
		return
	}
	for i := range p.slots {
		if err := p.slots[i].result.Err; err != nil {
			p.close(fmt.Errorf("a produce without acknowledgement to %s failed: %w", p.slots[i].partition, err))
			return
		}
	}
	p.replyNothing()
}

func (p *producing) response() *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	leaders := newLeaders(p.call)
	at := map[produceTopic]int{}
	for i := range p.slots {
		slot := &p.slots[i]
		of := produceTopic{slot.partition.Topic, slot.topicID}
		place, known := at[of]
		if !known {
			place = len(resp.Topics)
			at[of] = place
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.TopicID = of.name, of.id
			resp.Topics = append(resp.Topics, topic)
		}
		resp.Topics[place].Partitions = append(resp.Topics[place].Partitions, p.partitionResponse(slot, leaders))
	}
	for _, node := range leaders.endpoints {
		resp.Brokers = append(resp.Brokers, kmsg.ProduceResponseBroker{NodeID: int32(node.ID), Host: node.Host, Port: node.Port, Rack: node.Rack})
	}
	return resp
}

// produceTopic names a topic of the response: by name, or by id from version 13 on.
type produceTopic struct {
	name string
	id   protocol.TopicID
}

func (p *producing) partitionResponse(slot *produceSlot, leaders *leaders) kmsg.ProduceResponseTopicPartition {
	result := &slot.result
	part := kmsg.NewProduceResponseTopicPartition()
	part.Partition = slot.partition.Partition
	part.ErrorCode = int16(protocol.CodeOf(result.Err))
	part.BaseOffset = int64(result.BaseOffset)
	part.LogAppendTime = result.LogAppendTimeMs
	part.LogStartOffset = int64(result.LogStartOffset)
	for _, refused := range result.RecordErrors {
		part.ErrorRecords = append(part.ErrorRecords, kmsg.ProduceResponseTopicPartitionErrorRecord{
			RelativeOffset: refused.BatchIndex, ErrorMessage: &refused.Message,
		})
	}
	// The only failures with a sentence of their own, as in Apache Kafka: refused records, what is no batch at all, and transactions
	// that are not under way. Besides, of a disk that is full or failed the producer's log may as well say so.
	var malformed *record.Error
	if len(result.RecordErrors) > 0 || slot.unverified || errors.As(slot.malformed, &malformed) && malformed.NoBatch ||
		part.ErrorCode == int16(protocol.KafkaStorageError) {
		part.ErrorMessage = protocol.MessageOf(result.Err)
	}
	if p.version >= leadersInProduceFrom && result.Err != nil && protocol.CodeOf(result.Err) == protocol.NotLeaderOrFollower {
		leader := leaders.of(slot.partition, result.CurrentLeader)
		part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = int32(leader.ID), int32(leader.Epoch)
	}
	return part
}
