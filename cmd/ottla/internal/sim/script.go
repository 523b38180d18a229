package sim

import (
	"fmt"
	"time"

	"ottla/protocol/compress"
)

// scriptStops are when the node of the script is stopped in order and killed: what it writes then, and when it starts, may find no
// room either.
var scriptStops = []struct {
	at  time.Duration
	how end
}{{2 * time.Second, kill}, {3500 * time.Millisecond, cleanStop}}

// scriptPlan is a plan that no seed chooses: few seconds in which a node does everything that writes, so that each of its writes can be
// made to fail in a run of its own. Records idempotent and plain, in transactions and copied in transactions with their offsets; logs
// that roll, that lose their old segments by size, by time and by DeleteRecords, that are compacted, Kafka's own among them; topics
// that come, go, grow and move between two disks; checkpoints, snapshots of the metadata, a kill and a clean stop.
func scriptPlan() plan {
	p := plan{
		duration: 5 * time.Second, dirs: []string{"/disk0", "/disk1"}, metaDir: "/disk0",
		network: networkPlan{low: 20 * time.Microsecond, high: 200 * time.Microsecond},
		ending:  endingPlan{restart: true, cut: true},
	}
	p.overrides = append(p.baseProperties(), "controller.quorum.bootstrap.servers=h0:9093",
		"metadata.log.max.record.bytes.between.snapshots=1000", "internal.metadata.log.segment.bytes=2000", "metadata.max.retention.ms=1000",
		"metadata.max.idle.interval.ms=0", "log.flush.offset.checkpoint.interval.ms=1000", "replica.high.watermark.checkpoint.interval.ms=1000",
		"log.retention.check.interval.ms=500", "ottla.open.files.max=16", "num.recovery.threads.per.data.dir=1")
	topic := func(name string, partitions int32, configs ...setting) *topicPlan {
		t := &topicPlan{name: name, partitions: partitions, retention: -1, retentionBytes: -1}
		t.configs = append(configs, setting{"internal.segment.bytes", "2000"}, setting{"index.interval.bytes", "300"},
			setting{"message.timestamp.after.max.ms", fmt.Sprint(int64(1) << 62)}, setting{"file.delete.delay.ms", "100"})
		p.topics = append(p.topics, t)
		return t
	}
	sized := topic("sized", 1, setting{"retention.ms", "-1"}, setting{"retention.bytes", "4000"}, setting{"flush.messages", "1"})
	sized.retentionBytes, sized.flush, sized.trimmed = 4000, true, true
	timed := topic("timed", 1, setting{"retention.ms", "1000"}, setting{"segment.ms", "500"})
	timed.retention, timed.grows = time.Second, true
	topic("comes-and-goes", 2, setting{"retention.ms", "-1"}).churn = true
	for i, codec := range []compress.Codec{compress.None, compress.LZ4} {
		p.producers = append(p.producers, producerPlan{
			idempotent: i == 0, acks: -1, version: 13, inFlight: 2, pace: 150 * time.Millisecond, codec: codec, largest: 5, valueBytes: 100,
			topics: p.topics,
		})
	}
	p.consumers = append(p.consumers, consumerPlan{
		version: 17, sessions: true, minBytes: 1, maxBytes: 1 << 20, partBytes: 1 << 20, maxWait: 500 * time.Millisecond, pace: 200 * time.Millisecond,
		topics: p.topics,
	})
	p.scriptTransactions()
	return p
}

// scriptTransactions adds two producers in transactions, of either version, and a copier.
func (p *plan) scriptTransactions() {
	p.transactionTopics(true, 1, 1, 1, 2000)
	t := &p.transactions
	for i := range 3 {
		t.transactors = append(t.transactors, transactorPlan{
			second: i != 1, timeout: 3 * time.Second, pace: 150 * time.Millisecond, abort: 300, crash: 50, copies: i == 2,
		})
	}
	t.readers = append(t.readers, txReaderPlan{committed: true, maxWait: 500 * time.Millisecond, maxBytes: 1 << 20})
	p.overrides = append(p.overrides, "transaction.abort.timed.out.transaction.cleanup.interval.ms=500")
	p.compact(500, "0", 0)
	for _, topic := range t.own {
		topic.compactOwn(2000, "0", 500, 100)
	}
	p.cleaner(100, 1, 524288, 1<<40)
}

// order is something that the admin of the script does.
type order struct {
	topic int // of plan.topics that the admin looks after
	do    func(a *admin, t *adminTopic)
}

// scriptOrders are what he does, one after the other, over and over.
func scriptOrders() []order {
	move := (*admin).moveAll
	trim := func(a *admin, t *adminTopic) {
		if t.current != nil {
			a.trim(t)
		}
	}
	appear := func(_ *admin, t *adminTopic) { t.wanted = !t.wanted }
	return []order{
		{0, move},
		{2, appear},
		{2, appear},
		{1, func(_ *admin, t *adminTopic) { t.count = min(t.count+1, 4) }},
		{0, trim},
		{3, move},
		{5, move},
		{6, move},
		{1, move},
		{2, move},
	}
}

// scripted has the process end when the script says so.
func (s *Simulation) scripted() {
	for _, stop := range scriptStops {
		s.After(stop.at, "the script", func() {
			h := s.hosts[0]
			switch {
			case !h.up || h.stopping:
			case stop.how == kill:
				h.die(kill)
			default:
				h.stop()
			}
		})
	}
}
