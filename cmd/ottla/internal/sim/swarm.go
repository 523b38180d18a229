package sim

import (
	"fmt"
	"strings"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"

	"ottla/cmd/ottla/internal/seeded"
)

// plan is all that a seed decides beforehand. Each seed leaves things out (swarm
// testing): what is always there hides what happens only without it.
type plan struct {
	overrides []string // the node's properties
	dirs      []string // log directories
	metaDir   string
	topics    []*topicPlan
	producers []producerPlan
	consumers []consumerPlan
	seekers   int
	duration  time.Duration // until the faults end
	network   networkPlan
	faults    faultPlan
	ending    endingPlan

	transactions transactionPlan
}

// topicPlan is a topic as it is created, each time.
type topicPlan struct {
	name       string
	partitions int32
	configs    []setting

	flush          bool          // flushed before the answer
	retention      time.Duration // -1: none
	retentionBytes int64         // -1: none
	appendTime     bool

	churn   bool // deleted and created again
	grows   bool // gets more partitions
	trimmed bool // has records deleted
	auto    bool // created by a client's Metadata

	transactions bool // written to in transactions, and by nobody else
	internal     bool // Kafka's own
	compacted    bool
}

type setting struct{ name, value string }

type producerPlan struct {
	idempotent bool
	retries    bool // of a plain one
	acks       int16
	version    int16
	inFlight   int
	pace       time.Duration // between batches, about
	codec      compress.Codec
	largest    int // records in a batch
	valueBytes int
	oddTimes   bool // timestamps far from now
	oversized  bool // batches that are too large, now and then
	topics     []*topicPlan
}

type consumerPlan struct {
	version   int16
	sessions  bool
	committed bool // read_committed
	from      startAt
	minBytes  int32
	maxBytes  int32
	partBytes int32
	maxWait   time.Duration
	pace      time.Duration // between polls, about
	topics    []*topicPlan
}

// startAt is where a consumer begins.
type startAt int8

const (
	fromEarliest startAt = iota
	fromLatest
	fromTime
)

type networkPlan struct {
	low, high time.Duration // latency of one way
	slow      int           // per mille of messages that take far longer
	cut       int           // per mille of messages after which the connection is cut
}

type faultPlan struct {
	kills, cuts, stops bool
	midOperation       bool // kills and cuts strike within operations on the disk
	full, failing      bool // ENOSPC, EIO
	slowWorkers        bool
	channelCuts        bool
	pause              time.Duration // between faults, about
	slowDelays         time.Duration
}

type endingPlan struct {
	restart bool // after all was read: a clean stop, and read again
	cut     bool // with a power cut in between
}

func newPlan(r *seeded.Random) plan {
	p := plan{duration: r.Between(15*time.Second, 60*time.Second)}
	for i := range 1 + r.Below(3) {
		p.dirs = append(p.dirs, fmt.Sprintf("/disk%d", i))
	}
	p.metaDir = p.dirs[0]
	if r.Chance(400) {
		p.metaDir = "/meta"
	}
	p.nodeProperties(r)
	p.planTopics(r)
	p.planClients(r)
	p.network = networkPlan{low: 20 * time.Microsecond, high: seeded.Pick(r, 200*time.Microsecond, 2*time.Millisecond, 20*time.Millisecond)}
	if r.Chance(500) {
		p.network.slow = 5
	}
	if r.Chance(600) {
		p.network.cut = seeded.Pick(r, 1, 3, 10)
	}
	p.faults = faultPlan{
		kills: r.Chance(600), cuts: r.Chance(600), stops: r.Chance(500), midOperation: r.Chance(600),
		full: r.Chance(300), failing: r.Chance(200), slowWorkers: r.Chance(300), channelCuts: r.Chance(300),
		pause: r.Between(3*time.Second, 15*time.Second), slowDelays: seeded.Pick(r, 50*time.Millisecond, time.Second, 8*time.Second),
	}
	p.ending = endingPlan{restart: r.Chance(400), cut: r.Chance(500)}
	p.planTransactions(r.Fork())
	return p
}

