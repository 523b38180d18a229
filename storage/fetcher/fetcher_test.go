package fetcher

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

var (
	topicID = protocol.TopicID{1, 2, 3}
	begin   = time.UnixMilli(1_800_000_000_000)
)

func orders(n int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: "orders", Partition: n}
}

// fixture is the fetchers of node 1, whose requests the test answers.
type fixture struct {
	t        *testing.T
	now      time.Time
	replicas *replica.Manager
	store    *store.Store
	fetchers *Fetchers
	sent     []sent
	frames   int // not released
}

type sent struct {
	leader protocol.NodeID
	req    kmsg.Request
	done   Done
}

func newFixture(t *testing.T, change func(o *Options)) *fixture {
	f := &fixture{t: t, now: begin}
	word := uint64(0)
	random := func() uint64 { word++; return word }
	mem := vfs.NewMem(random)
	f.must(mem.MkdirAll("/data"))
	f.must(mem.SyncDir(path.Dir("/data")))
	f.must(logdir.WriteMetaProperties(mem, "/data", logdir.MetaProperties{ClusterID: "cluster", NodeID: 1, DirectoryID: protocol.DirectoryID{9}}))
	s, _, err := store.Open(f.now, store.Options{
		FS: mem, Dirs: []string{"/data"}, MetadataDir: "/data", NodeID: 1, Files: segment.NewFileCache(mem, 100), Random: random,
		LogOptions: func(string) log.Options { return log.DefaultOptions() },
	})
	f.must(err)
	f.store = s
	f.replicas = replica.New(f.now, replica.Options{NodeID: 1, Store: s, Pool: compress.NewPool()})
	o := Options{
		NodeID: 1, BrokerEpoch: func() protocol.BrokerEpoch { return 77 }, Replicas: f.replicas,
		Send: func(leader protocol.NodeID, _ int, req kmsg.Request, done Done) {
			f.sent = append(f.sent, sent{leader, req, done})
		},
	}
	if change != nil {
		change(&o)
	}
	f.fetchers = New(o)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// follow makes node 1 a follower of node 2 and has it fetch.
func (f *fixture) follow(n int32, epoch protocol.LeaderEpoch) {
	f.t.Helper()
	f.must(f.replicas.Apply(f.now, orders(n), partition.State{
		TopicID: topicID, Leader: 2, LeaderEpoch: epoch, PartitionEpoch: int32(epoch), ISR: []protocol.NodeID{2}, Replicas: []protocol.NodeID{1, 2},
	}, protocol.DirectoryUnassigned, true))
	f.fetchers.Assign(f.now, orders(n), topicID, 2, epoch)
}

func (f *fixture) tick(after time.Duration) {
	f.now = f.now.Add(after)
	f.fetchers.Tick(f.now)
}

// asks takes the only request that was sent and checks what it says.
func (f *fixture) asks(want string) sent {
	f.t.Helper()
	if len(f.sent) != 1 {
		f.t.Fatalf("%d requests were sent, not 1", len(f.sent))
	}
	one := f.sent[0]
	f.sent = nil
	if got := text(one.req); got != want {
		f.t.Fatalf("asked:\n%s\nnot:\n%s", got, want)
	}
	return one
}

// quiet checks that nothing was sent, and when the next step is due.
func (f *fixture) quiet(due time.Duration) {
	f.t.Helper()
	if len(f.sent) > 0 {
		f.t.Fatalf("asked: %s", text(f.sent[0].req))
	}
	next := f.fetchers.NextDeadline()
	if want := f.now.Add(due); due < 0 && !next.IsZero() || due >= 0 && !next.Equal(want) {
		f.t.Fatalf("the next step is due at %v, not after %v", next.Sub(f.now), due)
	}
}

func text(req kmsg.Request) string {
	var b strings.Builder
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		fmt.Fprintf(&b, "session %d.%d wait %d", req.SessionID, req.SessionEpoch, req.MaxWaitMillis)
		for _, topic := range req.Topics {
			for _, p := range topic.Partitions {
				fmt.Fprintf(&b, "; %d from %d after epoch %d in %d", p.Partition, p.FetchOffset, p.LastFetchedEpoch, p.CurrentLeaderEpoch)
			}
		}
		for _, topic := range req.ForgottenTopics {
			fmt.Fprintf(&b, "; without %v", topic.Partitions)
		}
	case *kmsg.ListOffsetsRequest:
		b.WriteString("offsets")
		for _, topic := range req.Topics {
			for _, p := range topic.Partitions {
				fmt.Fprintf(&b, "; %d at %d in %d", p.Partition, p.Timestamp, p.CurrentLeaderEpoch)
			}
		}
	}
	return b.String()
}

