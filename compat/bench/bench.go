package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ottla/compat/franz"
	"ottla/compat/harness"
)

// bench is one run over all lines.
type bench struct {
	settings
	servers  []*server // nodes that are alone
	clusters []*server
	lines    []*line
	begin    time.Time

	matching int // lines that were asked for
}

// line is one kind of load. Its rounds are alternated between the servers.
type line struct {
	name string
	// prepare is called once for each server before its rounds; nil if there is nothing to do.
	prepare func(ctx context.Context, s *server) error
	// round makes one round and gives its figures, the same ones each time.
	round func(ctx context.Context, s *server) (figures, error)
	// end gives back what prepare made; nil if there is nothing.
	end func() error
	// alone marks a line that starts servers of its own.
	alone bool
	// cluster marks a line that is measured on clusters.
	cluster bool
	// left says why the line could not be measured.
	left string

	results map[harness.Kind][]figures // of the measured rounds
}

// figure is one measured value of a round.
type figure struct {
	name    string // with its unit
	value   float64
	higher  bool // more is better
	neutral bool // neither is better: it says what the load was
}

type figures []figure

// server is one of the two that are measured: a node that is alone, or the brokers of a cluster (cluster.go).
type server struct {
	kind     harness.Kind
	node     *harness.Node // that is alone; nil in a cluster
	brokers  []broker
	replicas int // of each partition
	close    func()

	ref     *franz.Client // for what surrounds the measured load
	dir     string
	count   int                 // topics made, for their names
	leaders map[string][]string // addresses by topic and partition
}

// broker is a process whose use counts.
type broker interface {
	Addr() string
	DataDir() string
	LogTail(lines int) string
	Process() *harness.Process
}

// Kind is the kind of all brokers.
func (s *server) Kind() harness.Kind { return s.kind }

// Addr is host:port of the first broker.
func (s *server) Addr() string { return s.brokers[0].Addr() }

// leader is host:port of the broker that leads a partition of a topic that was made here.
func (s *server) leader(topic string, partition int) string { return s.leaders[topic][partition] }

// logTail gives the last lines that each broker printed.
func (s *server) logTail(lines int) string {
	var all []string
	for _, one := range s.brokers {
		all = append(all, one.LogTail(lines))
	}
	return strings.Join(all, "\n")
}

// properties are laid over the harness's for both servers alike. Data that a round leaves behind goes soon, and its memory with
// it: where that of a virtual machine is taken from the host when first touched, a page cache that only grows makes the kernel's
// part of a write four times as dear, for whichever server comes by. Sessions of groups may be short.
var properties = map[string]string{
	"log.segment.delete.delay.ms":                  "100",
	"log.initial.task.delay.ms":                    "100", // before that nothing is deleted
	"log.retention.check.interval.ms":              "600000",
	"group.min.session.timeout.ms":                 "500",
	"group.consumer.min.session.timeout.ms":        "500",
	"group.consumer.session.timeout.ms":            "1000",
	"group.consumer.min.heartbeat.interval.ms":     "50",
	"group.consumer.heartbeat.interval.ms":         "100",
	"offsets.topic.num.partitions":                 "10",
	"transaction.state.log.num.partitions":         "10",
	"group.consumer.assignors":                     "uniform,range",
	"group.coordinator.rebalance.protocols":        "classic,consumer",
	"share.coordinator.state.topic.num.partitions": "1",
}

// newServer makes a server in a new folder, with more properties; it is not started.
func newServer(kind harness.Kind, dir string, more map[string]string) (*server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	all := maps.Clone(properties)
	maps.Copy(all, more)
	node, err := harness.NewNode(harness.Options{Kind: kind, Name: "bench-" + string(kind), Dir: dir, Properties: all})
	if err != nil {
		return nil, err
	}
	return &server{
		kind: kind, node: node, brokers: []broker{node}, replicas: 1, close: node.Close,
		ref: franz.New(node.Addr()), dir: dir, leaders: map[string][]string{},
	}, nil
}

// all runs the lines that were asked for. What was measured until an error stays in the report.
func (b *bench) all(ctx context.Context) error {
	defer func() {
		for _, s := range slices.Concat(b.servers, b.clusters) {
			s.close()
		}
	}()
	b.begin = time.Now()
	lines := slices.DeleteFunc(allLines(b.settings), func(l *line) bool { return !b.only.MatchString(l.name) })
	b.matching = len(lines)
	for _, l := range lines {
		b.lines = append(b.lines, l)
		l.results = map[harness.Kind][]figures{}
		if err := b.line(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (b *bench) line(ctx context.Context, l *line) (err error) {
	if l.end != nil {
		defer func() { err = errors.Join(err, l.end()) }()
	}
	servers, err := b.serversFor(ctx, l)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if l.prepare == nil {
			break
		}
		harness.Progress("%s: preparing %s", l.name, s.Kind())
		if err := l.prepare(ctx, s); errors.Is(err, errNotServed) {
			l.left = fmt.Sprintf("%s: %v", s.Kind(), err)
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", s.Kind(), err)
		}
	}
	first := 0 // a round that does not count, so that what is made once is made
	if l.alone {
		first = 1
	}
	for n := first; n <= b.rounds; n++ {
		if n > 1 && b.late() {
			harness.Progress("%s: time is short, no further rounds", l.name)
			break
		}
		for i := range servers {
			s := servers[(i+n)%len(servers)] // who comes first alternates too
			got, err := l.round(ctx, s)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w\n%s", s.Kind(), n, err, s.logTail(5))
			}
			harness.Progress("%s: round %d of %d, %s: %s", l.name, n, b.rounds, s.Kind(), got)
			if n > 0 {
				l.results[s.Kind()] = append(l.results[s.Kind()], got)
			}
			settle(ctx)
		}
	}
	return nil
}

// quickLimit is what all lines together should take with -quick.
const quickLimit = 7 * time.Minute

// late tells, with -quick, that the lines so far have taken more than their share of the time.
func (b *bench) late() bool {
	const credit = 3 // lines: the first ones are the slowest
	return b.quick && time.Since(b.begin) > quickLimit*time.Duration(len(b.lines)+credit)/time.Duration(b.matching+credit)
}

// errNotServed says that a server does not have what a line measures.
var errNotServed = errors.New("not served")

// serversFor starts the servers when the first line needs them.
func (b *bench) serversFor(ctx context.Context, l *line) ([]*server, error) {
	if l.alone {
		var all []*server
		for _, kind := range b.targets {
			s, err := newServer(kind, filepath.Join(b.dir, "alone-"+string(kind)), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}
	if l.cluster {
		return b.startClusters(ctx)
	}
	if b.servers != nil {
		return b.servers, nil
	}
	for _, kind := range b.targets {
		more := map[string]string{}
		if kind == harness.Ottla {
			more["ottla.debug.pprof.listener"] = b.profile // empty: left out
		}
		s, err := newServer(kind, filepath.Join(b.dir, string(kind)), more)
		if err != nil {
			return nil, err
		}
		if _, err := s.node.Start(ctx); err != nil {
			return nil, err
		}
		b.servers = append(b.servers, s)
	}
	return b.servers, nil
}

// settle leaves the disk and the servers a moment between rounds, so that one does not pay for the other.
func settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(300 * time.Millisecond):
	}
}