// baseProperties are those that every node of the simulation needs.
func (p *plan) baseProperties() []string {
	return []string{
		"process.roles=broker,controller", "node.id=1",
		"listeners=PLAINTEXT://h0:9092,CONTROLLER://h0:9093", "controller.listener.names=CONTROLLER",
		"log.dirs=" + strings.Join(p.dirs, ","), "metadata.log.dir=" + p.metaDir,
		"auto.create.topics.enable=true", "offsets.topic.replication.factor=1",
	}
}

func (p *plan) nodeProperties(r *seeded.Random) {
	p.overrides = p.baseProperties()
	set := func(perMille int, name string, values ...any) {
		if r.Chance(perMille) {
			p.overrides = append(p.overrides, fmt.Sprintf("%s=%v", name, values[r.Below(len(values))]))
		}
	}
	if r.Chance(700) {
		set(1000, "controller.quorum.bootstrap.servers", "h0:9093")
	} else {
		set(1000, "controller.quorum.voters", "1@h0:9093")
	}
	set(500, "metadata.log.max.record.bytes.between.snapshots", 200, 2000, 20000)
	set(300, "metadata.log.max.snapshot.interval.ms", 0, 1000, 7000)
	set(500, "metadata.max.idle.interval.ms", 0, 100, 5000)
	set(300, "internal.metadata.log.segment.bytes", 2000, 20000)
	set(300, "metadata.max.retention.ms", 1000, 20000)
	set(700, "log.flush.offset.checkpoint.interval.ms", 100, 1000, 5000, 30000)
	set(700, "log.retention.check.interval.ms", 300, 1000, 10000)
	set(500, "replica.high.watermark.checkpoint.interval.ms", 50, 500, 20000)
	set(500, "num.recovery.threads.per.data.dir", 1, 2, 8)
	set(500, "ottla.open.files.max", 16, 17, 40)
	set(400, "max.incremental.fetch.session.cache.slots", 0, 1, 2, 10)
	set(300, "broker.heartbeat.interval.ms", 100, 500)
	set(300, "log.flush.scheduler.interval.ms", 50, 500)
	set(200, "num.partitions", 2, 3)
}

func (p *plan) planTopics(r *seeded.Random) {
	for i := range 2 + r.Below(4) {
		t := &topicPlan{name: fmt.Sprintf("topic-%d", i), partitions: int32(1 + r.Below(3))}
		t.choose(r)
		p.topics = append(p.topics, t)
	}
	if r.Chance(500) {
		p.topics = append(p.topics, &topicPlan{name: "auto", partitions: -1, auto: true, retention: 7 * 24 * time.Hour, retentionBytes: -1})
	}
}

// choose decides a topic's configuration.
func (t *topicPlan) choose(r *seeded.Random) {
	set := func(perMille int, name string, values ...any) {
		if r.Chance(perMille) {
			t.configs = append(t.configs, setting{name, fmt.Sprint(values[r.Below(len(values))])})
		}
	}
	t.retention, t.retentionBytes = -1, -1
	set(700, "internal.segment.bytes", 700, 2000, 6000, 30000)
	set(600, "index.interval.bytes", 0, 64, 300, 1000)
	set(300, "segment.index.bytes", 120, 1200)
	set(300, "segment.ms", 500, 5000, 20000)
	set(200, "segment.jitter.ms", 100, 3000)
	set(400, "file.delete.delay.ms", 0, 100, 10000)
	set(500, "compression.type", "gzip", "snappy", "lz4", "zstd", "uncompressed")
	set(1000, "message.timestamp.after.max.ms", 3600000, int64(1)<<62)
	if t.flush = r.Chance(400); t.flush {
		set(1000, "flush.messages", 1)
	} else {
		set(300, "flush.messages", 3, 20)
		set(300, "flush.ms", 0, 50, 2000)
	}
	if t.appendTime = r.Chance(200); t.appendTime {
		set(1000, "message.timestamp.type", "LogAppendTime")
	}
	t.retention = -1
	if r.Chance(200) {
		t.retention = seeded.Pick(r, 3*time.Second, 15*time.Second)
		set(1000, "retention.ms", t.retention.Milliseconds())
	} else {
		set(1000, "retention.ms", -1) // records of year 1970 are to stay
	}
	if r.Chance(200) {
		t.retentionBytes = seeded.Pick(r, int64(2000), 10000)
		set(1000, "retention.bytes", t.retentionBytes)
	}
	t.churn, t.grows, t.trimmed = r.Chance(300), r.Chance(300), r.Chance(300)
}

