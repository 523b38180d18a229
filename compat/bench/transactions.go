package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/bench/latency"
)

// txnLoad is one transactional producer (transactions v2, KIP-890) that writes to many partitions over one connection and commits
// every so often. At a rate, records are due at their moments and commits at theirs: what comes late, for instance because the
// commit before took long, counts from when it was due, and a commit counts for every moment that has gone by since the last.
// Without a rate it sends as fast as the answers come, and commits so long after the last commit.
type txnLoad struct {
	partitions int
	every      time.Duration // between commits
	records    int           // in a batch
	batchBytes int

	perSecond int     // batches; 0: no rate
	seconds   float64 // at a rate
	requests  int     // without one
	window    int     // requests under way, without a rate
}

func (l txnLoad) line(name string) *line { return &line{name: name, round: l.round} }

func (l txnLoad) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, l.partitions)
	if err != nil {
		return nil, err
	}
	p, err := l.open(ctx, s, topic)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	total := l.requests
	if l.perSecond > 0 {
		total = int(float64(l.perSecond) * l.seconds)
	}
	used, err := s.during(func() error { return p.run(total) })
	if err != nil {
		return nil, err
	}
	if err := p.complete(ctx, s, topic, total*l.records); err != nil {
		return nil, err
	}
	if err := s.ref.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	var out figures
	if l.perSecond > 0 {
		out = figures{{name: "CPU us/request", value: used.cpuSeconds / float64(total) * 1e6}}
		out = append(out, quantiles(p.latencies)...)
	} else {
		out = throughput(float64(total), float64(total*l.batchBytes), false, used)
	}
	return append(out,
		figure{name: "commit p50 ms", value: p.commits.Quantile(0.50)},
		figure{name: "commit p99 ms", value: p.commits.Quantile(0.99)},
		used.peak()), nil
}

// txnProducer is the producer of one round. What it has sent is answered in order, to a goroutine of its own.
type txnProducer struct {
	*conn
	load   txnLoad
	id     string
	frames []*produceFrame // by partition
	sent   []uint32        // records of this epoch, by partition

	producer int64
	epoch    int16

	under     chan sent // what is under way
	answered  chan answer
	waits     int // of what is under way
	latencies *latency.Histogram
	commits   *latency.Histogram
}

// sent is a request under way.
type sent struct {
	due   []time.Time   // one, but for commits
	frame *produceFrame // nil: the end of a transaction
}

// answer is what came back.
type answer struct {
	code     int16
	producer int64
	epoch    int16
	err      error
}

const (
	txnProduceVersion = 12 // the broker adds what is written to to the transaction
	txnEndVersion     = 5
)

func (l txnLoad) open(ctx context.Context, s *server, topic string) (*txnProducer, error) {
	p := &txnProducer{
		load: l, id: "bench-" + topic, sent: make([]uint32, l.partitions), under: make(chan sent, 1<<16), answered: make(chan answer, 1<<16),
		latencies: &latency.Histogram{}, commits: &latency.Histogram{},
	}
	var err error
	if p.conn, err = dial(ctx, s.Addr()); err != nil {
		return nil, err
	}
	for partition := range l.partitions {
		p.frames = append(p.frames, newTxnFrame(p.id, topic, int32(partition), newBatch(l.records, l.batchBytes)))
	}
	for {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey, find.CoordinatorType = 3, p.id, 1
		if _, err := p.ask(find); err != nil {
			return nil, err
		}
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 4, &p.id, 60_000, -1, -1
		resp, err := p.ask(req)
		if err != nil {
			return nil, err
		}
		got := resp.(*kmsg.InitProducerIDResponse) //nolint:forcetypeassert // ResponseKind
		err = kerr.ErrorForCode(got.ErrorCode)
		if err == nil {
			p.begin(got.ProducerID, got.ProducerEpoch)
			go p.take()
			return p, nil
		}
		if !kerr.IsRetriable(err) {
			return nil, err
		}
		time.Sleep(retryPause)
	}
}

// newTxnFrame frames a request of transactions v2.
func newTxnFrame(id, topic string, partition int32, batch []byte) *produceFrame {
	batch[22] |= 16 // transactional
	seal(batch)
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.TransactionID, req.Acks, req.TimeoutMillis = txnProduceVersion, &id, -1, 30_000
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	in := kmsg.NewProduceRequestTopic()
	in.Topic, in.Partitions = topic, []kmsg.ProduceRequestTopicPartition{part}
	req.Topics = append(req.Topics, in)
	framed := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 0)
	at := bytes.Index(framed, batch)
	return &produceFrame{
		bytes: framed, batch: framed[at : at+len(batch)], errorAt: 4 + 1 + 1 + 1 + len(topic) + 1 + 4, records: binary.BigEndian.Uint32(batch[57:]),
	}
}

// begin makes all that follows that of a producer's epoch.
func (p *txnProducer) begin(id int64, epoch int16) {
	p.producer, p.epoch = id, epoch
	for i, f := range p.frames {
		f.idempotent(id, epoch)
		p.sent[i] = 0
	}
}

