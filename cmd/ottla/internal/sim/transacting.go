package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/history"
	"ottla/protocol"
	"ottla/protocol/record"
)

// proceed begins the next transaction after a while. Once the faults are over there are limits to how long a copy may take, and nothing
// comes to its source any more: it hurries.
func (i *instance) proceed() {
	pace := i.plan.pace
	if i.s.phase != working {
		pace = min(pace, 20*time.Millisecond)
	}
	i.s.After(i.random.Between(pace/2, 3*pace/2), i.name+" goes on", func() {
		switch {
		case i.ended || i.s.phase == reading:
		case i.plan.copies && i.position == protocol.NoOffset:
			i.place()
		case i.plan.copies:
			i.fetch()
		case i.s.phase == working && !i.zombie:
			i.transact(nil)
		default:
			i.end("the work is over")
		}
	})
}

// place asks where the copy has come to.
func (i *instance) place() {
	source := i.s.plan.transactions.source
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = i.id()
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = source.name, []int32{i.plan.n}
	group.Topics = append(group.Topics, topic)
	req.Groups = append(req.Groups, group)
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{i.id()}
	i.ask(find, 4, func(resp kmsg.Response) {
		i.judge("FindCoordinator", protocol.ErrorCode(resp.(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode), i.place, func() {
			i.ask(req, int16(8+i.random.Below(2)), func(resp kmsg.Response) {
				got := &resp.(*kmsg.OffsetFetchResponse).Groups[0]
				code := protocol.ErrorCode(got.ErrorCode)
				if code == protocol.None {
					code = protocol.ErrorCode(got.Topics[0].Partitions[0].ErrorCode)
				}
				i.judge("OffsetFetch", code, i.place, func() {
					i.position = max(0, protocol.Offset(got.Topics[0].Partitions[0].Offset))
					i.s.Linef("%s copies from %d on", i.name, i.position)
					if i.producerID == protocol.NoProducerID {
						i.init()
						return
					}
					i.proceed()
				})
			})
		})
	})
}

// mostCopied is how many records of a copier fit into the smallest segment, with keys.
const mostCopied = 16

// fetch reads what is to be copied next.
func (i *instance) fetch() {
	part := i.s.txPart(i.s.plan.transactions.source, i.plan.n)
	if part == nil {
		i.proceed()
		return
	}
	i.ask(fetchRequest(part, i.position, true, i.random.Between(0, 300*time.Millisecond), 2000), 16, func(resp kmsg.Response) {
		answer := &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		i.judge("Fetch", protocol.ErrorCode(answer.ErrorCode), i.fetch, func() {
			records, next := i.s.decode(part, answer, i.position, true)
			if len(records) == 0 {
				i.position = next
				i.proceed()
				return
			}
			if len(records) > mostCopied {
				records = records[:mostCopied]
				next = protocol.Offset(records[mostCopied-1].Offset) + 1
			}
			i.next = next
			i.transact(records)
		})
	})
}

// batchOf is a batch of a transaction.
type txBatch struct {
	topic *topicPlan
	n     int32
	sends []history.Record
	first int // of the operation's sends
}

// transact runs a transaction.
func (i *instance) transact(reads []history.Record) {
	i.transaction++
	i.ending, i.doubtful, i.added = false, false, false
	i.op = &history.Op{
		Transactional: true, Committed: true, Process: i.process(), Producer: i.producer(), Begin: i.s.Now.UnixNano(), Outcome: history.Fail,
		Reads: reads, Rebalanced: true,
	}
	var batches []*txBatch
	if reads != nil {
		batches = []*txBatch{i.batch(i.s.plan.transactions.copied, i.plan.n, reads)}
	} else {
		for range 1 + i.random.Below(4) {
			source := i.s.plan.transactions.source
			batches = append(batches, i.batch(source, int32(i.random.Below(int(source.partitions))), make([]history.Record, 1+i.random.Below(3))))
		}
	}
	if i.plan.second {
		i.produce(batches)
		return
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = i.id(), int64(i.producerID), int16(i.epoch)
	topic := kmsg.NewAddPartitionsToTxnRequestTopic()
	topic.Topic = batches[0].topic.name
	seen := map[int32]bool{}
	for _, b := range batches {
		if !seen[b.n] {
			topic.Partitions = append(topic.Partitions, b.n)
		}
		seen[b.n] = true
	}
	req.Topics = append(req.Topics, topic)
	i.add(req, batches)
}

func (i *instance) add(req *kmsg.AddPartitionsToTxnRequest, batches []*txBatch) {
	i.ask(req, int16(i.random.Below(4)), func(resp kmsg.Response) {
		code := protocol.None
		for _, p := range resp.(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions {
			if c := protocol.ErrorCode(p.ErrorCode); c != protocol.None && (code == protocol.None || code == protocol.OperationNotAttempted) {
				code = c
			}
		}
		i.judge("AddPartitionsToTxn", code, func() { i.add(req, batches) }, func() {
			i.added = true
			i.produce(batches)
		})
	})
}

// batch makes the records of a batch: copies of what was read, or new ones.
func (i *instance) batch(topic *topicPlan, n int32, sources []history.Record) *txBatch {
	b := &txBatch{topic: topic, n: n, first: len(i.op.Sends)}
	for _, source := range sources {
		b.sends = append(b.sends, i.s.history.make(topic, n, source.Value))
	}
	i.op.Sends = append(i.op.Sends, b.sends...)
	return b
}

// produce sends one batch after the other.
func (i *instance) produce(batches []*txBatch) {
	if len(batches) == 0 {
		i.produced()
		return
	}
	b := batches[0]
	part := i.s.txPart(b.topic, b.n)
	if part == nil {
		i.s.After(200*time.Millisecond, i.name+" waits for its topic", func() { i.produce(batches) })
		return
	}
	lane := i.s.history.partition(b.topic, b.n)
	options := record.PlainOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence, options.Transactional = i.producerID, i.epoch, i.sequences[lane], true
	builder := record.NewBuilder(options)
	for _, send := range b.sends {
		value := i.s.history.text(send.Value)
		var key []byte
		if b.topic.compacted {
			key = value
		}
		builder.Append(i.s.Now.UnixMilli(), key, value, nil)
	}
	req := kmsg.NewPtrProduceRequest()
	name := i.id()
	req.TransactionID, req.Acks, req.TimeoutMillis = &name, -1, 5000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = b.topic.name, part.topic.id
	to := kmsg.NewProduceRequestTopicPartition()
	to.Partition, to.Records = b.n, builder.Build(i.s.model.pool)
	topic.Partitions = append(topic.Partitions, to)
	req.Topics = append(req.Topics, topic)
	version := int16(7 + i.random.Below(5))
	if i.plan.second {
		version = int16(12 + i.random.Below(2))
	}
	i.send(req, version, part, lane, batches)
}

func (i *instance) send(req *kmsg.ProduceRequest, version int16, part *partModel, lane int32, batches []*txBatch) {
	b := batches[0]
	i.ask(req, version, func(resp kmsg.Response) {
		answer := &resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		i.judge(fmt.Sprintf("Produce to %s", part), protocol.ErrorCode(answer.ErrorCode), func() { i.send(req, version, part, lane, batches) }, func() {
			for k := range b.sends {
				i.op.Sends[b.first+k].Offset = answer.BaseOffset + int64(k)
			}
			i.sequences[lane] += int32(len(b.sends))
			i.added = true
			part.undecided = append(part.undecided, undecided{i, i.transaction, protocol.Offset(answer.BaseOffset)})
			i.produce(batches[1:])
		})
	})
}

// produced is when all records are written: some instances end here, some are thought
// to have ended.
func (i *instance) produced() {
	if i.s.phase == working && !i.zombie {
		switch at := i.random.Below(1000); {
		case at < i.plan.crash:
			i.end("it dies")
			return
		case at < i.plan.crash+i.plan.zombie:
			i.s.Linef("%s is thought dead", i.name)
			i.s.After(i.random.Between(0, 500*time.Millisecond), i.name+" is replaced", func() {
				if !i.ended && !i.zombie {
					i.begin()
				}
			})
			i.s.After(i.random.Between(0, 2*time.Second), i.name+" wakes up", i.commitOffsets)
			return
		}
	}
	i.commitOffsets()
}

// commitOffsets commits what a copier has read, in its transaction.
func (i *instance) commitOffsets() {
	switch {
	case i.ended:
	case !i.plan.copies:
		i.finish()
	case i.plan.second:
		i.commitTo()
	default:
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = i.id(), int64(i.producerID), int16(i.epoch), i.id()
		i.ask(req, int16(i.random.Below(4)), func(resp kmsg.Response) {
			i.judge("AddOffsetsToTxn", protocol.ErrorCode(resp.(*kmsg.AddOffsetsToTxnResponse).ErrorCode), i.commitOffsets, i.commitTo)
		})
	}
}

func (i *instance) commitTo() {
	source := i.s.plan.transactions.source
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = i.id(), i.id(), int64(i.producerID), int16(i.epoch), -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = source.name, i.s.txPart(source, i.plan.n).topic.id
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset, part.LeaderEpoch = i.plan.n, int64(i.next), -1
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	version := int16(2 + i.random.Below(3))
	if i.plan.second {
		version = 5
	}
	i.ask(req, version, func(resp kmsg.Response) {
		i.judge("TxnOffsetCommit", protocol.ErrorCode(resp.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode), i.commitTo, i.finish)
	})
}

// finish ends the transaction.
func (i *instance) finish() {
	commit := !i.random.Chance(i.plan.abort) || i.s.phase != working
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = i.id(), int64(i.producerID), int16(i.epoch), commit
	version := int16(i.random.Below(5))
	if i.plan.second {
		version = 5
	}
	i.ending = true
	if commit {
		i.op.Outcome = history.Unknown
	}
	i.endTxn(req, version)
	if i.random.Chance(i.plan.crash) {
		i.s.After(i.random.Between(0, 2*time.Millisecond), i.name+" dies", i.dieEnding)
	}
}

func (i *instance) endTxn(req *kmsg.EndTxnRequest, version int16) {
	sent := i.s.Now
	i.ask(req, version, func(resp kmsg.Response) {
		answer := resp.(*kmsg.EndTxnResponse)
		i.judge("EndTxn", protocol.ErrorCode(answer.ErrorCode), func() { i.endTxn(req, version) }, func() {
			outcome := history.Fail
			if req.Commit {
				outcome = history.OK
				i.position = max(i.position, i.next)
			}
			if version >= 5 {
				i.s.history.newer(i.n, answer.ProducerID, answer.ProducerEpoch)
				i.become(answer.ProducerID, answer.ProducerEpoch)
			}
			i.over(outcome)
			i.added, i.touched = false, sent
			i.proceed()
		})
	})
}

// txHistory is what clients of transactions saw.
type txHistory struct {
	ops      []history.Op
	finals   []history.Op
	values   int64
	sources  map[int64]int64
	producer map[int32]history.Mark // per transactional id: the newest producer id and epoch, in Offset and Epoch
}

func (h *txHistory) add(s *Simulation, op history.Op) {
	op.End = s.Now.UnixNano()
	if op.Kind == history.Final {
		h.finals = append(h.finals, op)
		return
	}
	h.ops = append(h.ops, op)
	if op.Transactional {
		switch op.Outcome {
		case history.OK:
			s.counts.Committed++
		case history.Fail:
			s.counts.Aborted++
		}
	}
}

// newer notes a producer id and epoch that was given to a transactional id, and tells
// whether they are newer than all before.
func (h *txHistory) newer(n int32, id int64, epoch int16) bool {
	if h.producer == nil {
		h.producer, h.sources = map[int32]history.Mark{}, map[int64]int64{}
	}
	last, known := h.producer[n]
	if known && last.Offset == id && last.Epoch >= int32(epoch) {
		return false
	}
	h.producer[n] = history.Mark{Offset: id, Epoch: int32(epoch)}
	return true
}

// partition numbers the partitions of the two topics.
func (h *txHistory) partition(t *topicPlan, n int32) int32 {
	if t.name == "tx-copied" {
		return 16 + n
	}
	return n
}

func (h *txHistory) make(t *topicPlan, n int32, source int64) history.Record {
	h.values++
	if source != 0 {
		h.sources[h.values] = source
	}
	return history.Record{Partition: h.partition(t, n), Offset: history.NoOffset, Value: h.values}
}

// text is a value as it is sent.
func (h *txHistory) text(value int64) []byte { return strconv.AppendInt([]byte("t"), value, 10) }
