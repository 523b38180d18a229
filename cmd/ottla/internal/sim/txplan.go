package sim

import (
	"fmt"
	"time"

	"ottla/cmd/ottla/internal/seeded"
)

// transactionPlan is what a seed does with transactions; nothing if it has no
// transactors.
type transactionPlan struct {
	transactors []transactorPlan
	readers     []txReaderPlan
	source      *topicPlan    // what transactors write to
	copied      *topicPlan    // what copiers write to: partition by partition
	own         []*topicPlan  // __transaction_state, __consumer_offsets
	expiry      time.Duration // after which a transactional id that nobody uses is forgotten; 0: never
}

// transactorPlan is one transactional id and those who use it, one after the other.
type transactorPlan struct {
	second  bool // transactions v2 (KIP-890)
	copies  bool // reads a partition of the source, and writes what it reads with its offsets
	n       int32
	timeout time.Duration
	pace    time.Duration // between transactions, about
	// Per mille: of transactions, that are aborted, that are left open by an instance that ends,
	// or by one that goes on when another is there; of requests, that come late.
	abort, crash, zombie, late int
}

type txReaderPlan struct {
	committed bool
	maxWait   time.Duration
	maxBytes  int32
}

func (p *plan) planTransactions(r *seeded.Random) {
	if !r.Chance(500) {
		return
	}
	// A power cut that takes a marker or an offset may tear what was promised: what is
	// promised over it was flushed.
	f := p.faults
	flush := f.cuts || f.failing || f.full || p.ending.cut || r.Chance(300)
	p.transactionTopics(flush, 1+int32(r.Below(3)), 1+int32(r.Below(3)), 1+int32(r.Below(3)), seeded.Pick(r, 700, 3000, 30000))
	p.overrides = append(p.overrides,
		fmt.Sprintf("transaction.abort.timed.out.transaction.cleanup.interval.ms=%d", seeded.Pick(r, 500, 3000, 10000)))
	t := &p.transactions
	second := r.Below(3) // 0: none, 1: all, 2: some
	for i := range 2 + r.Below(3) {
		q := transactorPlan{
			second: second == 1 || second == 2 && r.Chance(500), timeout: seeded.Pick(r, 3*time.Second, 10*time.Second, 30*time.Second),
			pace: r.Between(5*time.Millisecond, 300*time.Millisecond), abort: seeded.Pick(r, 50, 300), crash: seeded.Pick(r, 0, 20, 100), zombie: seeded.Pick(r, 0, 20, 100),
		}
		if q.second { // the first version does not know a late request for one
			q.late = seeded.Pick(r, 0, 20, 100)
		}
		if i > 0 && r.Chance(500) || i == 1 {
			q.copies, q.n = true, int32(i-1)%t.source.partitions
			for _, other := range t.transactors {
				q.copies = q.copies && !(other.copies && other.n == q.n)
			}
		}
		t.transactors = append(t.transactors, q)
	}
	for i := range 1 + r.Below(2) {
		t.readers = append(t.readers, txReaderPlan{committed: i == 0, maxWait: seeded.Pick(r, 0, 100*time.Millisecond, 3*time.Second), maxBytes: seeded.Pick[int32](r, 500, 1<<20)})
	}
	compacts, own := r.Chance(400), r.Chance(400)
	if compacts {
		p.compact(seeded.Pick(r, 0, 1000, 86400000), seeded.Pick(r, "0", "0.3"), seeded.Pick(r, 0, 0, 2000))
	}
	if own {
		for _, topic := range t.own {
			topic.compactOwn(seeded.Pick(r, 700, 2000, 6000), seeded.Pick(r, "0", "0.3"), seeded.Pick(r, 0, 1000, 86400000), seeded.Pick(r, 0, 100, 10000))
		}
	}
	if compacts || own {
		p.cleaner(seeded.Pick(r, 20, 300, 3000), 1+r.Below(3), seeded.Pick(r, 1, 524288), seeded.Pick(r, 5000, 1<<40))
	}
	if r.Chance(300) {
		t.expiry = seeded.Pick(r, time.Second, 4*time.Second)
		p.overrides = append(p.overrides, fmt.Sprintf("transactional.id.expiration.ms=%d", t.expiry.Milliseconds()),
			fmt.Sprintf("transaction.remove.expired.transaction.cleanup.interval.ms=%d", seeded.Pick(r, 200, 2000)))
	}
}

