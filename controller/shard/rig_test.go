package shard

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

var (
	start   = time.UnixMilli(1_800_000_000_000)
	topicID = protocol.TopicID{1, 2, 3}
)

// rig is a Manager of toys over real replicas, logs and store on a disk in
// memory.
type rig struct {
	t        testing.TB
	disk     *vfs.Mem
	logs     log.Options
	store    *store.Store
	replicas *replica.Manager
	shards   *Manager
	pool     *compress.Pool
	change   []func(*Options)
	now      time.Time
	seed     uint64

	mu      sync.Mutex
	toys    map[int32][]*toy // every machine ever made
	effects []any
	tasks   []func() // what Workers were given, if they are held back
	wakes   int
	greets  bool
	banks   bool
}

func randomWords(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 1))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	r := &rig{t: t, disk: vfs.NewMem(randomWords(1)), logs: log.DefaultOptions(), pool: compress.NewPool(), change: change, now: start}
	r.logs.Compact, r.logs.Delete = true, false
	r.must(r.disk.MkdirAll("/data"))
	r.must(r.disk.SyncDir("/"))
	r.must(logdir.WriteMetaProperties(r.disk, "/data", logdir.MetaProperties{ClusterID: "c", NodeID: 1, DirectoryID: protocol.DirectoryID{9}}))
	r.open()
	t.Cleanup(func() { r.shut(false) })
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open() {
	r.t.Helper()
	r.seed++
	var err error
	r.store, _, err = store.Open(r.now, store.Options{
		FS: r.disk, Dirs: []string{"/data"}, MetadataDir: "/data", NodeID: 1, Pool: r.pool, Files: segment.NewFileCache(r.disk, 100),
		Random: randomWords(r.seed), DisableBackgroundFlush: true, LogOptions: func(string) log.Options { return r.logs },
		Offline: func(d store.Directory) { r.replicas.DirectoryFailed(d.ID) },
	})
	r.must(err)
	r.replicas = replica.New(r.now, replica.Options{NodeID: 1, Store: r.store, Pool: r.pool})
	r.toys = map[int32][]*toy{}
	options := Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: r.replicas, Pool: r.pool, NewMachine: r.newMachine,
		OnEffect: func(_ int32, effect any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.effects = append(r.effects, effect)
		},
		Wake: func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.wakes++
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range r.change {
		c(&options)
	}
	r.shards = New(options)
}

func (r *rig) newMachine(p int32) machine.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := newToy(p)
	made.greets = r.greets
	r.toys[p] = append(r.toys[p], made)
	if r.banks {
		return bank{made}
	}
	return made
}

// toy is the machine of the moment.
func (r *rig) toy(p int32) *toy {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.toys[p]) == 0 {
		r.t.Fatalf("no machine was made for partition %d", p)
	}
	return r.toys[p][len(r.toys[p])-1]
}

func (r *rig) shut(clean bool) {
	if r.shards != nil {
		r.shards.Close(r.now)
		_ = r.replicas.Close(r.now)
		_ = r.store.Close(r.now, clean, -1)
		r.shards = nil
	}
}

func tpOf(p int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: protocol.ConsumerOffsetsTopic, Partition: p}
}

func (r *rig) role(p int32, leader protocol.NodeID, epoch protocol.LeaderEpoch, partitionEpoch int32, isr []protocol.NodeID, nodes ...protocol.NodeID) {
	r.t.Helper()
	r.must(r.replicas.Apply(r.now, tpOf(p), partition.State{
		TopicID: topicID, Leader: leader, LeaderEpoch: epoch, PartitionEpoch: partitionEpoch, ISR: isr, Replicas: nodes,
	}, protocol.DirectoryUnassigned, true))
}

// lead makes this node the only replica, and loads.
func (r *rig) lead(p int32, epoch protocol.LeaderEpoch) {
	r.t.Helper()
	r.role(p, 1, epoch, int32(epoch), []protocol.NodeID{1}, 1)
	r.shards.Load(r.now, p, epoch)
}

