//go:build compat

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/serve"
	"ottla/compat/suite"
)

// serveVariable makes this program a driver of franz-go instead of a test: one that can be killed.
const serveVariable = "OTTLA_COMPAT_SERVE"

func init() {
	if os.Getenv(serveVariable) == "" {
		return
	}
	err := serve.Run(os.Stdin, os.Stdout, func(addr string) suite.Client { return franz.New(addr) }, suite.ErrorName)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the driver of franz-go:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// eosKinds are the loads: what each does with its input is done exactly once.
var eosKinds = []string{"streams", "java", "franz-go"}

// eosInstances is how many instances of an application work side by side; one of them is killed at a time.
const eosInstances = 2

// eosRun is a node under loads that is killed every now and then, as are the applications.
type eosRun struct {
	*appT
	every  time.Duration // from one kill -9 of the node to the next; the applications' come in between
	loads  []*eosLoad
	kills  int // of the node
	feeder sync.WaitGroup
}

// eosLoad is one application: its input, its instances, its output.
type eosLoad struct {
	run       *eosRun
	kind      string
	instances [eosInstances]*eosInstance
	fed       int // records of the input, or lines

	mu     sync.Mutex
	kills  int
	gaveUp int // instances that ended by themselves, and were started again
}

// eosInstance is one process, and after its death the next.
type eosInstance struct {
	load    *eosLoad
	number  int
	dir     string
	process *driver.Process
	stop    chan struct{} // tells it to end
	ended   chan struct{} // whoever looks after it has ended
	killed  bool
}

// runEos lets the loads work for a while on a node of its own, and judges what came out.
func runEos(t *testing.T, kinds []string, duration, every time.Duration) *eosRun {
	t.Helper()
	node := startNode(t, "eos", map[string]string{
		"group.min.session.timeout.ms":                                "1000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
		"offsets.topic.num.partitions":                                "4",
		"transaction.state.log.num.partitions":                        "4",
	})
	defer explain(t, node)
	ctx, cancel := context.WithTimeout(context.Background(), duration+20*time.Minute)
	defer cancel()
	r := &eosRun{appT: &appT{cell: &cell{T: t}, ctx: ctx, node: node, ref: franz.New(node.Addr())}, every: every}
	stop := make(chan struct{})
	for _, kind := range kinds {
		l := &eosLoad{run: r, kind: kind}
		r.loads = append(r.loads, l)
		r.topic(l.input(), textPartitions)
		r.topic(l.output(), textPartitions)
		r.feeder.Go(func() { l.feed(stop) })
		for i := range l.instances {
			l.instances[i] = &eosInstance{load: l, number: i, dir: t.TempDir()}
			l.instances[i].start()
		}
	}
	r.strike(duration)
	close(stop)
	r.feeder.Wait()
	for _, l := range r.loads {
		l.judge()
	}
	for _, l := range r.loads {
		for _, i := range l.instances {
			i.end()
		}
	}
	r.nothingHangs()
	for _, l := range r.loads {
		harness.Progress("exactly once, %s on %s: %d records, %d kills of the node, %d of instances, %d started again",
			l.kind, serverName(node.Kind()), l.fed, r.kills, l.kills, l.gaveUp)
	}
	stopCleanly(t, node)
	return r
}

func (l *eosLoad) input() string  { return "eos-" + l.kind + "-in" }
func (l *eosLoad) output() string { return "eos-" + l.kind + "-out" }

// strike kills the node, and half a round later an instance of each application, until the time is over.
func (r *eosRun) strike(duration time.Duration) {
	r.Helper()
	end := time.Now().Add(duration)
	for n := 0; time.Now().Before(end); n++ {
		select {
		case <-time.After(r.every / 2): // of work: a busy machine takes long to start what was killed
		case <-r.ctx.Done():
			r.Fatal(r.ctx.Err())
		}
		if n%2 == 0 {
			r.must(r.node.Kill(), "kill the node")
			_, err := r.node.Start(r.ctx)
			r.must(err, "start the node")
			r.kills++
			continue
		}
		for _, l := range r.loads {
			l.instances[n/2%eosInstances].kill()
			l.instances[n/2%eosInstances].start()
			l.kills++
		}
	}
}

// feed writes the input by an idempotent producer until stop is closed: record i holds its number, or line i its words.
func (l *eosLoad) feed(stop <-chan struct{}) {
	client, err := kgo.NewClient(kgo.SeedBrokers(l.run.node.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1),
		kgo.AlwaysRetryEOF(), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		l.run.Errorf("feed %s: %v", l.kind, err)
		return
	}
	defer client.Close()
	rounds := time.NewTicker(100 * time.Millisecond)
	defer rounds.Stop()
	for {
		select {
		case <-stop:
			return
		case <-rounds.C:
		}
		var records []*kgo.Record
		each := 5
		if l.kind == "streams" { // each line is three words, and each word a record of four topics
			each = 1
		}
		for range each {
			for p := range int32(textPartitions) {
				records = append(records, l.record(p))
			}
		}
		if err := client.ProduceSync(l.run.ctx, records...).FirstErr(); err != nil {
			l.run.Errorf("feed %s: %v", l.kind, err)
			return
		}
	}
}

func (l *eosLoad) record(partition int32) *kgo.Record {
	r := &kgo.Record{Topic: l.input(), Partition: partition, Key: fmt.Append(nil, l.fed), Value: fmt.Append(nil, l.fed)}
	if l.kind == "streams" {
		r.Value = []byte(eosLine(l.fed))
	}
	l.fed++
	return r
}

// eosVocabulary is how many words there are.
const eosVocabulary = 3000

// eosLine is a line of three words.
func eosLine(n int) string {
	return fmt.Sprintf("w%d w%d w%d", n*7919%eosVocabulary, n*104729%eosVocabulary, n*31%eosVocabulary)
}

// start starts the instance's process and looks after it.
func (i *eosInstance) start() {
	l := i.load
	l.run.Helper()
	dir := l.run.TempDir()
	var err error
	switch l.kind {
	case "streams":
		i.process, err = driver.StartApplications(dir)
	case "java":
		i.process, err = driver.StartJava(dir)
	default:
		i.process, err = driver.StartProgram("franz-go", dir, "env", serveVariable+"=1", os.Args[0])
	}
	l.run.must(err, "start an instance of "+l.kind)
	p := i.process
	l.run.Cleanup(func() { _ = p.Close() })
	i.stop, i.ended, i.killed = make(chan struct{}), make(chan struct{}), false
	work := i.copy
	if l.kind == "streams" {
		work = i.stream
	}
	go func() {
		defer close(i.ended)
		for n := 0; ; n++ {
			err := work()
			l.mu.Lock()
			over := err == nil || i.killed
			if !over {
				l.gaveUp++
			}
			l.mu.Unlock()
			if over || l.run.ctx.Err() != nil {
				return
			}
			harness.Progress("an instance of %s gave up and is started again: %v", l.kind, err)
		}
	}()
}

// kill ends the process like a crash.
func (i *eosInstance) kill() {
	i.load.mu.Lock()
	i.killed = true
	i.load.mu.Unlock()
	_ = i.process.Kill()
	<-i.ended
}

func (i *eosInstance) end() {
	close(i.stop)
	<-i.ended
	_ = i.process.Close()
}

// copy runs a copy loop, with the transactional id of the one that was there before it.
func (i *eosInstance) copy() error {
	l := i.load
	_, err := driver.NewClient(i.process, l.kind, l.run.node.Addr()).CopyInTransactions(l.run.ctx, suite.CopyOptions{
		Group: "eos-" + l.kind, From: l.input(), To: l.output(), TransactionalID: i.name(),
		SessionMs: 4000, TimeoutMs: 10_000, AbortEvery: 20,
	}, i.stop)
	return err
}

// stream runs an instance of Kafka Streams.
func (i *eosInstance) stream() error {
	l, name := i.load, i.name()
	var now instance
	err := i.process.Run(l.run.ctx, "streams_start", map[string]any{
		"bootstrap": l.run.node.Addr(), "application": "eos-streams", "topology": "words", "input": l.input(), "output": l.output(),
		"guarantee": exactlyOnceV2, "store": "rocksdb", "name": name, "state_dir": i.dir, "wait_ms": 300_000, "session_ms": 4000, "transaction_ms": 5000,
	}, &now)
	looks := time.NewTicker(time.Second)
	defer looks.Stop()
	for stopping := false; err == nil && now.Failure == ""; {
		select {
		case <-i.stop:
			stopping = true
		case <-looks.C:
			err = i.process.Run(l.run.ctx, "streams_state", map[string]any{"name": name}, &now)
		}
		if stopping {
			break
		}
	}
	if err != nil {
		return err
	}
	var closed bool
	if err := i.process.Run(l.run.ctx, "streams_stop", map[string]any{"name": name}, &closed); err != nil || now.Failure == "" {
		return err
	}
	return errors.New(now.Failure)
}

// judge waits until the output is what the model says: no more, and no less.
func (l *eosLoad) judge() {
	r := l.run
	r.Helper()
	out := r.tail(l.output(), true)
	if l.kind == "streams" {
		l.comes(out, func(output []suite.Record) error { return checkEosWords(output, l.fed) })
		return
	}
	input, err := r.appT.tail(l.input(), false).read(r.ctx)
	r.must(err, "read the input of "+l.kind)
	if len(input) != l.fed {
		r.Errorf("the input of %s holds %d records, %d were written", l.kind, len(input), l.fed)
	}
	l.comes(out, func(output []suite.Record) error { return sameByPartition(output, input) })
}

// comes waits until the output passes a check, as long as there comes more of it.
func (l *eosLoad) comes(out *tail, check func([]suite.Record) error) {
	r := l.run
	r.Helper()
	looks := time.NewTicker(time.Second)
	defer looks.Stop()
	var wrong error
	for before, since := -1, time.Now(); time.Since(since) < patience; {
		output, err := out.read(r.ctx)
		r.must(err, "read "+out.topic)
		if wrong = check(output); wrong == nil {
			return
		}
		if len(output) > before {
			before, since = len(output), time.Now()
		}
		<-looks.C
	}
	for _, i := range l.instances {
		var told any
		if l.kind == "streams" {
			_ = i.process.Run(r.ctx, "streams_state", map[string]any{"name": i.name()}, &told)
		}
		r.Logf("instance %d of %s: %v", i.number, l.kind, told)
	}
	r.Fatalf("nothing more comes from %s: %v", l.kind, wrong)
}

func (i *eosInstance) name() string { return fmt.Sprintf("eos-%s-%d", i.load.kind, i.number) }

// sameByPartition compares the values of two topics, partition by partition, in order.
func sameByPartition(got, want []suite.Record) error {
	split := func(records []suite.Record) map[int32][]suite.Record {
		parts := map[int32][]suite.Record{}
		for _, r := range records {
			parts[r.Partition] = append(parts[r.Partition], r)
		}
		return parts
	}
	all, copies := split(want), split(got)
	for p := range int32(textPartitions) {
		for n := range min(len(all[p]), len(copies[p])) {
			if !bytes.Equal(all[p][n].Value, copies[p][n].Value) {
				return fmt.Errorf("partition %d: record %d is %q, want %q", p, n, copies[p][n].Value, all[p][n].Value)
			}
		}
		if len(all[p]) != len(copies[p]) {
			return fmt.Errorf("partition %d: %d records were copied, want %d", p, len(copies[p]), len(all[p]))
		}
	}
	return nil
}

// checkEosWords compares the counts of words with the model: the n-th value of a word counts n, and its last one names each of
// the word's lines.
func checkEosWords(output []suite.Record, lines int) error {
	model, times := map[string][]int{}, map[string]int{}
	for n := range lines {
		for word := range strings.FieldsSeq(eosLine(n)) {
			model[word] = append(model[word], n)
			times[word]++
		}
	}
	got, err := byKey(output)
	if err != nil {
		return err
	}
	for word, ids := range model {
		if len(got[word]) != times[word] {
			return fmt.Errorf("%q was updated %d times, want %d", word, len(got[word]), times[word])
		}
		slices.Sort(ids)
		for n, r := range got[word] {
			s, err := parseSum(string(r.Value))
			if err != nil {
				return err
			}
			if s.count != n+1 {
				return fmt.Errorf("%q: value %d counts %d", word, n, s.count)
			}
			if n == times[word]-1 && !slices.Equal(s.ids, slices.Compact(ids)) {
				return fmt.Errorf("%q: the last value has lines %v, want %v", word, s.ids, ids)
			}
		}
	}
	if len(got) != len(model) {
		return fmt.Errorf("%d words were counted, want %d", len(got), len(model))
	}
	return nil
}

// nothingHangs waits until no transaction is under way, and every partition's last stable offset is its end.
func (r *eosRun) nothingHangs() {
	r.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.node.Addr()))
	r.must(err, "connect")
	defer client.Close()
	admin := kadm.NewClient(client)
	r.eventually("the end of every transaction", func() error {
		open, err := admin.ListTransactions(r.ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort"})
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("transactions %v", open.Sorted())
		}
		if err != nil {
			return err
		}
		topics, err := admin.ListTopicsWithInternal(r.ctx)
		if err != nil {
			return err
		}
		stable, err := admin.ListCommittedOffsets(r.ctx, topics.Names()...)
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(r.ctx, topics.Names()...)
		if err != nil {
			return err
		}
		var behind error
		ends.Each(func(end kadm.ListedOffset) {
			if s, _ := stable.Lookup(end.Topic, end.Partition); end.Err != nil || s.Err != nil || s.Offset != end.Offset {
				behind = fmt.Errorf("the last stable offset of %s-%d is %d, its end %d (%w)", end.Topic, end.Partition, s.Offset, end.Offset, errors.Join(end.Err, s.Err))
			}
		})
		return behind
	})
}

