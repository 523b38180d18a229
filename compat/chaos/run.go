package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
	"ottla/compat/history"
)

// Options say what to do to a node, or to a cluster.
type Options struct {
	Node     *harness.Node
	Cluster  *Cluster // instead of Node
	Seed     uint64
	Duration time.Duration // of the work under faults
	// Pause is about how long it is between two faults. 0, for a cluster: leaders are killed, each once the cluster is whole, and there
	// are no other faults.
	Pause time.Duration
	// SlowDisk is the control group by which the disk is slowed down; nil: it is not.
	SlowDisk *harness.DiskCgroup
	// Copiers are copy loops of other clients.
	Copiers []Copier
}

// Result is what came of it.
type Result struct {
	Seed    uint64
	Faults  map[string]int
	Down    time.Duration // of the node, all together
	Settled time.Duration // from the end of the faults until nothing was undecided
	Copied  int
	Copiers map[string]int // what other clients have copied
	Hung    []string       // of them those that did not end and were killed; another process went on
	// Outages, Paused and WholeAfter are those of a cluster; WholeAfter is from the last fault on.
	Outages    []Outage
	Paused     []Paused
	WholeAfter time.Duration
	Report     *history.Report
	Copy       []string // what is wrong with the copy
	Strange    []string // errors that no fault explains
	Ops        []history.Op
}

// Sound tells whether nothing is wrong.
func (r *Result) Sound() bool {
	return r.Report.Found() == 0 && len(r.Copy) == 0 && len(r.Strange) == 0
}

// Found is all that is wrong.
func (r *Result) Found() []string {
	var all []string
	for _, a := range r.Report.Anomalies {
		all = append(all, a.String())
	}
	return append(append(all, r.Copy...), r.Strange...)
}

func (r *Result) String() string {
	var faults []string
	for name, n := range r.Faults {
		faults = append(faults, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(faults)
	text := fmt.Sprintf("seed %d: faults: %s; down for %.1f s, settled after %.1f s; %d records copied, by other clients %v, hung %v%s\n%s",
		r.Seed, strings.Join(faults, ", "), r.Down.Seconds(), r.Settled.Seconds(), r.Copied, r.Copiers, r.Hung, r.outageText(), r.Report)
	for _, line := range append(slices.Clone(r.Copy), r.Strange...) {
		text += "\n  " + line
	}
	return text
}

// transactionTimeout is that of all producers: short, so that what is abandoned does not
// hold readers for long.
const transactionTimeout = 10 * time.Second

// settleLimit is how long after the faults something may be undecided: the timeout, the
// ten seconds between two looks of a coordinator that has just started, and a busy machine.
const settleLimit = transactionTimeout + 25*time.Second

// run is one run.
type run struct {
	*recorder
	o           Options
	servers     []string
	replicas    int16
	incarnation atomic.Int32
	stopping    chan struct{}
	faults      map[string]int
	down        time.Duration
	workers     sync.WaitGroup
	abandoned   []*kgo.Client
	process     atomic.Int32
	hung        []string // guarded by mu

	outages    []Outage
	paused     []Paused
	wholeAfter time.Duration
}

// otherwise is for how long, besides what a node was down, the last stable offset may stand still: a coordinator that has
// lost its leader goes on once the cluster has another.
func (r *run) otherwise() time.Duration {
	if r.o.Cluster != nil {
		return time.Minute
	}
	return 0
}

// Run works on the node or the cluster, which runs, and is left running.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{recorder: newRecorder(), o: o, replicas: 1, stopping: make(chan struct{}), faults: map[string]int{}}
	strike := r.strike
	if o.Cluster == nil {
		r.servers = []string{o.Node.Addr()}
	} else {
		r.servers, r.replicas, strike = o.Cluster.Bootstrap(), int16(len(o.Cluster.Machines)), r.besiege
	}
	admin, err := r.client()
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := r.createTopics(ctx, kadm.NewClient(admin)); err != nil {
		return nil, err
	}
	r.startWorkers(ctx)
	if err := strike(ctx); err != nil {
		return nil, err
	}
	healed := time.Now()
	close(r.stopping)
	r.workers.Wait()
	defer r.closeAbandoned()
	if err := r.settle(ctx, admin); err != nil {
		return nil, err
	}
	settled := time.Since(healed)
	if err := r.readAll(ctx, admin); err != nil {
		return nil, err
	}
	result := &Result{
		Seed: o.Seed, Faults: r.faults, Down: r.down, Settled: settled, Strange: r.strange, Ops: r.ops,
		Outages: r.outages, Paused: r.paused, WholeAfter: r.wholeAfter, Hung: r.hung,
	}
	result.Report = history.Check(r.ops, history.Options{StuckAfter: int64(transactionTimeout + 10*time.Second + r.down + o.Pause + r.otherwise())})
	result.Copied, result.Copy = r.judgeCopy()
	var wrong []string
	if result.Copiers, wrong, err = r.judgeCopiers(ctx, admin, result.Copied); err != nil {
		return nil, err
	}
	result.Copy = append(result.Copy, wrong...)
	return result, nil
}

func (r *run) createTopics(ctx context.Context, admin *kadm.Client) error {
	for _, t := range topics {
		configs := map[string]*string{"segment.bytes": kadm.StringPtr("1048576")}
		if _, err := admin.CreateTopic(ctx, t.partitions, r.replicas, configs, t.name); err != nil {
			return fmt.Errorf("create %s: %w", t.name, err)
		}
	}
	for _, c := range r.o.Copiers {
		if _, err := admin.CreateTopic(ctx, topics[input].partitions, r.replicas, nil, c.topic()); err != nil {
			return fmt.Errorf("create %s: %w", c.topic(), err)
		}
	}
	return nil
}

func (r *run) startWorkers(ctx context.Context) {
	work := func(f func(ctx context.Context, process int32, random *rand.Rand)) {
		process := r.process.Add(1)
		random := rand.New(rand.NewPCG(r.o.Seed, uint64(process)))
		r.workers.Go(func() { f(ctx, process, random) })
	}
	for range 2 {
		work(r.producePlain)
		work(r.copyLoop)
	}
	for range 3 {
		work(r.transact)
	}
	work(r.feed)
	for _, committed := range []bool{true, false} {
		work(func(ctx context.Context, process int32, _ *rand.Rand) { r.read(ctx, process, committed) })
	}
	work(r.commitOffsets)
	work(r.watch)
	if r.o.Cluster != nil {
		for n := range topics[plain].partitions {
			work(r.probe(n))
		}
	}
	for _, c := range r.o.Copiers {
		r.workers.Go(func() { r.copyBy(ctx, c) })
	}
}

func (r *run) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(r.servers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DialTimeout(5 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.MetadataMinAge(50 * time.Millisecond), kgo.ProducerLinger(0),
		kgo.AlwaysRetryEOF(),
	}, opts...)...)
}

// stopped tells that no new operation is to begin.
func (r *run) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// wait waits, or until the work ends.
func (r *run) wait(d time.Duration) {
	select {
	case <-r.stopping:
	case <-time.After(d):
	}
}

// abandon leaves a client as it is: its connections stay, nobody asks it any more.
func (r *run) abandon(client *kgo.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = append(r.abandoned, client)
}

func (r *run) closeAbandoned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.abandoned {
		c.Close()
	}
}
