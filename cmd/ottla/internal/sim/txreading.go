package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/history"
	"ottla/protocol"
	"ottla/protocol/record"

	"ottla/cmd/ottla/internal/seeded"
)

// undecided is a batch in a transaction that nobody has asked to end: the last stable
// offset stays at or below it.
type undecided struct {
	instance    *instance
	transaction int
	offset      protocol.Offset
}

// observeTransactions checks that the last stable offset passes no open transaction.
func (h *host) observeTransactions(p *partModel, firstUnstable protocol.Offset) {
	kept := p.undecided[:0]
	for _, u := range p.undecided {
		if !u.instance.open(u.transaction) {
			continue
		}
		kept = append(kept, u)
		if firstUnstable == protocol.NoOffset || firstUnstable > u.offset {
			h.s.Violate("%s: the first unstable offset is %d, and %s has an open transaction with offset %d", p, firstUnstable, u.instance.name, u.offset)
		}
	}
	p.undecided = kept
}

// txPart is a partition of a topic; nil if it is not there yet.
func (s *Simulation) txPart(t *topicPlan, n int32) *partModel {
	for _, known := range s.model.order {
		if known.plan == t && int(n) < len(known.parts) {
			return known.parts[n]
		}
	}
	return nil
}

// txParts are all partitions that transactions write to; with those of Kafka's own.
func (s *Simulation) txParts(internal bool) []*partModel {
	var all []*partModel
	for _, t := range s.model.order {
		if t.plan.transactions && (internal || !t.plan.internal) {
			all = append(all, t.parts...)
		}
	}
	return all
}

func fetchRequest(p *partModel, offset protocol.Offset, committed bool, maxWait time.Duration, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, int32(maxWait.Milliseconds()), 1, 1<<20, -1
	if committed {
		req.IsolationLevel = 1
	}
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.topic.name, p.topic.id
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.LastFetchedEpoch, part.CurrentLeaderEpoch = p.n, int64(offset), maxBytes, -1, -1
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return req
}

// decode gives the records of a fetched partition from an offset on, and where to read
// on. A reader of committed data leaves out what the list of aborted transactions names.
func (s *Simulation) decode(p *partModel, part *kmsg.FetchResponseTopicPartition, from protocol.Offset, committed bool) (records []history.Record, next protocol.Offset) {
	aborted := slices.Clone(part.AbortedTransactions)
	if !slices.IsSortedFunc(aborted, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	}) {
		s.Violate("%s: the aborted transactions are not in order: %+v", p, aborted)
	}
	ignored := map[int64]bool{}
	next = from
	for rest := part.RecordBatches; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		if err != nil || batch.CheckCRC() != nil {
			s.Violate("%s: what was fetched at %d is no batch: %v", p, next, err)
			return records, next
		}
		rest = after
		for len(aborted) > 0 && aborted[0].FirstOffset <= int64(batch.LastOffset()) {
			ignored[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		if committed && int64(batch.LastOffset()) >= part.LastStableOffset {
			s.Violate("%s: a reader of committed data is given offset %d, the last stable offset is %d", p, batch.LastOffset(), part.LastStableOffset)
		}
		next = max(next, batch.NextOffset())
		id := int64(batch.ProducerID())
		for r, err := range record.Records(batch, s.model.pool, 1<<24) {
			switch {
			case err != nil:
				s.Violate("%s: a batch at %d cannot be read: %v", p, batch.BaseOffset(), err)
				return records, next
			case batch.IsControl():
				if kind, err := record.ParseControlKey(r.Key); err == nil && kind == record.ControlAbort {
					delete(ignored, id)
				}
			case r.Offset < from || committed && batch.IsTransactional() && ignored[id]:
			default:
				records = append(records, s.taken(p, r))
			}
		}
	}
	return records, next
}

func (s *Simulation) taken(p *partModel, r record.Record) history.Record {
	value := int64(-1)
	if len(r.Value) > 1 && r.Value[0] == 't' {
		if n, err := strconv.ParseInt(string(r.Value[1:]), 10, 64); err == nil {
			value = n
		}
	}
	return history.Record{Partition: s.history.partition(p.topic.plan, p.n), Offset: int64(r.Offset), Value: value}
}

// txReader reads the topics of the transactions, one partition at a time.
type txReader struct {
	s      *Simulation
	host   *host
	name   string
	number int32
	plan   txReaderPlan
	random *seeded.Random
	conn   *conn
	at     map[*partModel]protocol.Offset
}

func newTxReader(s *Simulation, h *host, n int) *txReader {
	return &txReader{
		s: s, host: h, name: fmt.Sprintf("txreader%d", n), number: int32(n), plan: s.plan.transactions.readers[n], random: s.random.Fork(),
		at: map[*partModel]protocol.Offset{},
	}
}

func (r *txReader) start()       { r.again(2 * time.Second) }
func (r *txReader) idle() string { return "" }

func (r *txReader) again(most time.Duration) {
	r.s.After(r.random.Between(0, most), r.name+" works", r.turn)
}

func (r *txReader) turn() {
	parts := r.s.txParts(false)
	if r.s.phase == reading || r.s.Failure != nil {
		return
	}
	if r.conn == nil || !r.conn.open {
		r.conn = r.s.connect(r.name, r.host, protocol.OnBroker, nil)
	}
	if r.conn == nil || len(parts) == 0 {
		r.again(200 * time.Millisecond)
		return
	}
	p := parts[r.random.Below(len(parts))]
	from, begin := r.at[p], r.s.Now.UnixNano()
	r.conn.send(fetchRequest(p, from, r.plan.committed, r.plan.maxWait, r.plan.maxBytes), 16, r.plan.maxWait+20*time.Second, true, func(resp kmsg.Response, err error) {
		defer r.again(300 * time.Millisecond)
		if err != nil {
			return
		}
		part := &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if code := protocol.ErrorCode(part.ErrorCode); code != protocol.None {
			excuse(r.s, r.name, code, "fetch", p)
			return
		}
		records, next := r.s.decode(p, part, from, r.plan.committed)
		r.at[p] = next
		r.s.counts.Read += len(records)
		r.s.history.add(r.s, history.Op{Process: 1<<24 + r.number, Begin: begin, Committed: r.plan.committed, Reads: records})
	})
}
