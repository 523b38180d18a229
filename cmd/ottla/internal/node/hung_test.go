package node_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/guard"
	"ottla/storage/log"
	"ottla/storage/replica"
	"ottla/storage/vfs"
)

// hanging is the Runner of a directory whose n-th operation hangs; 0: none does. The limit is over at once.
type hanging struct {
	hangs   int
	seen    int
	kinds   map[string]int // of what came, if that is counted: an operation on a kind of file
	firsts  map[int]bool   // the first of each kind
	stalled *vfs.Stalled
	what    string
	left    *guard.Call
	later   []func()
}

func (h *hanging) Run(call *guard.Call) error {
	if h.stalled != nil {
		return h.stalled
	}
	h.seen++
	if h.kinds != nil {
		what := call.Kind.String() + " " + kindOfName(call.Name)
		if h.kinds[what]++; h.kinds[what] == 1 {
			h.firsts[h.seen] = true
		}
	}
	if h.seen == h.hangs {
		h.stalled, h.left = &vfs.Stalled{Kind: call.Kind, Name: call.Name, After: 30 * time.Second}, call
		h.what = fmt.Sprintf("operation %d, a %s of %s", h.seen, call.Kind, call.Name)
		return h.stalled
	}
	call.Do()
	return nil
}

func (h *hanging) Leaves() bool      { return true }
func (h *hanging) Later(task func()) { h.later = append(h.later, task) }

// thaw lets go on what was left behind.
func (h *hanging) thaw() {
	if h.left != nil {
		h.left.Do()
		h.left.Abandoned()
	}
	for _, task := range h.later {
		task()
	}
}

// kindOfName takes numbers and ids out of a name.
func kindOfName(name string) string {
	base := path.Base(name)
	switch ext := path.Ext(base); {
	case strings.HasSuffix(base, vfs.TempSuffix):
		return "*" + vfs.TempSuffix
	case strings.HasPrefix(base, "0000"):
		return "*" + strings.NewReplacer("timeindex", "index", "txnindex", "index").Replace(base[20:])
	case strings.HasSuffix(base, "-future") || strings.HasSuffix(base, "-delete"):
		return "*" + base[len(base)-7:]
	case ext != "" || strings.Contains(base, "checkpoint"):
		return base
	case strings.Count(strings.TrimPrefix(name, "/"), "/") == 1:
		return "a partition"
	}
	return base
}

// hungNode is a node with the directories /a, which works, and /b, which hangs.
type hungNode struct {
	*stepped
	runner *hanging
	acked  map[string]protocol.Offset // by topic: beyond the last record that was acknowledged
}

func (h *hungNode) bootTwo() error {
	properties, err := config.FromOverrides([]string{
		"process.roles=broker,controller", "node.id=1", "listeners=PLAINTEXT://h0:9092,CONTROLLER://h0:9093",
		"controller.listener.names=CONTROLLER", "controller.quorum.voters=1@h0:9093", "log.dirs=/a,/b",
		"log.flush.offset.checkpoint.interval.ms=700", "replica.high.watermark.checkpoint.interval.ms=900",
		"log.retention.check.interval.ms=800", "log.segment.delete.delay.ms=500", "log.cleaner.backoff.ms=300",
	})
	h.must(err)
	h.config, _, err = config.Broker(properties)
	h.must(err)
	random := rand.New(rand.NewPCG(uint64(h.now.UnixNano()), 1))
	h.node, err = node.New(h.now, node.Options{
		Config: h.config, FS: h.disk, Random: random.Uint64, Logger: slog.New(slog.DiscardHandler), Hostname: "h0",
		Runner: func(dir string, alone bool) guard.Runner {
			if alone != (dir == "/a") {
				h.Errorf("can the node go on without %s? not %v", dir, alone)
			}
			if alone {
				return &hanging{}
			}
			return h.runner
		},
		Send: func(req kmsg.Request, done func(kmsg.Response, error)) {
			h.requests = append(h.requests, func() { h.node.Submit(h.now, req, done) })
		},
		Fatal: func(err error) { h.Errorf("%s: the node cannot go on: %v", h.runner.what, err) }, State: func(broker.State) {},
	})
	if err != nil {
		return err
	}
	if err := h.node.Start(h.now); err != nil {
		return err
	}
	h.run(10*time.Second, func() bool { return h.node.State() == broker.Running })
	return nil
}

// pass lets time pass.
func (h *hungNode) pass(d time.Duration) {
	h.Helper()
	end := h.now.Add(d)
	h.run(2*d, func() bool { return !h.now.Before(end) })
}

