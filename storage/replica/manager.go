package replica

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/deadlines"
	"ottla/storage/log"
	"ottla/storage/move"
	"ottla/storage/partition"
	"ottla/storage/store"
	"ottla/storage/traffic"
	"ottla/storage/vfs"
)

// Options are what a Manager needs. Zero values take the defaults named.
type Options struct {
	NodeID protocol.NodeID
	Store  *store.Store
	Pool   *compress.Pool // for validation and compression.type

	LagTimeMax         time.Duration // replica.lag.time.max.ms; 30 s
	CheckpointInterval time.Duration // replica.high.watermark.checkpoint.interval.ms; 5 s
	MaxDecompressed    int           // bytes that a client's batch may expand to; 1 GiB
	MaxRecordBytes     int           // max.decompressed.message.bytes, of one record; 0 is Kafka's default
	QueueBatches       int           // batches waiting for one partition before readers are held; 1,000
	QueueBytes         int           // the same in bytes; 16 MiB
	MaxFetchWaiters    int           // long polls at a time on the node; beyond it a fetch does not wait; 100,000

	// Known tells whether the metadata has the partition though it is not here,
	// which is NOT_LEADER_OR_FOLLOWER and not UNKNOWN_TOPIC_OR_PARTITION. nil: no.
	Known func(tp protocol.TopicPartition) bool
	// Brokers is the metadata's view of brokers, for the ISR. nil: all alive.
	Brokers partition.Brokers
	// AlterPartition sends a wish for another ISR to the controller and calls
	// answer once, later; it pauses before it sends a wish that failed again. nil:
	// the ISR never changes by itself.
	AlterPartition func(tp protocol.TopicPartition, wish *partition.AlterPartition, answer func(now time.Time, result partition.AlterResult))
	// Rack gives the rack of a broker that is alive (broker.rack), "" if it has none. With it consumers of a rack are told of
	// the replica there (replica.selector.class with RackAwareReplicaSelector). nil: leaders serve all consumers.
	Rack func(id protocol.NodeID) string
	// Throttled tells whether what a follower gets of a partition is limited while it is not in sync
	// (leader.replication.throttled.replicas); see SetReplicationLimit. nil: no.
	Throttled func(tp protocol.TopicPartition, follower protocol.NodeID) bool
	// Assign tells the controller that a replica is to be in another directory, which
	// is answered by an Apply with that directory. nil: replicas never move.
	Assign func(tp protocol.TopicPartition, topicID protocol.TopicID, dir protocol.DirectoryID)
	// MoveParallelism is how many replicas move at a time
	// (num.replica.alter.log.dirs.threads); 0 is the number of directories.
	MoveParallelism int
	// Workers runs a task elsewhere: a hand-over queue that does not run dry, a
	// checkpoint, the step of a move. nil: inline.
	Workers func(task func())
	Logger  *slog.Logger // nil: silent
}