// answered is what an answer says of a partition.
type answered struct {
	n             int32
	code          protocol.ErrorCode
	highWatermark int64
	records       []byte
	diverging     *wire.EpochEndOffset
}

func (f *fixture) answer(to sent, session int32, parts ...answered) {
	resp := kmsg.NewPtrFetchResponse()
	resp.SessionID = session
	topic := kmsg.NewFetchResponseTopic()
	topic.TopicID = topicID
	f.frames++
	frame := wire.NewFrame(0, func() { f.frames-- })
	for _, p := range parts {
		data := kmsg.NewFetchResponseTopicPartition()
		data.Partition, data.ErrorCode, data.HighWatermark, data.LogStartOffset, data.RecordBatches = p.n, int16(p.code), p.highWatermark, 0, p.records
		if p.diverging != nil {
			data.DivergingEpoch.Epoch, data.DivergingEpoch.EndOffset = int32(p.diverging.Epoch), int64(p.diverging.EndOffset)
		}
		topic.Partitions = append(topic.Partitions, data)
	}
	if len(parts) > 0 {
		resp.Topics = append(resp.Topics, topic)
	}
	to.done(f.now, resp, frame, nil)
	if f.frames != 0 {
		f.t.Errorf("the frame of an answer was not released")
	}
}

func batchAt(base protocol.Offset, epoch protocol.LeaderEpoch, count, valueBytes int) []byte {
	b := record.NewBuilder(record.PlainOptions())
	for range count {
		b.Append(begin.UnixMilli(), nil, make([]byte, valueBytes), nil)
	}
	batch := b.Build(nil)
	batch.SetBaseOffset(base)
	batch.SetPartitionLeaderEpoch(epoch)
	return batch
}

// TestSession: all partitions once, then what has changed; what is assigned anew leaves the session first, and comes back at
// once.
func TestSession(t *testing.T) {
	f := newFixture(t, nil)
	f.quiet(-1)
	f.follow(0, 1)
	f.follow(1, 1)
	f.quiet(0)
	f.tick(0)
	first := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1")
	req := first.req.(*kmsg.FetchRequest)
	if req.ReplicaState.ID != 1 || req.ReplicaState.Epoch != 77 || first.leader != 2 || req.Topics[0].TopicID != topicID {
		t.Errorf("it says %+v to %d", req.ReplicaState, first.leader)
	}
	f.quiet(-1) // it waits for the answer
	f.answer(first, 5, answered{n: 0, records: batchAt(0, 1, 3, 1), highWatermark: 2}, answered{n: 1})
	second := f.asks("session 5.1 wait 500; 0 from 3 after epoch 1 in 1")
	if p := f.fetchers.assigned[orders(0)]; !p.answered || p.lag != 0 {
		t.Errorf("it lags %d, %v", p.lag, p.answered)
	}
	f.answer(second, 5)
	third := f.asks("session 5.2 wait 500")
	f.fetchers.Unassign(orders(1))
	f.follow(0, 2) // the leader has another epoch
	f.answer(third, 5, answered{n: 0, highWatermark: 3})
	if d, _ := f.replicas.Describe(orders(0)); d.HighWatermark != 2 {
		t.Errorf("an answer to an earlier assignment moved the high watermark to %d", d.HighWatermark)
	}
	fourth := f.asks("session 5.3 wait 0; without [1 0]")
	f.answer(fourth, 5)
	fifth := f.asks("session 5.4 wait 500; 0 from 3 after epoch 1 in 2")
	f.answer(fifth, 5, answered{n: 0, highWatermark: 3})
	if d, _ := f.replicas.Describe(orders(0)); d.HighWatermark != 3 {
		t.Errorf("the high watermark is %d", d.HighWatermark)
	}
	last := f.asks("session 5.5 wait 500")
	f.fetchers.Close()
	f.answer(last, 5)
	f.quiet(-1)
}

