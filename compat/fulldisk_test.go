//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/kcat"
	"ottla/compat/powercut"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// fullDiskLimit is how long one step may take on a busy machine. A server that has ended is not waited for.
const fullDiskLimit = 4 * time.Minute

// What the clients write: large values fill a disk soon.
const (
	ballastTopic = "ballast-1"
	moreBallast  = "ballast-2"
	heldTopic    = "held"
	mixedTopic   = "mixed"
	fullValue    = 4 << 10
	// fewFirst is how many records of each producer come before all of them run.
	fewFirst = 20
)

// TestFullDisk fills small file systems under load: producers of three kinds with acks=all, transactions, commits. Then another
// program takes what is left. What is told in the table is the law of a full disk; Apache Kafka, whose column is recorded, takes the
// directory offline at the first write without room, and ends with its only one.
func TestFullDisk(t *testing.T) {
	need(t, "kcat")
	for _, tool := range []string{"mkfs.ext4", "mkfs.xfs", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("run `compat/run.sh install` first: %v", err)
		}
	}
	needRoot(t)
	java := startJava(t, workDir(t))
	command := "compat/run.sh fulldisk"
	if target(t) == harness.Kafka {
		command = "compat/run.sh control-fulldisk"
	}
	results := suite.NewResults("fulldisk", serverName(target(t)), command)
	for _, disk := range []struct {
		name, kind string
		megabytes  int64
	}{{"ext4 of 64 MB", "ext4", 64}, {"xfs of 300 MB", "xfs", 300}} { // smaller ones mkfs.xfs refuses
		f := newFullDisk(t, disk.kind, disk.megabytes<<20)
		for _, step := range f.steps(java) {
			ok := t.Run(disk.kind+"/"+strings.ReplaceAll(step.what, " ", "-"), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), fullDiskLimit)
				defer cancel()
				err := f.alive(step.run(ctx))
				switch {
				case err == nil:
				case f.node.Kind() == harness.Kafka:
					t.Logf("recorded: %v", err) // what Apache Kafka does is a figure, not a fault
				default:
					ended.add("fulldisk: "+disk.name+": "+step.what, err.Error())
					t.Errorf("%v\nlast log lines of the server:\n%s", err, f.node.LogTail(15))
				}
				results.Add(step.what, disk.name, err != nil)
			})
			if !ok {
				break
			}
		}
		f.end()
	}
	finish(t, results)
}

// fullDisk is a node on a disk that is filled.
type fullDisk struct {
	t      *testing.T
	disk   *powercut.Disk
	node   *harness.Node
	stop   chan struct{}
	all    chan struct{} // closed when everybody has begun
	pause  atomic.Int64  // of a producer after each acknowledgement, in nanoseconds
	loads  []*fullLoad
	mixed  *fullTransactions
	groups *fullCommits
	held   *kgo.Client // with an open transaction
	extra  string      // a file of another program
}

type fullStep struct {
	what string
	run  func(context.Context) error
}