// leadActive does the same and waits until the machine is active.
func (r *rig) leadActive(p int32, epoch protocol.LeaderEpoch) {
	r.t.Helper()
	r.lead(p, epoch)
	r.settle()
}

// settle ticks as long as something is due.
func (r *rig) settle() {
	r.t.Helper()
	for i := 0; ; i++ {
		due := r.shards.NextDeadline()
		if due.IsZero() || due.After(r.now) {
			return
		}
		if i > 10_000 {
			r.t.Fatalf("something is due for ever: %v", due.Sub(r.now))
		}
		r.shards.Tick(r.now)
	}
}

func (r *rig) advance(d time.Duration) {
	r.t.Helper()
	r.now = r.now.Add(d)
	r.replicas.Tick(r.now)
	r.settle()
}

// outcome is an answer that may come later, and must come once.
type outcome struct {
	t     testing.TB
	what  any
	mu    sync.Mutex
	count int
	reply any
	err   error
}

func (o *outcome) done(reply any, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count++; o.count > 1 {
		o.t.Errorf("%#v was answered %d times: %v %v, then %v %v", o.what, o.count, o.reply, o.err, reply, err)
		return
	}
	o.reply, o.err = reply, err
}

func (o *outcome) isDone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count > 0
}

func (o *outcome) wait(t *testing.T) {
	t.Helper()
	if o.isDone() {
		t.Fatalf("%#v is answered already: %v %v", o.what, o.reply, o.err)
	}
}

func (o *outcome) is(want any) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count != 1 || o.err != nil || o.reply != want {
		o.t.Fatalf("%#v: %d answers, %v %v; want %v", o.what, o.count, o.reply, o.err, want)
	}
}

func (o *outcome) fails(code protocol.ErrorCode) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count != 1 || protocol.CodeOf(o.err) != code {
		o.t.Fatalf("%#v: %d answers, %v %v; want %s", o.what, o.count, o.reply, o.err, code)
	}
}

func (r *rig) ask(p int32, request any) *outcome {
	o := &outcome{t: r.t, what: request}
	r.shards.Submit(r.now, p, request, o.done)
	return o
}

// follow has a follower fetch from an offset, which says that it has everything
// before.
func (r *rig) follow(p int32, node protocol.NodeID, epoch protocol.LeaderEpoch, from protocol.Offset) {
	r.t.Helper()
	r.replicas.Fetch(r.now, replica.FetchRequest{
		Partitions: []replica.FetchPartition{{
			Partition: tpOf(p), Offset: from, MaxBytes: 1 << 20, CurrentLeaderEpoch: epoch, LastFetchedEpoch: protocol.NoLeaderEpoch,
		}},
		Replica: node, ReplicaEpoch: -1, MaxBytes: 1 << 20, Version: 17,
	}, func(results []replica.FetchResult) {
		results[0].Records.Release()
		r.must(results[0].Err)
	})
}

func (r *rig) logEnd(p int32) protocol.Offset {
	r.t.Helper()
	end, err := r.replicas.LogEnd(tpOf(p))
	r.must(err)
	return end
}

// replayed is what a fresh machine makes of the log.
func (r *rig) replayed(p int32, epoch protocol.LeaderEpoch) string {
	r.t.Helper()
	fresh := newToy(p)
	m := New(Options{
		Topic: protocol.ConsumerOffsetsTopic, Replicas: r.replicas, Pool: r.pool,
		NewMachine: func(int32) machine.Machine { return fresh },
	})
	m.Load(r.now, p, epoch)
	for range 10_000 {
		if fresh.active {
			break
		}
		m.Tick(r.now)
	}
	if !fresh.active {
		r.t.Fatal("the replay does not end")
	}
	m.Close(r.now)
	return fresh.dump()
}
