package shard

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/replica"
)

// Options are what a Manager needs. Zero values take the defaults named.
type Options struct {
	Topic    string // __consumer_offsets or __transaction_state
	Replicas *replica.Manager
	Pool     *compress.Pool
	// NewMachine makes the machine of one partition; it is called at each load
	// after an unload.
	NewMachine func(partition int32) machine.Machine
	// OnEffect is told of every effect that is not a machine.Respond, once what it
	// came with is committed. nil: they are dropped.
	OnEffect func(partition int32, effect any)

	Codec        compress.Codec // offsets.topic.compression.codec
	ReplyTimeout time.Duration  // offsets.commit.timeout.ms: how long a reply may wait for commitment; 5 s
	LoadBytes    int            // offsets.load.buffer.size: read at once by a load; 5 MiB
	Loaders      int            // load steps at a time; 2

	MaxQueued  int // requests of one shard that wait to be decided; 10,000
	MaxHeld    int // replies of one shard that wait for the high watermark; 10,000
	MaxPending int // records of one shard that were decided and are not committed; 100,000
	MaxEvents  int // events that a shard keeps while it loads; 1,000

	// Workers runs a task elsewhere: load steps, and the rest of a queue that does
	// not run dry. nil: each Tick does one step of one load.
	Workers func(task func())
	// Wake, if not nil, is called when NextDeadline became earlier; it must not
	// block.
	Wake   func()
	Logger *slog.Logger // nil: silent
}

func (o *Options) setDefaults() {
	o.ReplyTimeout = cmp.Or(o.ReplyTimeout, 5*time.Second)
	o.LoadBytes = cmp.Or(o.LoadBytes, 5<<20)
	o.Loaders = cmp.Or(o.Loaders, 2)
	o.MaxQueued = cmp.Or(o.MaxQueued, 10_000)
	o.MaxHeld = cmp.Or(o.MaxHeld, 10_000)
	o.MaxPending = cmp.Or(o.MaxPending, 100_000)
	o.MaxEvents = cmp.Or(o.MaxEvents, 1_000)
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// defaultBatchBytes is Kafka's max.message.bytes.
const defaultBatchBytes = 1<<20 + 12

// Manager holds the shards of one topic on this node. All methods may be called
// from anywhere at any time, also by callbacks, but for Close.
type Manager struct {
	options    Options
	batchBytes atomic.Int64
	deadlines  deadlines
	loads      loads
	loadTimes  loadTimes

	mu     sync.RWMutex
	shards map[int32]*shard
	closed bool
}

// New makes a Manager without any shard.
func New(options Options) *Manager {
	options.setDefaults()
	m := &Manager{options: options, shards: map[int32]*shard{}}
	m.batchBytes.Store(defaultBatchBytes)
	m.loads.limit = options.Loaders
	return m
}

// SetMaxBatchBytes tells the topic's max.message.bytes (or segment.bytes, if
// that is less): no batch is made larger.
func (m *Manager) SetMaxBatchBytes(n int) { m.batchBytes.Store(int64(n)) }

// MaxBatchBytes is what was told last; Kafka's default before. A machine that
// may decide much asks it, and refuses what would not fit before it decides.
func (m *Manager) MaxBatchBytes() int { return int(m.batchBytes.Load()) }

// Load says that this node leads the partition in an epoch, once its replica
// knows that. Of an epoch that is known or older it changes nothing; of a newer
// one the partition is loaded anew.
func (m *Manager) Load(now time.Time, partition int32, leaderEpoch protocol.LeaderEpoch) {
	m.mu.Lock()
	s, known := m.shards[partition]
	if !known && !m.closed {
		s = newShard(m, partition)
		m.shards[partition] = s
	}
	m.mu.Unlock()
	if s != nil {
		s.post(event{now: now, run: func() { s.load(leaderEpoch) }})
	}
}

// Unload says that another node leads the partition since leaderEpoch, or none.
// NoLeaderEpoch: the partition is gone from this node; an epoch may come again.
// Everyone who waits gets NOT_COORDINATOR.
func (m *Manager) Unload(now time.Time, partition int32, leaderEpoch protocol.LeaderEpoch) {
	m.mu.Lock()
	s := m.shards[partition]
	if leaderEpoch == protocol.NoLeaderEpoch {
		delete(m.shards, partition)
	}
	m.mu.Unlock()
	if s != nil {
		s.post(event{now: now, run: func() { s.unload(leaderEpoch) }})
	}
}

// Submit has the machine of a partition decide request and calls done once, now
// or later, with the reply when it is committed. The error is what the machine
// says, or a *protocol.Error of the shell: NOT_COORDINATOR,
// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE where a reply would
// wait too long or too many wait, UNKNOWN_SERVER_ERROR for more records than a
// batch can hold. done must not block; it may call Submit.
func (m *Manager) Submit(now time.Time, partition int32, request any, done func(reply any, err error)) {
	m.mu.RLock()
	s := m.shards[partition]
	m.mu.RUnlock()
	if s == nil {
		done(nil, notCoordinator(m.options.Topic, partition))
		return
	}
	s.submit(now, request, done)
}

// Broadcast has the machine of every partition that this node coordinates decide
// an event, which has no reply. One that is being loaded decides it after that,
// and one whose write failed decides it again.
func (m *Manager) Broadcast(now time.Time, request any) {
	for _, s := range m.sorted() {
		s.post(event{now: now, run: func() { s.tell(request) }})
	}
}

// Partitions lists those that this node coordinates, also those that are being
// loaded, in ascending order.
func (m *Manager) Partitions() []int32 {
	var led []int32
	for _, s := range m.sorted() {
		if phase := phase(s.shown.Load()); phase != idle && phase != closed {
			led = append(led, s.partition)
		}
	}
	return led
}

// Counts tells how many shards are loading, active and failed, as Kafka's metric
// num-partitions does.
func (m *Manager) Counts() (loadingCount, activeCount, failedCount int) {
	for _, s := range m.sorted() {
		switch phase(s.shown.Load()) {
		case loading, loaded:
			loadingCount++
		case active:
			activeCount++
		case failed:
			failedCount++
		}
	}
	return loadingCount, activeCount, failedCount
}

// NextDeadline is when Tick has something to do; zero for never.
func (m *Manager) NextDeadline() time.Time {
	next := m.deadlines.next()
	if m.options.Workers == nil {
		if due := m.loads.due(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			return due
		}
	}
	return next
}

// Tick does what is due, and without Workers one step of one load.
func (m *Manager) Tick(now time.Time) {
	for _, s := range m.deadlines.take(now) {
		s.post(event{now: now, run: s.tick})
	}
	if m.options.Workers == nil {
		if s := m.loads.take(); s != nil {
			s.post(event{now: now, run: s.loadStep})
		}
	}
}

// Close ends it: everyone who waits gets NOT_COORDINATOR, and so does who comes
// later. It returns when that is done, and must not be called by a callback.
// The replicas must still be there.
func (m *Manager) Close(now time.Time) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for _, s := range m.sorted() {
		ended := make(chan struct{}) // somebody else may be at work
		s.post(event{now: now, run: func() { s.close() }, after: func() { close(ended) }})
		<-ended
	}
}

func (m *Manager) sorted() []*shard {
	m.mu.RLock()
	all := make([]*shard, 0, len(m.shards))
	for _, s := range m.shards {
		all = append(all, s)
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b *shard) int { return cmp.Compare(a.partition, b.partition) })
	return all
}

func notCoordinator(topic string, partition int32) error {
	return protocol.Errorf(protocol.NotCoordinator, "this node does not coordinate %s-%d", topic, partition)
}
