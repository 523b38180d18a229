package replica

import (
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

var start = time.UnixMilli(1_800_000_000_000)

var (
	orders  = protocol.TopicPartition{Topic: "orders", Partition: 0}
	orders1 = protocol.TopicPartition{Topic: "orders", Partition: 1}
	bills   = protocol.TopicPartition{Topic: "bills", Partition: 0}

	ordersID = protocol.TopicID{1, 2, 3}
	billsID  = protocol.TopicID{4, 5, 6}
)

// fixture is a manager over a real store on a disk in memory.
type fixture struct {
	t       testing.TB
	fs      vfs.FS
	mem     *vfs.Mem // nil on a real disk
	dirs    []string
	options log.Options
	store   *store.Store
	files   *segment.FileCache
	manager *Manager
	now     time.Time

	// What the manager asked of the world.
	wishes []wish
	mu     sync.Mutex
}

type wish struct {
	tp     protocol.TopicPartition
	alter  *partition.AlterPartition
	answer func(time.Time, partition.AlterResult)
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

func newFixture(t testing.TB, change ...func(*fixture, *Options)) *fixture {
	mem := vfs.NewMem(randomWords(1))
	f := &fixture{t: t, fs: mem, mem: mem, dirs: []string{"/data"}, options: log.DefaultOptions(), now: start}
	f.options.VerifyTransactions = false // but where that is what is tested
	f.open(true, change...)
	t.Cleanup(f.close)
	return f
}

// open formats the directories if asked, and starts a store and a manager.
func (f *fixture) open(format bool, change ...func(*fixture, *Options)) {
	f.t.Helper()
	o := Options{
		NodeID: 1, Pool: compress.NewPool(),
		AlterPartition: func(tp protocol.TopicPartition, alter *partition.AlterPartition, answer func(time.Time, partition.AlterResult)) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.wishes = append(f.wishes, wish{tp, alter, answer})
		},
	}
	for _, c := range change {
		c(f, &o)
	}
	if format {
		for i, dir := range f.dirs {
			f.must(f.fs.MkdirAll(dir))
			f.must(f.fs.SyncDir(path.Dir(dir)))
			f.must(logdir.WriteMetaProperties(f.fs, dir, logdir.MetaProperties{
				ClusterID: "cluster", NodeID: 1, DirectoryID: protocol.DirectoryID{9, byte(i)},
			}))
		}
	}
	f.files = segment.NewFileCache(f.fs, 100)
	s, _, err := store.Open(f.now, store.Options{
		FS: f.fs, Dirs: f.dirs, MetadataDir: f.dirs[0], NodeID: 1, Pool: o.Pool, Files: f.files, Random: randomWords(2), DisableBackgroundFlush: true,
		LogOptions: func(string) log.Options { return f.options },
		Offline:    func(d store.Directory) { f.manager.DirectoryFailed(d.ID) },
	})
	f.must(err)
	o.Store = s
	f.store = s
	f.manager = New(f.now, o)
}

func (f *fixture) close() {
	if f.manager != nil {
		_ = f.manager.Close(f.now)
		_ = f.store.Close(f.now, false, -1)
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// alone is the state of a partition whose only replica is node 1.
func alone(id protocol.TopicID, epoch protocol.LeaderEpoch) partition.State {
	return partition.State{
		TopicID: id, Leader: 1, LeaderEpoch: epoch, PartitionEpoch: int32(epoch),
		ISR: []protocol.NodeID{1}, Replicas: []protocol.NodeID{1},
	}
}

// among is the state of a partition that node 1 leads, replicated by the nodes.
func among(id protocol.TopicID, epoch protocol.LeaderEpoch, partitionEpoch int32, isr []protocol.NodeID, nodes ...protocol.NodeID) partition.State {
	return partition.State{TopicID: id, Leader: 1, LeaderEpoch: epoch, PartitionEpoch: partitionEpoch, ISR: isr, Replicas: nodes}
}

func (f *fixture) lead(tp protocol.TopicPartition, state partition.State) {
	f.t.Helper()
	f.must(f.manager.Apply(f.now, tp, state, protocol.DirectoryUnassigned, true))
}

func (f *fixture) replica(tp protocol.TopicPartition) *Replica {
	f.t.Helper()
	r, err := f.manager.find(tp, protocol.ZeroUUID)
	f.must(err)
	return r
}

// batch makes one of count records with values of some size.
func batch(count, valueBytes int) record.Batch {
	b := record.NewBuilder(record.PlainOptions())
	for i := range count {
		b.Append(start.UnixMilli()+int64(i), []byte("key"), make([]byte, valueBytes), nil)
	}
	return b.Build(nil)
}

// idempotent makes one of an idempotent producer.
func idempotent(id protocol.ProducerID, sequence int32, count int) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = id, 0, sequence
	b := record.NewBuilder(o)
	for i := range count {
		b.Append(start.UnixMilli(), []byte("key"), fmt.Appendf(nil, "%d", sequence+int32(i)), nil)
	}
	return b.Build(nil)
}

func transactional(id protocol.ProducerID, sequence int32, count int) record.Batch {
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, 0, sequence, true
	b := record.NewBuilder(o)
	for range count {
		b.Append(start.UnixMilli(), []byte("key"), []byte("value"), nil)
	}
	return b.Build(nil)
}

func request(tp protocol.TopicPartition, records []byte, acks int16) AppendRequest {
	return AppendRequest{Partition: tp, Records: records, RequiredAcks: acks, Timeout: time.Second, AllowZstd: true}
}

// pending is an answer that may come later.
type pending[T any] struct {
	t     testing.TB
	mu    sync.Mutex
	value T
	count int
	ready chan struct{}
}

func newPending[T any](t testing.TB) *pending[T] {
	return &pending[T]{t: t, ready: make(chan struct{})}
}

func (p *pending[T]) done(value T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	if p.count > 1 {
		p.t.Errorf("done was called %d times", p.count)
		return
	}
	p.value = value
	close(p.ready)
}

func (p *pending[T]) isDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count > 0
}

// get gives an answer that must be there.
func (p *pending[T]) get() T {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == 0 {
		p.t.Fatal("there is no answer yet")
	}
	return p.value
}

func (f *fixture) start(req AppendRequest) *pending[AppendResult] {
	p := newPending[AppendResult](f.t)
	f.manager.Append(f.now, req, p.done)
	return p
}

// append appends and expects the answer at once.
func (f *fixture) append(req AppendRequest) AppendResult {
	f.t.Helper()
	return f.start(req).get()
}

// fill appends batches that must succeed.
func (f *fixture) fill(tp protocol.TopicPartition, batches ...record.Batch) {
	f.t.Helper()
	for _, b := range batches {
		f.must(f.append(request(tp, b, AcksLeader)).Err)
	}
}

func consumer(parts ...FetchPartition) FetchRequest {
	return FetchRequest{
		Partitions: parts, Replica: Consumer, ReplicaEpoch: -1, MinBytes: 1, MaxBytes: 50 << 20, MaxWait: 500 * time.Millisecond, Version: 17,
	}
}

func at(tp protocol.TopicPartition, offset protocol.Offset) FetchPartition {
	return FetchPartition{
		Partition: tp, Offset: offset, MaxBytes: 1 << 20, CurrentLeaderEpoch: protocol.NoLeaderEpoch,
		LastFetchedEpoch: protocol.NoLeaderEpoch, FollowerLogStart: -1,
	}
}

func follower(id protocol.NodeID, parts ...FetchPartition) FetchRequest {
	for i := range parts {
		parts[i].FollowerLogStart = 0
	}
	return FetchRequest{
		Partitions: parts, Replica: id, ReplicaEpoch: -1, MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 500 * time.Millisecond, Version: 17,
	}
}

func (f *fixture) poll(req FetchRequest) (*pending[[]FetchResult], func()) {
	p := newPending[[]FetchResult](f.t)
	cancel := f.manager.Fetch(f.now, req, p.done)
	return p, cancel
}

// fetch fetches and expects the answer at once.
func (f *fixture) fetch(req FetchRequest) []FetchResult {
	f.t.Helper()
	p, _ := f.poll(req)
	return p.get()
}

// batchesOf reads the batches of a result and releases it.
func batchesOf(t testing.TB, result *FetchResult) []record.Batch {
	t.Helper()
	defer result.Records.Release()
	bytes, err := result.Records.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var batches []record.Batch
	for len(bytes) > 0 {
		var b record.Batch
		b, bytes, err = record.Next(bytes)
		if err != nil {
			t.Fatalf("after %d batches: %v", len(batches), err)
		}
		batches = append(batches, b)
	}
	return batches
}

func code(err error) protocol.ErrorCode { return protocol.CodeOf(err) }