// TestEos lets Kafka Streams and copy loops of two clients work, while the node and the applications are killed.
// OTTLA_EOS_SECONDS chooses another length.
func TestEos(t *testing.T) {
	need(t)
	runEos(t, eosKinds, time.Duration(setting(t, "OTTLA_EOS_SECONDS", 15))*time.Second, 8*time.Second)
}

// eosRecord is what is kept of a load that worked for long.
type eosRecord struct {
	Server, Date, Commit, Kind string
	Minutes                    int
	NodeKills, InstanceKills   int
	StartedAgain               int
	Records                    int
	Result                     string
}

// TestEosSoak lets each load that has no line of this commit yet in testdata/soak/eos.jsonl (of Apache Kafka:
// testdata/control/) work for OTTLA_EOS_MINUTES; the node and the applications are killed every twenty seconds, those of
// Apache Kafka every minute.
func TestEosSoak(t *testing.T) {
	need(t)
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	server, head := serverName(target(t)), strings.TrimSpace(string(commit))
	path := soakPath(t, "eos.jsonl")
	minutes := setting(t, "OTTLA_EOS_MINUTES", 10)
	kinds := slices.DeleteFunc(slices.Clone(eosKinds), func(kind string) bool { return eosDone(t, path, server, head, kind, minutes) })
	if len(kinds) == 0 {
		harness.Progress("every load has its %d minutes with commit %s", minutes, head)
		return
	}
	every := 20 * time.Second
	if target(t) == harness.Kafka { // whose starts would leave no time for any work
		every = time.Minute
	}
	r := runEos(t, kinds, time.Duration(minutes)*time.Minute, every)
	if t.Failed() {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, l := range r.loads {
		line, err := json.Marshal(eosRecord{server, time.Now().UTC().Format(time.DateOnly), head, l.kind, minutes, r.kills, l.kills, l.gaveUp, l.fed, "ok"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
}

// eosDone says whether a load has a line already.
func eosDone(t *testing.T, path, server, commit, kind string, minutes int) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		var r eosRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if r.Server == server && r.Commit == commit && r.Kind == kind && r.Minutes >= minutes {
			return true
		}
	}
	return false
}
