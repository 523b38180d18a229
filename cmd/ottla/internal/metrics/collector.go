package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ottla/cmd/ottla/internal/broker"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/controller/quorum"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/server"
	"ottla/storage/clean"
	"ottla/storage/fetcher"
	"ottla/storage/replica"
	"ottla/storage/space"
	"ottla/storage/store"
)

// Source is what a node shows. All of it is safe to use at any time from anywhere.
type Source struct {
	NodeID   protocol.NodeID
	Config   *config.BrokerConfig
	Replicas *replica.Manager
	Store    *store.Store
	Groups   *shard.Manager
	// Transactions are this node's coordinators of transactions, with what serves them; nil: there are none.
	Transactions *shard.Manager
	Markers      *broker.Markers
	Additions    *broker.Additions
	ISR          *broker.ISRChanges // nil: nobody follows
	Fetchers     *fetcher.Fetchers  // nil: nobody is followed
	Pool         *compress.Pool
	Image        func() *metadata.Image
	Quorum       func() quorum.Status
	State        func() broker.State
	// Servers are those of brokers and of controllers; nil: they are not there yet.
	Servers func() []*server.Server

	// Space gives what is left in a log directory; nil: nobody looks.
	Space func(dir string) *space.Directory
	// Waited tells how long the oldest operation on a log directory has been under way; nil: nobody knows.
	Waited func(dir string) (time.Duration, bool)

	// Cleaner tells what compaction does; nil: there is none.
	Cleaner func(now time.Time) clean.Stats

	// PartitionsMax is ottla.metrics.partitions.max.
	PartitionsMax int
	// Patience is how long a scrape waits for the coordinators of groups.
	Patience time.Duration
	Now      func() time.Time // nil: time.Now
}

// Collector makes the series of a node, anew at each scrape. It implements
// prometheus.Collector.
type Collector struct {
	source Source

	mu          sync.Mutex // one scrape at a time; guards what follows
	percentiles percentiles
	firsts      firsts
	controller  controllerView
}

// NewCollector makes the Collector of a node.
func NewCollector(source Source) *Collector {
	if source.Now == nil {
		source.Now = time.Now
	}
	return &Collector{source: source, percentiles: percentiles{windows: map[string]*window{}}}
}

// Describe implements prometheus.Collector. It sends nothing: which series there
// are is known only when they are made.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

var (
	partitionSeries = gauge("ottla_metrics_partition_series",
		"Whether there are series of single partitions: of the partitions on this node, and of the offsets that groups have committed. "+
			"They are switched off beyond ottla.metrics.partitions.max of either; sums remain.", "of")
	brokerState = gauge("kafka_server_kafkaserver_brokerstate", "1 starting, 2 recovering or fenced, 3 running, 6 pending controlled shutdown, 7 shutting down.")
)

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) { c.collect(channelPage(to)) }

// Page gives all series as text, as Prometheus reads it: what a registry makes of
// Collect, for a tenth of the memory.
func (c *Collector) Page() Page {
	text := newTextPage()
	c.collect(text)
	return text.page()
}

func (c *Collector) collect(p page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// What is committed is asked before where the logs end, as tools do: a group that
	// keeps up must not look as if it were ahead.
	answers, unanswered := c.survey(c.source.Now())
	now := c.source.Now()
	image := c.source.Image()
	local := c.source.Replicas.DescribeAll()
	p.put(brokerState, kafkaState(c.source.State()))
	c.collectNetwork(p, now)
	c.collectTraffic(p)
	c.collectReplicas(p, local)
	c.collectDirectories(p)
	c.collectSpace(p)
	c.collectCleaner(p)
	c.collectController(p, image)
	c.collectQuorum(p)
	c.collectCluster(p, image)
	detailed := len(local) <= c.source.PartitionsMax
	p.put(partitionSeries, oneIf(detailed), "partitions")
	if detailed {
		collectPartitions(p, local)
	}
	c.collectFetchers(p, now, local, detailed)
	p.put(groupUnanswered, float64(unanswered))
	c.collectGroups(p, now, local, answers)
	c.collectCoordinators(p, now)
	collectDisk(p)
}

// kafkaState gives a state of the broker as org.apache.kafka.metadata.BrokerState.
func kafkaState(state broker.State) float64 {
	switch state {
	case broker.Starting:
		return 1
	case broker.Fenced:
		return 2
	case broker.Running:
		return 3
	case broker.ShuttingDown:
		return 6
	}
	return 7
}

func number[N ~int32 | ~int16 | ~int64 | ~int](n N) string { return strconv.FormatInt(int64(n), 10) }
