package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ottla/compat/franz"
	"ottla/compat/harness"
)

// brokersOfCluster is how many brokers a cluster has, and replicas each partition.
const brokersOfCluster = 3

// patient is laid over the harness's properties of a cluster, controllers included: nobody is fenced because a machine is busy, and the
// heartbeats are as far apart as they are by default.
var patient = map[string]string{"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}

// clusterLines are loads on three brokers of a kind, each set under a controller of Apache Kafka that it has for itself, with three
// replicas of each partition, of which two must have a record before it is acknowledged (acks=all). What is used is the sum over
// the brokers; the controllers are not counted.
func clusterLines(s settings, n func(full int) int, seconds float64) []*line {
	const spread = 12
	load := func(connections, requests, records int) produceLoad {
		return produceLoad{connections: connections, requests: n(requests), records: records, batchBytes: 16 << 10, window: 5, idempotent: true}
	}
	rate := func(connections, perSecond int) rateLoad {
		return rateLoad{connections: connections, perSecond: perSecond, seconds: seconds, recordBytes: 1100, idempotent: true}
	}
	all := []*line{
		load(1, 6000, 16).line("RF 3, 16 KiB of 1 KB records, 1 part."),
		load(spread, 1000, 16).line("RF 3, 16 KiB of 1 KB records, 12 part."),
		rate(spread, 1000).line("RF 3, 1 KB records, 1,000/s, 12 part."),
	}
	if !s.quick {
		all = append(all,
			load(spread, 1000, 160).line("RF 3, 16 KiB of 100 B records, 12 part."),
			rate(1, 500).line("RF 3, 1 KB records, 500/s, 1 part."),
			tail{rate(1, 500)}.line("RF 3, end to end 1 KB records, 500/s"),
			&line{name: "RF 3, Java producer, 1 KB records, 12 part.", round: javaProducer{200_000, 1024, spread}.round},
			&line{name: "RF 3, Java producer, 100 B records, 12 part.", round: javaProducer{1_000_000, 100, spread}.round},
			(&catchUp{connections: 3, batches: 2048, passes: 3, topics: map[string]string{}}).line("RF 3, fetch 1 MiB, 3 connections"),
			idleLine(1000, 10*time.Second),
		)
	}
	for _, l := range all {
		l.cluster = true
	}
	return all
}

// startClusters starts the clusters when the first line needs them.
func (b *bench) startClusters(ctx context.Context) ([]*server, error) {
	if b.clusters != nil {
		return b.clusters, nil
	}
	for _, kind := range b.targets {
		s, err := newCluster(ctx, kind, filepath.Join(b.dir, "cluster-"+string(kind)), b.profile)
		if s != nil {
			b.clusters = append(b.clusters, s)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.clusters, nil
}

// newCluster starts a controller and brokers. Where something fails the server that comes with the error is to be closed.
func newCluster(ctx context.Context, kind harness.Kind, dir, profile string) (*server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cluster, err := harness.NewCluster(harness.ClusterOptions{Dir: dir, Controllers: 1, Features: harness.LetIn, Properties: patient})
	if err != nil {
		return nil, err
	}
	s := &server{kind: kind, replicas: brokersOfCluster, close: cluster.Close, dir: dir, leaders: map[string][]string{}}
	if err := cluster.Start(ctx); err != nil {
		return s, err
	}
	for i := range brokersOfCluster {
		all := maps.Clone(properties)
		all["min.insync.replicas"] = "2"
		if kind == harness.Ottla && profile != "" {
			if all["ottla.debug.pprof.listener"], err = nextPort(profile, i); err != nil {
				return s, err
			}
		}
		member, err := cluster.AddBroker(kind, all)
		if err != nil {
			return s, err
		}
		if err := member.Start(ctx); err != nil {
			return s, err
		}
		s.brokers = append(s.brokers, member)
	}
	s.ref = franz.New(s.Addr())
	return s, nil
}

// nextPort gives the address whose port is so much higher.
func nextPort(addr string, more int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	number, err := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(number+more)), err
}

// idleLine is what many partitions cost of which none is written to.
func idleLine(partitions int, idle time.Duration) *line {
	return &line{
		name: fmt.Sprintf("RF 3, %d idle partitions", partitions),
		prepare: func(ctx context.Context, s *server) error {
			_, err := s.topic(ctx, partitions)
			return err
		},
		round: func(ctx context.Context, s *server) (figures, error) {
			used, err := s.during(func() error {
				select {
				case <-ctx.Done():
				case <-time.After(idle):
				}
				return ctx.Err()
			})
			return figures{{name: "CPU ms/s", value: used.cpuSeconds * 1e3 / used.wall.Seconds()}, used.peak()}, err
		},
	}
}