// produce appends a batch; its memory is used again as soon as that is allowed.
func (h *hungNode) produce(topic, key string, valueBytes int) protocol.ErrorCode {
	h.Helper()
	b := record.NewBuilder(record.PlainOptions())
	b.Append(h.now.UnixMilli(), []byte(key), make([]byte, valueBytes), nil)
	batch := b.Build(compress.NewPool())
	answered, result := false, replica.AppendResult{}
	h.node.Replicas().Append(h.now, replica.AppendRequest{
		Partition: protocol.TopicPartition{Topic: topic}, Records: batch, Origin: log.OriginClient, RequiredAcks: replica.AcksAll, Timeout: time.Second,
		Release: func() {
			for i := range batch {
				batch[i] = 0xDB
			}
		},
		Abandon: func() {},
	}, func(is replica.AppendResult) { answered, result = true, is })
	if !answered {
		h.Fatalf("%s: an append to %s has no answer", h.runner.what, topic)
	}
	if result.Err == nil {
		h.acked[topic] = result.LastOffset + 1
	}
	return protocol.CodeOf(result.Err)
}

func (h *hungNode) create(name string, configs ...string) {
	h.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	for i := 0; i < len(configs); i += 2 {
		one := kmsg.NewCreateTopicsRequestTopicConfig()
		one.Name, one.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, one)
	}
	h.change(topicRequest(topic))
}

const hungBatch = 300 << 10

// hungStride: besides the first operation of each kind every so many hang. With 1 all do, which takes a minute.
const hungStride = 40

// steps is a life in which everything happens that touches a directory. What does not work in /b may not work.
func (h *hungNode) steps() []func() {
	fill := func(topic string) {
		for range 5 {
			h.produce(topic, "key", hungBatch)
		}
	}
	return []func(){
		func() { h.create("here") },
		func() { h.create("there", "segment.bytes", "1048576", "retention.bytes", "1048576") },
		func() { h.create("pad") },
		func() {
			h.create("keys", "segment.bytes", "1048576", "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01")
		},
		func() { fill("there") },
		func() { fill("keys") },
		func() { h.produce("pad", "", 1000) },
		func() { h.pass(2 * time.Second) },
		func() { fill("there"); h.pass(3 * time.Second) },
		func() { h.consume("there", h.acked["there"]-1); h.consume("keys", 0) },
		func() { _ = h.node.Replicas().Move(h.now, protocol.TopicPartition{Topic: "pad"}, "/b") },
		func() { h.pass(2 * time.Second) },
		func() {
			_ = h.node.Replicas().Move(h.now, protocol.TopicPartition{Topic: "keys"}, "/a")
			h.pass(2 * time.Second)
		},
		func() { h.create("gone-1"); h.create("gone-2"); h.create("gone-3") },
		func() { h.remove("gone-1"); h.remove("gone-2"); h.remove("gone-3") },
		func() { h.pass(2 * time.Second) },
	}
}

// live goes through the steps; after each the other directory must work.
func (h *hungNode) live() {
	h.Helper()
	told := false
	for i, step := range h.steps() {
		step()
		if h.runner.stalled != nil && !told {
			told = true
			h.node.DirectoryStalled()
			h.pass(3 * time.Second)
			h.offline()
		}
		if code := h.produce("here", "", 100); code != protocol.None {
			h.Fatalf("%s, step %d: in the other directory an append is answered by %s", h.runner.what, i, code)
		}
		if h.consume("here", h.acked["here"]-1) == 0 {
			h.Fatalf("%s, step %d: nothing can be read in the other directory", h.runner.what, i)
		}
	}
}

// offline checks what everybody is told of the directory that hangs.
func (h *hungNode) offline() {
	h.Helper()
	for _, directory := range h.node.Store().Directories() {
		if (directory.Offline != nil) != (directory.Path == "/b") {
			h.Fatalf("%s: %s is offline: %v", h.runner.what, directory.Path, directory.Offline)
		}
	}
	for topic := range h.acked {
		tp := protocol.TopicPartition{Topic: topic}
		broken := h.node.Store().Log(tp) == nil
		if leads := h.node.Image().Partition(tp).Leader == 1; leads == broken {
			h.Fatalf("%s: %s is offline: %v; it has a leader: %v", h.runner.what, tp, broken, leads)
		}
		if code := h.produce(topic, "key", 10); broken && code != protocol.KafkaStorageError && code != protocol.NotLeaderOrFollower {
			h.Fatalf("%s: a producer of %s is told %s", h.runner.what, tp, code)
		}
	}
}