// take reads the answers.
func (p *txnProducer) take() {
	for s := range p.under {
		body, err := p.read()
		got := answer{err: err}
		switch {
		case err != nil:
		case s.frame != nil && len(body) < s.frame.errorAt+2:
			got.err = fmt.Errorf("an answer of %d bytes", len(body))
		case s.frame != nil:
			if got.code = int16(binary.BigEndian.Uint16(body[s.frame.errorAt:])); got.code == 0 {
				p.latencies.Add(time.Since(s.due[0]))
			}
		default:
			resp := kmsg.NewPtrEndTxnResponse()
			resp.Version = txnEndVersion
			if got.err = resp.ReadFrom(body[5:]); got.err == nil {
				got.code, got.producer, got.epoch = resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch
			}
			for _, due := range s.due {
				p.commits.Add(time.Since(due))
			}
		}
		p.answered <- got
		if got.err != nil {
			return
		}
	}
}

// collect takes answers until at most most are missing, and gives the last.
func (p *txnProducer) collect(most int) (last answer, err error) {
	for p.waits > most {
		last = <-p.answered
		p.waits--
		if last.err != nil {
			return last, last.err
		}
		if last.code != 0 && last.code != kerr.ConcurrentTransactions.Code {
			return last, kerr.ErrorForCode(last.code)
		}
	}
	return last, nil
}

// run sends so many batches, and commits.
func (p *txnProducer) run(total int) error {
	defer close(p.under)
	begin := time.Now()
	commit := begin.Add(p.load.every)
	fresh := true
	one := func(n int, due time.Time) error {
		if err := p.produce(n%p.load.partitions, due, fresh); err != nil {
			return err
		}
		fresh = false
		now := time.Now()
		if now.Before(commit) && n < total-1 {
			return nil
		}
		moments := []time.Time{minTime(commit, now)}
		for commit = commit.Add(p.load.every); p.load.perSecond > 0 && commit.Before(now); commit = commit.Add(p.load.every) {
			moments = append(moments, commit)
		}
		if p.load.perSecond == 0 {
			moments[0] = now
		}
		if err := p.commit(moments); err != nil {
			return err
		}
		if p.load.perSecond == 0 {
			commit = time.Now().Add(p.load.every)
		}
		fresh = true
		return nil
	}
	if p.load.perSecond > 0 {
		due := newSchedule(p.load.perSecond)
		return due.run(total, func(n int) error { return one(n, due.at(n)) })
	}
	for n := range total {
		if err := one(n, time.Now()); err != nil {
			return err
		}
		if _, err := p.collect(p.load.window - 1); err != nil {
			return err
		}
	}
	return nil
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// produce sends the next batch of a partition. The first one of a transaction is waited for, and sent again as long as the
// transaction before is still being ended.
func (p *txnProducer) produce(partition int, due time.Time, first bool) error {
	f := p.frames[partition]
	f.sequence(p.sent[partition])
	p.sent[partition] += f.records
	for {
		p.under <- sent{due: []time.Time{due}, frame: f}
		p.waits++
		if _, err := p.Write(f.bytes); err != nil {
			return err
		}
		if !first {
			return nil
		}
		got, err := p.collect(0)
		if err != nil || got.code == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// commit commits what was written, once all of it is acknowledged.
func (p *txnProducer) commit(due []time.Time) error {
	if _, err := p.collect(0); err != nil {
		return err
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = txnEndVersion, p.id, p.producer, p.epoch, true
	framed := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 0)
	p.under <- sent{due: due}
	p.waits++
	if _, err := p.Write(framed); err != nil {
		return err
	}
	got, err := p.collect(0)
	if err == nil && got.code != 0 {
		err = kerr.ErrorForCode(got.code)
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	p.begin(got.producer, got.epoch)
	return nil
}

// complete checks that readers of committed data reach the end of all partitions, with at least the records that were sent.
func (p *txnProducer) complete(ctx context.Context, s *server, topic string, records int) error {
	c, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ends := func(isolation int8) (sum int64, err error) {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID, req.IsolationLevel = 5, -1, isolation
		in := kmsg.NewListOffsetsRequestTopic()
		in.Topic = topic
		for partition := range p.load.partitions {
			part := kmsg.NewListOffsetsRequestTopicPartition()
			part.Partition, part.Timestamp = int32(partition), -1
			in.Partitions = append(in.Partitions, part)
		}
		req.Topics = append(req.Topics, in)
		resp, err := c.ask(req)
		if err != nil {
			return 0, err
		}
		for _, part := range resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions { //nolint:forcetypeassert // ResponseKind
			sum += part.Offset
			err = errors.Join(err, kerr.ErrorForCode(part.ErrorCode))
		}
		return sum, err
	}
	var stable, high int64
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(retryPause) {
		if stable, err = ends(1); err != nil {
			return err
		}
		if high, err = ends(0); err != nil {
			return err
		}
		if stable == high && high >= int64(records) {
			return nil
		}
	}
	return fmt.Errorf("readers of committed data reach %d of %d; %d records were sent", stable, high, records)
}
