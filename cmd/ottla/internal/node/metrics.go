package node

import (
	"context"
	"fmt"
	"net"
	"time"

	"ottla/cmd/ottla/internal/metrics"
	"ottla/controller/config"
	"ottla/protocol/server"
)

// surveyPatience is how long a scrape waits for the coordinators of groups: less
// than scrapers wait for it.
const surveyPatience = 2 * time.Second

// Metrics makes what shows this node's metrics. After Start only. servers may be
// nil, and the clock as well.
func (n *Node) Metrics(servers func() []*server.Server, clock func() time.Time) *metrics.Collector {
	return metrics.NewCollector(metrics.Source{
		NodeID: n.config.NodeID, Config: n.config, Replicas: n.replicas, Store: n.store, Groups: n.groups, ISR: n.isr, Fetchers: n.fetchers, Pool: n.pool,
		Image: n.quorum.Image, Quorum: n.quorum.Status, State: n.lifecycle.State, Servers: servers,
		PartitionsMax: int(n.config.Int("ottla.metrics.partitions.max")), Patience: surveyPatience, Now: clock, Space: n.Space, Waited: n.waited,
		Cleaner: n.cleaner.Stats, Transactions: n.transactions.shards, Markers: n.transactions.markers, Additions: n.transactions.additions,
	})
}

// openMetrics listens for those who scrape, if the node is to be scraped. They are
// told that it is starting until showMetrics.
func (r *runner) openMetrics(node *config.BrokerConfig) error {
	address := node.String("ottla.metrics.listener")
	if address == "" {
		return nil
	}
	on, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("ottla.metrics.listener=%s cannot be opened: %w", address, err)
	}
	r.metrics = metrics.NewServer(r.logger)
	r.logger.Info("metrics are served", "address", on.Addr().String())
	r.tasks.Go(func() {
		if err := r.metrics.Serve(on); err != nil {
			r.logger.Error("metrics are not served any more", "error", err)
		}
	})
	return nil
}

// showMetrics is called when the node has started and its servers are there.
func (r *runner) showMetrics() {
	if r.metrics == nil {
		return
	}
	collector := r.node.Metrics(func() []*server.Server { return []*server.Server{r.brokers, r.controllers} }, nil)
	r.metrics.Show(metrics.Node{Page: collector.Page, Healthy: collector.Healthy, Ready: collector.Ready})
}

// closeMetrics comes before the node is stopped: nobody may look into it then.
func (r *runner) closeMetrics() {
	if r.metrics == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	if err := r.metrics.Close(ctx); err != nil {
		r.logger.Warn("a scrape was cut", "error", err)
	}
}