// transactionTopics adds the topics of the transactions, and Kafka's own, of so many partitions.
func (p *plan) transactionTopics(flush bool, partitions, states, offsets int32, segment int) {
	topic := func(name string) *topicPlan {
		t := &topicPlan{name: name, partitions: partitions, retention: -1, retentionBytes: -1, flush: flush, transactions: true}
		t.configs = append(t.configs, setting{"retention.ms", "-1"}, setting{"internal.segment.bytes", fmt.Sprint(segment)})
		if flush {
			t.configs = append(t.configs, setting{"flush.messages", "1"})
		}
		p.topics = append(p.topics, t)
		return t
	}
	t := &p.transactions
	t.source, t.copied = topic("tx-source"), topic("tx-copied")
	for _, own := range []struct {
		name       string
		partitions int32
		property   string
	}{
		{"__transaction_state", states, "transaction.state.log.num.partitions"}, {"__consumer_offsets", offsets, "offsets.topic.num.partitions"},
	} {
		t.own = append(t.own, &topicPlan{
			name: own.name, partitions: own.partitions, auto: true, retention: -1, retentionBytes: -1, flush: flush, transactions: true, internal: true,
		})
		p.overrides = append(p.overrides, fmt.Sprintf("%s=%d", own.property, own.partitions))
	}
	p.topics = append(p.topics, t.own...)
	p.overrides = append(p.overrides, "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1")
	if flush {
		p.overrides = append(p.overrides, "log.flush.interval.messages=1")
	}
}

// compact has the topics of the transactions compacted while they are used. No two of their records have the same key, so of what was
// committed all stays; what was aborted goes at any time, and nobody looks at it.
func (p *plan) compact(retentionMs int, ratio string, lagMs int) {
	t := &p.transactions
	for _, topic := range []*topicPlan{t.source, t.copied} {
		topic.compacted = true
		topic.configs = append(topic.configs, setting{"cleanup.policy", "compact"}, setting{"min.cleanable.dirty.ratio", ratio},
			setting{"delete.retention.ms", fmt.Sprint(retentionMs)}, setting{"min.compaction.lag.ms", fmt.Sprint(lagMs)})
	}
	for i := range t.readers {
		t.readers[i].committed = true
	}
}

// compactOwn has one of Kafka's own topics compacted often, in small segments: coordinators must load from what is left what they would
// from all of it. As a client that knows what it wants, the admin creates it before a coordinator does.
func (t *topicPlan) compactOwn(segment int, ratio string, retentionMs, deleteDelayMs int) {
	t.compacted, t.auto = true, false
	t.configs = append(t.configs, setting{"cleanup.policy", "compact"}, setting{"internal.segment.bytes", fmt.Sprint(segment)},
		setting{"min.cleanable.dirty.ratio", ratio}, setting{"delete.retention.ms", fmt.Sprint(retentionMs)},
		setting{"file.delete.delay.ms", fmt.Sprint(deleteDelayMs)})
	if t.flush {
		t.configs = append(t.configs, setting{"flush.messages", "1"})
	}
}

// cleaner says how the cleaner works.
func (p *plan) cleaner(backoffMs, threads, buffer, bytesPerSecond int) {
	p.overrides = append(p.overrides, fmt.Sprintf("log.cleaner.backoff.ms=%d", backoffMs), fmt.Sprintf("log.cleaner.threads=%d", threads),
		fmt.Sprintf("log.cleaner.io.buffer.size=%d", buffer), fmt.Sprintf("log.cleaner.io.max.bytes.per.second=%d", bytesPerSecond))
}