func (o *Options) setDefaults() {
	o.LagTimeMax = cmp.Or(o.LagTimeMax, 30*time.Second)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, 5*time.Second)
	o.MaxDecompressed = cmp.Or(o.MaxDecompressed, 1<<30)
	o.QueueBatches = cmp.Or(o.QueueBatches, 1000)
	o.QueueBytes = cmp.Or(o.QueueBytes, 16<<20)
	o.MaxFetchWaiters = cmp.Or(o.MaxFetchWaiters, 100_000)
	if o.Workers == nil {
		o.Workers = func(task func()) { task() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Manager holds every replica of the node. All methods may be called from
// anywhere at any time; Apply, Remove and SetOptions of one partition wait for
// one another and for an append in progress.
type Manager struct {
	// Wake, if set before the first call, is called when NextDeadline became
	// earlier. It must not block.
	Wake func()

	options  Options
	replicas sync.Map // protocol.TopicPartition → *Replica
	failed   sync.Map // protocol.TopicPartition → error: those whose log is out of reach

	// lifecycle is read-locked by Apply, Remove and SetOptions, so that Close comes
	// before or after; stripes serialise those of one partition.
	lifecycle sync.RWMutex
	closed    bool
	stripes   [64]sync.Mutex

	traffic traffic.Topics
	timers  deadlines.Timers
	moves   move.List[*Replica]
	// replication is what followers that are not in sync may get.
	replication move.Limit
	polling     atomic.Int64 // fetches that wait

	tickMu         sync.Mutex
	nextCheckpoint time.Time
	nextISRCheck   time.Time

	checkpointing atomic.Bool
	checkpointMu  sync.Mutex

	warnedFull atomic.Int64 // when warnFull last spoke, in Unix nanoseconds
}

// New makes a Manager. The store's logs get their replicas by Apply.
func New(now time.Time, options Options) *Manager {
	options.setDefaults()
	m := &Manager{options: options}
	m.nextCheckpoint = now.Add(options.CheckpointInterval)
	m.nextISRCheck = now.Add(options.LagTimeMax / 2)
	m.timers.Wake = func() {
		if m.Wake != nil {
			m.Wake()
		}
	}
	options.Store.SetExclusive(m.Exclusive)
	return m
}

// find gives the replica, or the error for a request that names a partition
// that is not here.
func (m *Manager) find(tp protocol.TopicPartition, topicID protocol.TopicID) (*Replica, error) {
	value, found := m.replicas.Load(tp)
	if !found {
		return nil, m.absent(tp)
	}
	r := value.(*Replica)
	if known := r.view.Load().TopicID; !topicID.IsZero() && !known.IsZero() && topicID != known {
		return nil, protocol.Errorf(protocol.InconsistentTopicID, "the topic id %s is not that of %s, %s", topicID, tp, known)
	}
	return r, nil
}

func (m *Manager) absent(tp protocol.TopicPartition) error {
	if err, failed := m.failed.Load(tp); failed {
		return err.(error)
	}
	if m.options.Known != nil && m.options.Known(tp) {
		return protocol.Errorf(protocol.NotLeaderOrFollower, "%s is not on this node", tp)
	}
	return protocol.Errorf(protocol.UnknownTopicOrPartition, "%s does not exist on this node", tp)
}

// sorted lists the replicas by topic and partition.
func (m *Manager) sorted() []*Replica {
	var all []*Replica
	m.replicas.Range(func(_, value any) bool {
		all = append(all, value.(*Replica))
		return true
	})
	slices.SortFunc(all, func(a, b *Replica) int {
		return a.tp.Compare(b.tp)
	})
	return all
}

// lock keeps other changes of a partition's life out.
func (m *Manager) lock(tp protocol.TopicPartition) (unlock func()) {
	hash := fnv.New32a()
	hash.Write([]byte(tp.Topic))
	stripe := &m.stripes[(hash.Sum32()+uint32(tp.Partition))%uint32(len(m.stripes))]
	m.lifecycle.RLock()
	stripe.Lock()
	return func() {
		stripe.Unlock()
		m.lifecycle.RUnlock()
	}
}

// Apply makes this node leader or follower of a partition, as the metadata says,
// creating the log in directory dir (a reserved id: where the fewest partitions
// are) if there is none. isNew says that the partition was never here, so that a
// missing log is not one that an offline directory holds. A state older than the
// one known changes nothing. Different partitions may be applied at the same
// time: a new epoch costs an fsync. Errors: KAFKA_STORAGE_ERROR,
// INCONSISTENT_TOPIC_ID, or one of the environment; the replica then is offline
// or absent. After ENOSPC or EDQUOT the same Apply may be tried again.
func (m *Manager) Apply(now time.Time, tp protocol.TopicPartition, state partition.State, dir protocol.DirectoryID, isNew bool) error {
	defer m.lock(tp)()
	if m.closed {
		return errors.New("the replica manager is closed")
	}
	r, err := m.replica(now, tp, state.TopicID, dir, isNew)
	if err != nil {
		return err
	}
	m.moveApplied(now, r, dir)
	r.appendMu.Lock()
	s, err := r.apply(now, state)
	r.appendMu.Unlock()
	r.settle(s)
	switch {
	case vfs.NoSpace(err):
		err = fmt.Errorf("%s cannot take its role yet: %w", tp, err) // Apply again when there is room
	case err != nil:
		m.failDirectory(r, err)
		err = protocol.Errorf(protocol.KafkaStorageError, "%s cannot take its role: %v", tp, err)
	}
	r.pump(now)
	return err
}

// replica gives the replica, with its log opened or created. A partition whose
// log is out of reach is remembered as failed.
func (m *Manager) replica(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, dir protocol.DirectoryID, isNew bool) (*Replica, error) {
	if value, found := m.replicas.Load(tp); found {
		r := value.(*Replica)
		if known := r.log().TopicID(); known != topicID && !known.IsZero() && !topicID.IsZero() {
			return nil, protocol.Errorf(protocol.InconsistentTopicID, "%s is here with topic id %s, not %s", tp, known, topicID)
		}
		return r, nil
	}
	l, err := m.openLog(now, tp, topicID, dir, isNew)
	if err != nil {
		m.failed.Store(tp, clientError(err))
		return nil, err
	}
	m.failed.Delete(tp)
	r := newReplica(m, tp, l, m.options.Store.HighWatermark(tp))
	m.replicas.Store(tp, r)
	return r, nil
}

func (m *Manager) openLog(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, dir protocol.DirectoryID, isNew bool) (*log.Log, error) {
	l := m.options.Store.Log(tp)
	if l == nil && vfs.NoSpace(m.options.Store.PartitionError(tp)) {
		if err := m.options.Store.Reopen(now, tp); vfs.NoSpace(err) {
			return nil, err
		}
		l = m.options.Store.Log(tp)
	}
	if l == nil {
		if err := m.outOfReach(tp, isNew); err != nil {
			return nil, protocol.Errorf(protocol.KafkaStorageError, "the log of %s is offline: %v", tp, err)
		}
		switch dir {
		case protocol.DirectoryUnassigned, protocol.DirectoryLost, protocol.DirectoryMigrating:
			dir = protocol.ZeroUUID // the store chooses
		}
		var err error
		if l, err = m.options.Store.Create(tp, topicID, dir); err != nil {
			return nil, fmt.Errorf("the log of %s cannot be created: %w", tp, err)
		}
	}
	switch known := l.TopicID(); {
	case topicID.IsZero() || known == topicID:
	case known.IsZero():
		if err := l.SetTopicID(topicID); err != nil {
			return nil, fmt.Errorf("the topic id of %s cannot be stored: %w", tp, err)
		}
	default:
		return nil, protocol.Errorf(protocol.InconsistentTopicID, "the log of %s has topic id %s, not %s", tp, known, topicID)
	}
	return l, nil
}

// outOfReach tells why a partition without log must not be created anew: it is
// known to be offline, or it may lie in a directory that could not be read.
func (m *Manager) outOfReach(tp protocol.TopicPartition, isNew bool) error {
	if err := m.options.Store.PartitionError(tp); err != nil || isNew {
		return err
	}
	for _, d := range m.options.Store.Directories() {
		if d.Offline != nil {
			return fmt.Errorf("it may be in %s: %w", d.Path, d.Offline)
		}
	}
	return nil
}

// Remove forgets a partition: its waiters are answered, and its log is deleted
// (the directory renamed now, removed after file.delete.delay.ms) or left alone.
func (m *Manager) Remove(now time.Time, tp protocol.TopicPartition, deleteLog bool) error {
	defer m.lock(tp)()
	m.failed.Delete(tp)
	m.moves.End(tp)
	if value, found := m.replicas.LoadAndDelete(tp); found {
		r := value.(*Replica)
		r.appendMu.Lock()
		s := r.leave(m.absent(tp))
		r.appendMu.Unlock()
		m.traffic.Leave(tp.Topic) // now that what was on its way into the log is counted
		r.settle(s)
		defer r.pump(now)
	}
	if !deleteLog {
		return nil
	}
	if err := m.options.Store.Delete(now, tp); err != nil {
		return fmt.Errorf("the log of %s cannot be deleted: %w", tp, err)
	}
	return nil
}

// SetOptions gives the partitions of a topic new log options.
func (m *Manager) SetOptions(now time.Time, topic string, opts log.Options) {
	m.lifecycle.RLock()
	defer m.lifecycle.RUnlock()
	for _, r := range m.sorted() {
		if r.tp.Topic != topic {
			continue
		}
		r.appendMu.Lock()
		s := r.setOptions(now, opts)
		r.appendMu.Unlock()
		r.settle(s)
		m.moveOptions(r.tp, opts)
		m.options.Store.Touch(r.tp)
		r.pump(now)
	}
}

// Exclusive runs a task that changes a partition's log while nobody else does:
// the store's maintenance. New hands it to the store.
func (m *Manager) Exclusive(tp protocol.TopicPartition, task func()) {
	value, found := m.replicas.Load(tp)
	if !found {
		task()
		return
	}
	r := value.(*Replica)
	r.appendMu.Lock()
	task()
	s := r.logStartMoved()
	r.appendMu.Unlock()
	r.settle(s)
	r.pump(time.Time{})
}