// TestUnregistered: nothing is fetched before the leader can be told which process asks.
func TestUnregistered(t *testing.T) {
	epoch := protocol.BrokerEpoch(-1)
	f := newFixture(t, func(o *Options) { o.BrokerEpoch = func() protocol.BrokerEpoch { return epoch } })
	f.follow(0, 1)
	f.tick(0)
	f.quiet(unregisteredPause)
	epoch = 5
	f.tick(unregisteredPause)
	if got := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1").req.(*kmsg.FetchRequest).ReplicaState.Epoch; got != 5 {
		t.Errorf("it tells epoch %d", got)
	}
}

// TestErrors: one partition pauses and leaves the session, a leader that does not answer is left alone for a while, and a session
// that is lost is made anew at once.
func TestErrors(t *testing.T) {
	f := newFixture(t, nil)
	f.follow(0, 1)
	f.follow(1, 1)
	f.tick(0)
	f.answer(f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1"), 5, answered{n: 0, code: protocol.NotLeaderOrFollower}, answered{n: 1})
	f.answer(f.asks("session 5.1 wait 10; without [0]"), 5)
	f.now = f.now.Add(time.Second)
	f.answer(f.asks("session 5.2 wait 10"), 5)
	f.asks("session 5.3 wait 500; 0 from 0 after epoch -1 in 1").done(f.now, nil, nil, errors.New("broken"))
	f.quiet(time.Second)
	f.tick(time.Second)
	again := f.asks("session 5.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1")
	f.answer(again, 6, answered{n: 0}, answered{n: 1})
	lost := f.asks("session 6.1 wait 500")
	resp := kmsg.NewPtrFetchResponse()
	resp.ErrorCode = int16(protocol.FetchSessionIDNotFound)
	lost.done(f.now, resp, nil, nil)
	twice := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1")
	twice.done(f.now, resp, nil, nil)
	f.quiet(time.Second) // not for ever
}

// TestUnheard: a leader that does not know yet that it leads is asked again soon and ever later, at last as after any other error;
// meanwhile the fetch of the others does not wait longer than that.
func TestUnheard(t *testing.T) {
	f := newFixture(t, nil)
	f.follow(0, 1)
	f.follow(1, 1)
	f.tick(0)
	asked := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1")
	for i, wait := range []int{10, 20, 40, 80, 160, 320, 500, 500, 500} {
		f.answer(asked, 5, answered{n: 0, code: protocol.UnknownTopicID}, answered{n: 1})
		others := f.asks(fmt.Sprintf("session 5.%d wait %d; without [0]", 2*i+1, wait))
		f.now = f.now.Add([]time.Duration{10, 20, 40, 80, 160, 320, 640, 1000, 1000}[i] * time.Millisecond)
		f.answer(others, 5)
		asked = f.asks(fmt.Sprintf("session 5.%d wait 500; 0 from 0 after epoch -1 in 1", 2*i+2))
	}
}

// TestDamage: a damaged batch is asked for again after a pause, from where the log ends then.
func TestDamage(t *testing.T) {
	f := newFixture(t, nil)
	f.follow(0, 1)
	f.tick(0)
	damaged := batchAt(2, 1, 1, 1)
	damaged[len(damaged)-1] ^= 1
	f.answer(f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1"), 5, answered{n: 0, records: slices.Concat(batchAt(0, 1, 2, 1), damaged)})
	f.answer(f.asks("session 5.1 wait 500; without [0]"), 5)
	f.quiet(time.Second)
	f.tick(time.Second)
	f.asks("session 5.2 wait 500; 0 from 2 after epoch 1 in 1")
}

// TestDiverging: the log is cut, and asked for from there.
func TestDiverging(t *testing.T) {
	f := newFixture(t, nil)
	f.follow(0, 4)
	f.tick(0)
	f.answer(f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 4"), 5, answered{n: 0, records: slices.Concat(batchAt(0, 1, 2, 1), batchAt(2, 3, 2, 1))})
	f.answer(f.asks("session 5.1 wait 500; 0 from 4 after epoch 3 in 4"), 5, answered{n: 0, highWatermark: 9, diverging: &wire.EpochEndOffset{Epoch: 2, EndOffset: 5}})
	f.answer(f.asks("session 5.2 wait 0; without [0]"), 5) // so that the high watermark is told again
	f.asks("session 5.3 wait 500; 0 from 2 after epoch 1 in 4")
}

// TestOutOfRange: the leader is asked where its log ends, and where it begins.
func TestOutOfRange(t *testing.T) {
	f := newFixture(t, nil)
	f.follow(0, 1)
	f.tick(0)
	f.answer(f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1"), 5, answered{n: 0, code: protocol.OffsetOutOfRange})
	offsets := func(to sent, offset int64) {
		resp := kmsg.NewPtrListOffsetsResponse()
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = "orders"
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = offset
		topic.Partitions = append(topic.Partitions, p)
		resp.Topics = append(resp.Topics, topic)
		to.done(f.now, resp, nil, nil)
	}
	offsets(f.asks("offsets; 0 at -1 in 1"), 50)
	offsets(f.asks("offsets; 0 at -2 in 1"), 30)
	f.answer(f.asks("session 5.1 wait 0; without [0]"), 5)
	to := f.asks("session 5.2 wait 500; 0 from 30 after epoch -1 in 1")
	// And a leader whose log is shorter.
	f.answer(to, 5, answered{n: 0, code: protocol.OffsetOutOfRange})
	offsets(f.asks("offsets; 0 at -1 in 1"), 20)
	f.answer(f.asks("session 5.3 wait 0; without [0]"), 5)
	f.asks("session 5.4 wait 500; 0 from 20 after epoch -1 in 1")
}

// TestThrottle: a partition that is behind waits for its share, and goes on.
func TestThrottle(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Throttled = func(tp protocol.TopicPartition) bool { return tp.Partition == 0 } })
	f.fetchers.SetThrottle(1000)
	f.follow(0, 1)
	f.follow(1, 1)
	f.tick(0)
	first := f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1; 1 from 0 after epoch -1 in 1")
	f.answer(first, 5, answered{n: 0, records: batchAt(0, 1, 1, 2000), highWatermark: 9}, answered{n: 1, records: batchAt(0, 1, 1, 2000), highWatermark: 9})
	second := f.asks("session 5.1 wait 500; 1 from 1 after epoch 1 in 1; without [0]")
	f.now = f.now.Add(3 * time.Second)
	f.answer(second, 5)
	f.asks("session 5.2 wait 500; 0 from 1 after epoch 1 in 1")
}

// TestThrottleEnds: a partition that waits for its share under a low limit, and would for weeks, goes on soon after the limit was taken
// away.
func TestThrottleEnds(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Throttled = func(protocol.TopicPartition) bool { return true } })
	f.fetchers.SetThrottle(1)
	f.follow(0, 1)
	f.tick(0)
	f.answer(f.asks("session 0.0 wait 500; 0 from 0 after epoch -1 in 1"), 5, answered{n: 0, records: batchAt(0, 1, 1, 1_000_000), highWatermark: 9})
	f.answer(f.asks("session 5.1 wait 500; without [0]"), 5)
	f.quiet(time.Second)
	f.tick(time.Second)
	f.quiet(time.Second) // asked again, and in vain
	f.fetchers.SetThrottle(-1)
	f.tick(time.Second)
	f.asks("session 5.2 wait 500; 0 from 1 after epoch 1 in 1")
}