func (p *plan) planClients(r *seeded.Random) {
	for range 1 + r.Below(4) {
		q := producerPlan{
			idempotent: r.Chance(650), retries: r.Chance(300), acks: seeded.Pick[int16](r, -1, -1, -1, 1, 0), inFlight: seeded.Pick(r, 1, 2, 5, 5),
			pace: r.Between(2*time.Millisecond, 300*time.Millisecond), largest: seeded.Pick(r, 1, 3, 20),
			valueBytes: seeded.Pick(r, 10, 100, 1000), oddTimes: r.Chance(200), oversized: r.Chance(100),
			codec: seeded.Pick(r, compress.None, compress.None, compress.Gzip, compress.Snappy, compress.LZ4, compress.Zstd),
		}
		if q.idempotent {
			q.acks, q.oddTimes, q.oversized = -1, false, false
		}
		q.version = q.pickVersion(r)
		q.topics = someTopics(r, p.topics, q.version < 13)
		p.producers = append(p.producers, q)
	}
	for range 1 + r.Below(4) {
		c := consumerPlan{
			version: int16(4 + r.Below(14)), sessions: r.Chance(600), committed: r.Chance(300), from: seeded.Pick(r, fromEarliest, fromEarliest, fromLatest, fromTime),
			minBytes: seeded.Pick[int32](r, 0, 1, 1, 500, 5000), maxBytes: seeded.Pick[int32](r, 1, 2000, 1<<20), partBytes: seeded.Pick[int32](r, 1, 500, 1<<20),
			maxWait: seeded.Pick(r, 0, 20*time.Millisecond, 500*time.Millisecond, 3*time.Second), pace: r.Between(time.Millisecond, 300*time.Millisecond),
		}
		c.topics = someTopics(r, p.topics, c.version < 13)
		p.consumers = append(p.consumers, c)
	}
	p.seekers = r.Below(3)
}

func (q *producerPlan) pickVersion(r *seeded.Random) int16 {
	lowest := int16(3)
	if q.codec == compress.Zstd {
		lowest = 7
	}
	highest := protocol.APIOf(protocol.Produce).MaxVersion
	return lowest + int16(r.Below(int(highest-lowest)+1))
}

// someTopics chooses topics for a client. Who names topics does not use one that is
// deleted and created again: nobody could tell to which of the two a record belongs.
func someTopics(r *seeded.Random, all []*topicPlan, byName bool) []*topicPlan {
	var chosen []*topicPlan
	for _, t := range all {
		if r.Chance(600) && !(byName && t.churn) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		for _, t := range all {
			if !(byName && t.churn) {
				return []*topicPlan{t}
			}
		}
	}
	return chosen
}

func (p *plan) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v for %v; network %+v; faults %+v; ending %+v", p.overrides, p.duration, p.network, p.faults, p.ending)
	for _, t := range p.topics {
		fmt.Fprintf(&text, "; %+v", *t)
	}
	for _, q := range p.producers {
		fmt.Fprintf(&text, "; producer %+v", q.describe())
	}
	for _, c := range p.consumers {
		fmt.Fprintf(&text, "; consumer %+v", c.describe())
	}
	for _, q := range p.transactions.transactors {
		fmt.Fprintf(&text, "; transactor %+v", q)
	}
	return text.String()
}

func names(topics []*topicPlan) []string {
	var all []string
	for _, t := range topics {
		all = append(all, t.name)
	}
	return all
}

func (q producerPlan) describe() string {
	topics := names(q.topics)
	q.topics = nil
	return fmt.Sprintf("%+v %v", q, topics)
}

func (c consumerPlan) describe() string {
	topics := names(c.topics)
	c.topics = nil
	return fmt.Sprintf("%+v %v", c, topics)
}