func newFullDisk(t *testing.T, kind string, sizeBytes int64) *fullDisk {
	t.Helper()
	disk, err := powercut.NewDiskOf(kind, t.TempDir(), sizeBytes)
	if err != nil {
		t.Fatal(err)
	}
	f := &fullDisk{t: t, disk: disk, stop: make(chan struct{}), all: make(chan struct{}), extra: filepath.Join(disk.Mount, "extra")}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	// A large file system is filled by somebody else but for what a small one has.
	if err := f.occupy(min(f.free(), 52<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.extra, f.extra+"-first"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	f.node, err = harness.NewNode(harness.Options{Kind: target(t), Name: "fulldisk-" + kind, Dir: workDir(t), DataDir: disk.Mount + "/data", Properties: map[string]string{
		"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1", "log.segment.bytes": "1048576",
		"log.segment.delete.delay.ms": "1000", "log.retention.check.interval.ms": "1000", "offsets.topic.segment.bytes": "1048576", "transaction.state.log.segment.bytes": "1048576",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.node.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.node.Close) // before the disk is closed
	return f
}

func (f *fullDisk) free() int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(f.disk.Mount, &s); err != nil {
		f.t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// occupy writes a file until so many bytes are left.
func (f *fullDisk) occupy(leave int64) error {
	file, err := os.OpenFile(f.extra, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for block := make([]byte, 64<<10); f.free() > leave; {
		n := min(int64(len(block)), max(f.free()-leave, 1))
		if _, err := file.Write(block[:n]); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return err
		} else if err != nil && n < 4096 {
			return nil
		} else if err != nil {
			block = block[:len(block)/2]
		}
	}
	return nil
}

// alive adds to an error that the server has ended.
func (f *fullDisk) alive(err error) error {
	select {
	case <-f.node.Process().Done():
		return errors.Join(err, errors.New("the server has ended"))
	default:
		return err
	}
}

// until waits for something; it gives up when the server has ended.
func (f *fullDisk) until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s; %d bytes are free", what, fullDiskLimit, f.free())
		case <-f.node.Process().Done():
			return fmt.Errorf("%s: the server has ended", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (f *fullDisk) steps(java *driver.Process) []fullStep {
	addr := f.node.Addr()
	return []fullStep{
		{"the load begins", func(ctx context.Context) error { return f.begin(ctx, java) }},
		{"clients are told before the disk is full", func(ctx context.Context) error {
			err := f.until(ctx, "a producer is told", func() bool { return errors.Is(f.probe(ctx), kerr.KafkaStorageError) })
			f.pause.Store(int64(10 * time.Millisecond)) // or what comes free is gone before the slowest has seen it
			if free := f.free(); err == nil && free < 1<<20 {
				return fmt.Errorf("only %d bytes were left by then", free)
			}
			harness.Progress("fulldisk: %s: clients are refused with %.1f MB free", f.disk.Kind, float64(f.free())/(1<<20))
			return err
		}},
		{"what was acknowledged is read", f.read},
		{"offsets are committed", func(ctx context.Context) error {
			from := f.groups.acked.Load()
			return f.until(ctx, "commits go on", func() bool { return f.groups.acked.Load() > from+3 })
		}},
		{"an open transaction is committed", func(ctx context.Context) error { return f.held.EndTransaction(ctx, kgo.TryCommit) }},
		{"topics are made, records are deleted", func(ctx context.Context) error {
			ref := franz.New(addr)
			err := ref.CreateTopic(ctx, "made-"+f.disk.Kind, 1, nil)
			_, deleted := ref.DeleteRecords(ctx, moreBallast, 0, suite.Latest)
			return errors.Join(err, deleted)
		}},
		{"producers go on by themselves when a topic is deleted", func(ctx context.Context) error {
			if err := franz.New(addr).DeleteTopic(ctx, ballastTopic); err != nil {
				return err
			}
			return f.goOn(ctx)
		}},
		{"the last byte is taken by others, and reads go on", func(ctx context.Context) error {
			if err := f.occupy(0); err != nil {
				return err
			}
			err := f.until(ctx, "a producer is told", func() bool { return errors.Is(f.probe(ctx), kerr.KafkaStorageError) })
			return errors.Join(err, f.read(ctx))
		}},
		{"killed with no byte free it starts, and reads and deletions go on", func(ctx context.Context) error {
			return errors.Join(f.restart(ctx), f.read(ctx), franz.New(addr).DeleteTopic(ctx, moreBallast))
		}},
		{"producers go on by themselves when others make room", func(ctx context.Context) error {
			return errors.Join(os.Remove(f.extra), f.goOn(ctx))
		}},
		{"the load ends well, and after a kill nothing that was acknowledged is missing", f.judge},
	}
}

// restart kills the server, has others take what that has made free, and starts it again.
func (f *fullDisk) restart(ctx context.Context) error {
	if err := f.alive(nil); err != nil {
		return err
	}
	if err := errors.Join(f.node.Kill(), f.occupy(0)); err != nil {
		return err
	}
	_, err := f.node.Start(ctx)
	return err
}

// begin makes the topics and starts everybody.
func (f *fullDisk) begin(ctx context.Context, java *driver.Process) error {
	addr := f.node.Addr()
	ref := franz.New(addr)
	for _, topic := range []string{ballastTopic, moreBallast, heldTopic, mixedTopic, "probe"} {
		if err := ref.CreateTopic(ctx, topic, 1, nil); err != nil {
			return err
		}
	}
	ballast := make([]suite.Record, 3000)
	for i := range ballast {
		ballast[i].Value = make([]byte, fullValue)
	}
	for _, topic := range []string{ballastTopic, moreBallast} {
		if _, err := ref.Produce(ctx, suite.ProduceOptions{Topic: topic, Acks: "all", Idempotent: true}, ballast); err != nil {
			return err
		}
	}
	var err error
	f.held, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("held"), kgo.TransactionTimeout(10*time.Minute), kgo.AlwaysRetryEOF())
	if err != nil {
		return err
	}
	if err := f.held.BeginTransaction(); err != nil {
		return err
	}
	if err := f.held.ProduceSync(ctx, &kgo.Record{Topic: heldTopic, Value: []byte("held")}).FirstErr(); err != nil {
		return err
	}
	streamers := map[string]suite.Streamer{"franz-go": franz.New(addr), "kcat": kcat.New(addr), "java": driver.NewClient(java, scenario.Java, addr)}
	for _, name := range []string{"franz-go", "kcat", "java"} {
		l := &fullLoad{topic: "from-" + name, done: make(chan struct{}), of: f, client: streamers[name], valueBytes: 100} // the others cannot be slowed down so well
		if name == "franz-go" {
			l.valueBytes = fullValue
		}
		if err := ref.CreateTopic(ctx, l.topic, 1, nil); err != nil {
			return err
		}
		l.ctx, l.cancel = context.WithCancel(context.Background())
		go l.run(f.stop)
		f.loads = append(f.loads, l)
	}
	f.mixed, f.groups = &fullTransactions{}, &fullCommits{}
	for _, part := range []func(string, chan struct{}){f.mixed.run, f.groups.run} {
		go part(addr, f.stop)
	}
	for _, l := range f.loads {
		if err := f.until(ctx, l.topic+" begins", func() bool { return l.acked.Load() >= fewFirst || closed(l.done) }); err != nil {
			return err
		}
		if closed(l.done) {
			return fmt.Errorf("%s: %w", l.topic, l.err)
		}
	}
	err = f.until(ctx, "transactions and commits begin", func() bool { return f.mixed.committed.Load() > 0 && f.groups.acked.Load() > 0 })
	close(f.all)
	return err
}

// goOn waits until what every producer has under way is in the log and more of it, and a transaction is over.
func (f *fullDisk) goOn(ctx context.Context) error {
	ref := franz.New(f.node.Addr())
	for _, l := range f.loads {
		from, _, err := ref.ListOffset(ctx, l.topic, 0, suite.Latest)
		if err != nil {
			return err
		}
		if err := f.until(ctx, l.topic+" goes on", func() bool {
			end, _, err := ref.ListOffset(ctx, l.topic, 0, suite.Latest)
			return err == nil && end > from+3
		}); err != nil {
			return err
		}
	}
	from := f.mixed.committed.Load()
	return f.until(ctx, "transactions go on", func() bool { return f.mixed.committed.Load() > from })
}

// probe sends one record once.
func (f *fullDisk) probe(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.node.Addr()), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{Topic: "probe", Value: make([]byte, 100)}).FirstErr()
}

// read reads everything that producers have written so far.
func (f *fullDisk) read(ctx context.Context) error {
	for _, l := range f.loads {
		acked := l.acked.Load()
		if err := l.judge(ctx, f.node.Addr(), acked, false); err != nil {
			return err
		}
	}
	return nil
}

// judge ends the load, kills the server, starts it again and reads everything.
func (f *fullDisk) judge(ctx context.Context) error {
	close(f.stop)
	f.pause.Store(0)
	for _, l := range f.loads {
		if err := f.until(ctx, l.topic+" has everything acknowledged", func() bool { return closed(l.done) }); err != nil {
			return err
		}
		if l.err != nil {
			return fmt.Errorf("%s: %w", l.topic, l.err)
		}
	}
	if err := f.until(ctx, "the transactions are over", func() bool { return f.mixed.over.Load() && f.groups.over.Load() }); err != nil {
		return err
	}
	f.held.Close()
	if err := f.node.Kill(); err != nil {
		return err
	}
	if _, err := f.node.Start(ctx); err != nil {
		return err
	}
	records := int64(0)
	for _, l := range f.loads {
		if err := l.judge(ctx, f.node.Addr(), l.acked.Load(), true); err != nil {
			return err
		}
		records += l.acked.Load()
	}
	if err := errors.Join(f.mixed.judge(ctx, f.node.Addr()), f.groups.judge(ctx, f.node.Addr())); err != nil {
		return err
	}
	held, err := franz.New(f.node.Addr()).Consume(ctx, suite.ConsumeOptions{Topic: heldTopic, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true})
	if err != nil || len(held) != 1 {
		return errors.Join(err, fmt.Errorf("of %s %d records are read", heldTopic, len(held)))
	}
	harness.Progress("fulldisk: %s: %d records, %d transactions and %d commits were acknowledged, none is lost", f.disk.Kind, records, f.mixed.committed.Load(), f.groups.acked.Load())
	return nil
}

// end stops what is left of the load, also after a step that failed.
func (f *fullDisk) end() {
	for _, c := range []chan struct{}{f.stop, f.all} {
		if !closed(c) {
			close(c)
		}
	}
	if f.held != nil {
		f.held.Close()
	}
	for _, l := range f.loads {
		if _, inProcess := l.client.(*franz.Client); !inProcess { // that one waits for the server for ever, which costs nothing
			l.cancel()
		}
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fullLoad is one producer with acks=all that never gives up.
type fullLoad struct {
	topic string
	acked atomic.Int64
	acks  []suite.Ack
	err   error
	done  chan struct{}
	of    *fullDisk

	client     suite.Streamer
	valueBytes int
	ctx        context.Context
	cancel     context.CancelFunc
}

func (l *fullLoad) prefix() string { return strings.Repeat("v", l.valueBytes) + "-" }

func (l *fullLoad) run(stop chan struct{}) {
	defer close(l.done)
	l.acks, l.err = l.client.Stream(l.ctx, suite.StreamOptions{
		ProduceOptions: suite.ProduceOptions{Topic: l.topic, Acks: "all", Idempotent: true}, Prefix: l.prefix(), Window: 20,
		OnAck: func(n int) {
			l.acked.Store(int64(n))
			if n >= fewFirst {
				<-l.of.all
			}
			if pause := l.of.pause.Load(); pause > 0 {
				<-time.After(time.Duration(pause))
			}
		},
	}, stop)
}

// judge reads the topic: what was sent, in order, each once, up to what was acknowledged at least. At the end all of it was.
func (l *fullLoad) judge(ctx context.Context, addr string, acked int64, all bool) error {
	got, err := franz.New(addr).Consume(ctx, suite.ConsumeOptions{Topic: l.topic, From: map[int32]int64{0: suite.Earliest}})
	if err != nil {
		return fmt.Errorf("%s: %w", l.topic, err)
	}
	for i, r := range got {
		if want := l.prefix() + strconv.Itoa(i); string(r.Value) != want || r.Offset != int64(i) {
			return fmt.Errorf("%s: at %d there is %.20q…%s", l.topic, r.Offset, r.Value, r.Value[max(0, len(r.Value)-8):])
		}
	}
	if int64(len(got)) < acked {
		return fmt.Errorf("%s: %d records are there, %d were acknowledged", l.topic, len(got), acked)
	}
	for i, ack := range l.acks {
		if all && ack.Err != "" {
			return fmt.Errorf("%s: the producer gave record %d up: %s", l.topic, i, ack.Err)
		}
	}
	return nil
}

// fullTransactions runs transactions, one after another; every third is aborted.
type fullTransactions struct {
	committed atomic.Int64
	over      atomic.Bool
	mu        sync.Mutex
	outcomes  map[string]bool // by transaction: committed; without entry nobody was told
}

const perTransaction = 3

func (m *fullTransactions) run(addr string, stop chan struct{}) {
	defer m.over.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-stop; <-time.After(fullDiskLimit); cancel() }() // a transaction under way may end
	for n := 0; !closed(stop); {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("mixed"))
		if err != nil {
			return
		}
		for ; !closed(stop); n++ {
			if m.transact(ctx, client, n) != nil {
				n++
				break // a new client ends what is open
			}
		}
		client.Close()
	}
}

func (m *fullTransactions) transact(ctx context.Context, client *kgo.Client, n int) error {
	name := strconv.Itoa(n)
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	for range perTransaction {
		client.Produce(ctx, &kgo.Record{Topic: mixedTopic, Key: []byte(name), Value: make([]byte, 500)}, nil)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	commit := n%3 != 2
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outcomes == nil {
		m.outcomes = map[string]bool{}
	}
	m.outcomes[name] = commit
	if commit {
		m.committed.Add(1)
	}
	return nil
}

func (m *fullTransactions) judge(ctx context.Context, addr string) error {
	got, err := franz.New(addr).Consume(ctx, suite.ConsumeOptions{Topic: mixedTopic, From: map[int32]int64{0: suite.Earliest}, ReadCommitted: true})
	if err != nil {
		return fmt.Errorf("%s: %w", mixedTopic, err)
	}
	seen := map[string]int{}
	for _, r := range got {
		seen[string(r.Key)]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, committed := range m.outcomes {
		if want := map[bool]int{true: perTransaction}[committed]; seen[name] != want {
			return fmt.Errorf("%s: of transaction %s, which was committed: %v, %d records are read", mixedTopic, name, committed, seen[name])
		}
	}
	for name, n := range seen {
		if n != perTransaction {
			return fmt.Errorf("%s: of transaction %s %d records are read", mixedTopic, name, n)
		}
	}
	return nil
}

// fullCommits commits ever higher offsets for a group.
type fullCommits struct {
	acked atomic.Int64
	over  atomic.Bool
}

const committer = "committer"

func (c *fullCommits) run(addr string, stop chan struct{}) {
	defer c.over.Store(true)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(1000), kgo.RetryTimeout(fullDiskLimit), kgo.AlwaysRetryEOF())
	if err != nil {
		return
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for n := int64(1); !closed(stop); n++ {
		ctx, cancel := context.WithTimeout(context.Background(), fullDiskLimit/3)
		resp, err := admin.CommitOffsets(ctx, committer, kadm.OffsetsFromRecords(kgo.Record{Topic: mixedTopic, Offset: n - 1, LeaderEpoch: -1}))
		cancel()
		if err == nil && resp.Error() == nil {
			c.acked.Store(n)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (c *fullCommits) judge(ctx context.Context, addr string) error {
	at, err := franz.New(addr).Committed(ctx, committer, mixedTopic)
	if err != nil {
		return err
	}
	if got := slices.Max([]int64{-1, at[0]}); got < c.acked.Load() {
		return fmt.Errorf("%s has committed %d, acknowledged was %d", committer, got, c.acked.Load())
	}
	return nil
}