// judge starts again on what is there, and reads it.
func (h *hungNode) judge(what string) {
	h.Helper()
	again := &hungNode{stepped: &stepped{T: h.T, now: h.now.Add(time.Minute), disk: h.disk.Kill()}, runner: &hanging{what: what}, acked: map[string]protocol.Offset{}}
	again.must(again.bootTwo())
	again.pass(3 * time.Second)
	for topic, acked := range h.acked {
		if end := again.read(topic); end < acked {
			h.Errorf("%s: after a restart %s ends at %d, acknowledged was up to %d", what, topic, end, acked)
		}
		if code := again.produce(topic, "key", 10); code != protocol.None {
			h.Errorf("%s: after a restart an append to %s is answered by %s: %v", what, topic, code, again.node.Store().PartitionError(protocol.TopicPartition{Topic: topic}))
		}
	}
}

// read checks every batch of a partition and gives its end.
func (h *hungNode) read(topic string) (end protocol.Offset) {
	h.Helper()
	l := h.node.Store().Log(protocol.TopicPartition{Topic: topic})
	if l == nil {
		return -1
	}
	view := l.View()
	for at := view.LogStartOffset; at < view.LogEndOffset; {
		read, err := l.Read(at, 1<<20, view.LogEndOffset, true)
		h.must(err)
		bytes, err := read.Region.ReadAll()
		h.must(err)
		read.Region.Release()
		for at = read.NextOffset; len(bytes) > 0; {
			batch, rest, err := record.Next(bytes)
			h.must(err)
			if err := batch.CheckCRC(); err != nil {
				h.Errorf("%s: %s at %d: %v", h.runner.what, topic, batch.BaseOffset(), err)
			}
			bytes = rest
		}
	}
	return view.LogEndOffset
}

func newHungNode(t *testing.T, hangs int) *hungNode {
	return &hungNode{stepped: newStepped(t), runner: &hanging{hangs: hangs}, acked: map[string]protocol.Offset{}}
}

// counted lives without a hanging operation, and gives how many there are, of them how many at the start, and the first of
// each kind.
func counted(t *testing.T) (whole *hungNode, start int, firsts map[int]bool) {
	t.Helper()
	whole = newHungNode(t, 0)
	whole.runner.kinds, whole.runner.firsts = map[string]int{}, map[int]bool{}
	whole.must(whole.bootTwo())
	start = whole.runner.seen
	whole.live()
	whole.judge("nothing hangs")
	return whole, start, whole.runner.firsts
}

// TestADirectoryThatHangs: whichever operation on one of two directories hangs, the other directory's partitions are served,
// and what was acknowledged is there after a restart, whether the operation happens in the end or not.
func TestADirectoryThatHangs(t *testing.T) {
	whole, start, firsts := counted(t)
	tried := 0
	for hangs := 1; hangs <= whole.runner.seen; hangs++ {
		if !firsts[hangs] && hangs%hungStride != 0 || testing.Short() && hangs%5 != 0 {
			continue
		}
		tried++
		h := newHungNode(t, hangs)
		if err := h.bootTwo(); err != nil {
			if hangs > start || !errors.Is(err, vfs.ErrStalled) {
				t.Errorf("%s: the start fails: %v", h.runner.what, err)
			}
			continue // empty directories are not formatted when one of them hangs
		}
		h.live()
		h.judge(h.runner.what + ", which never happens")
		h.runner.thaw()
		h.judge(h.runner.what + ", which happens late")
		if t.Failed() {
			break
		}
	}
	t.Logf("%d of %d operations hung, %d kinds", tried, whole.runner.seen, len(firsts))
}

// TestADirectoryThatHangsAtTheStart: of a node that was killed.
func TestADirectoryThatHangsAtTheStart(t *testing.T) {
	whole, _, _ := counted(t)
	for hangs := 1; ; hangs++ {
		h := newHungNode(t, hangs)
		h.disk, h.now = whole.disk.Kill(), whole.now
		h.must(h.bootTwo())
		if h.runner.stalled == nil {
			t.Logf("%d operations", h.runner.seen)
			return
		}
		h.acked = maps.Clone(whole.acked)
		h.node.DirectoryStalled()
		h.pass(3 * time.Second)
		h.offline()
		if code := h.produce("here", "", 100); code != protocol.None {
			t.Fatalf("%s: in the other directory an append is answered by %s", h.runner.what, code)
		}
		h.create("more")
		h.judge(h.runner.what + ", which never happens")
		h.runner.thaw()
		h.judge(h.runner.what + ", which happens late")
	}
}
