package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/history"
	"ottla/protocol"
	"ottla/protocol/record"
)

// undecidedParts tells of a partition on which a transaction is not decided; "" if
// there is none.
func (h *host) undecidedParts() string {
	for i := range h.watched.list {
		w := &h.watched.list[i]
		if first := w.log.View().FirstUnstableOffset; w.part.topic.plan.transactions && first != protocol.NoOffset && first < w.log.View().LogEndOffset {
			return w.part.String() + " holds something undecided"
		}
	}
	return ""
}

// readTransactions reads all that transactions have written, as it lies there and as a
// reader of committed data, and has the history judged.
func (s *Simulation) readTransactions(done func()) {
	parts := s.txParts(false)
	if len(s.plan.transactions.transactors) == 0 {
		done()
		return
	}
	for i := range s.hosts[0].watched.list {
		w := &s.hosts[0].watched.list[i]
		s.hosts[0].compareLoads(w.part, w.log)
	}
	s.history.finals = nil
	c := s.connect("txfinal", s.hosts[0], protocol.OnBroker, nil)
	if c == nil {
		s.Violate("the node does not take a connection")
		return
	}
	f := &txFinal{s: s, conn: c, parts: parts, done: done}
	f.next()
}

// txFinal reads one partition after the other.
type txFinal struct {
	s     *Simulation
	conn  *conn
	parts []*partModel
	done  func()
}

func (f *txFinal) next() {
	if len(f.parts) == 0 {
		f.judge()
		return
	}
	p := f.parts[0]
	f.parts = f.parts[1:]
	epochs := map[protocol.ProducerID]protocol.ProducerEpoch{}
	f.read(p, 0, false, nil, epochs, func([]history.Record) {
		f.read(p, 0, true, nil, nil, func(all []history.Record) {
			f.s.history.add(f.s, history.Op{
				Kind: history.Final, Committed: true, Process: 1 << 25, Begin: f.s.Now.UnixNano(), Reads: all,
				Mark: history.Mark{Partition: f.s.history.partition(p.topic.plan, p.n)},
			})
			f.next()
		})
	})
}

func (f *txFinal) read(p *partModel, at protocol.Offset, committed bool, all []history.Record, epochs map[protocol.ProducerID]protocol.ProducerEpoch, done func([]history.Record)) {
	if at >= p.seen.end {
		done(all)
		return
	}
	f.conn.send(fetchRequest(p, at, committed, time.Second, 1<<20), 16, 20*time.Second, true, func(resp kmsg.Response, err error) {
		if err != nil {
			f.s.Violate("the final read of %s: %v", p, err)
			return
		}
		part := &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if part.ErrorCode != 0 || len(part.RecordBatches) == 0 {
			f.s.Violate("the final read of %s at %d of %d (%+v) gave %s, last stable offset %d", p, at, p.seen.end, p.seen, protocol.ErrorCode(part.ErrorCode), part.LastStableOffset)
			return
		}
		if epochs != nil {
			f.fences(p, part.RecordBatches, epochs)
		}
		records, next := f.s.decode(p, part, at, committed)
		if f.s.Failure == nil {
			f.read(p, next, committed, append(all, records...), epochs, done)
		}
	})
}

// fences checks that no epoch of a producer is followed by a lower one.
func (f *txFinal) fences(p *partModel, batches []byte, epochs map[protocol.ProducerID]protocol.ProducerEpoch) {
	for rest := batches; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		if err != nil {
			f.s.Violate("%s: no batch: %v", p, err)
			return
		}
		rest = after
		if last, known := epochs[batch.ProducerID()]; known && batch.ProducerEpoch() < last {
			f.s.Violate("%s: offset %d is of producer %d epoch %d, which was fenced by epoch %d", p, batch.BaseOffset(), batch.ProducerID(), batch.ProducerEpoch(), last)
		}
		epochs[batch.ProducerID()] = batch.ProducerEpoch()
	}
}

// judge has the whole history judged, and compares the copies.
func (f *txFinal) judge() {
	s := f.s
	report := history.Check(slices.Concat(s.history.ops, s.history.finals), history.Options{})
	s.Linef("the history: %s", report)
	if report.Found() > 0 {
		s.Violate("the history of the transactions: %s", report)
		return
	}
	for _, t := range s.plan.transactions.transactors {
		if !t.copies {
			continue
		}
		var in, out []int64
		for _, op := range s.history.finals {
			for _, r := range op.Reads {
				switch op.Mark.Partition {
				case s.history.partition(s.plan.transactions.source, t.n):
					in = append(in, r.Value)
				case s.history.partition(s.plan.transactions.copied, t.n):
					out = append(out, s.history.sources[r.Value])
				}
			}
		}
		if wrong := history.CheckCopy(in, out, 5); len(wrong) > 0 {
			s.Violate("partition %d was not copied exactly once: %v", t.n, wrong)
			return
		}
		s.counts.Copied += len(out)
	}
	f.done()
}
