package broker

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/fetcher"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// Applier makes the replicas of this node follow the Images.
type Applier struct {
	nodeID      protocol.NodeID
	options     *TopicOptions
	replicas    *replica.Manager
	store       *store.Store
	directories *DirectoryReports
	sideBySide  func(tasks []func())
	logger      *slog.Logger

	coordinators []*Coordinators

	// Wake, if not nil, is called when NextDeadline has come nearer.
	Wake func()
	// Fetchers, if not nil, feed the replicas that follow.
	Fetchers *fetcher.Fetchers
	// Throttles, if not nil, follow the Images too.
	Throttles *Throttles
	// Incarnation, if not zero, is this process: before an Image says that it has registered, nothing leads here. What the cluster knew
	// of the process before is no longer true. Its power may have been cut, and who went on in the leader epoch of then with
	// less of a log would give an offset in one epoch to two records, and have its followers cut what was acknowledged. The
	// controller gives another leader epoch with the registration.
	Incarnation protocol.IncarnationID

	applied atomic.Pointer[metadata.Image] // the last Image applied; nil before the first

	applying  sync.Mutex // one Apply or Tick at a time
	closed    bool       // replicas and coordinators end, and what the cluster says counts for the next start
	image     *metadata.Image
	moveLimit int64 // bytes a second that moves between directories may copy; -1: no limit
	roomless  roomless
	leads     leads
	withheld  waiting // what leads here by an Image that does not know of this process yet
}

// leads are partitions whose coordinators are to begin, or go on, as soon as clients are shown the Image that says so. Whoever is
// answered by a coordinator finds its topic with the rest of the node, too.
type leads struct {
	mu  sync.Mutex // roles are given side by side
	are map[protocol.TopicPartition]*metadata.Partition
}

func (l *leads) add(tp protocol.TopicPartition, is *metadata.Partition) {
	if !protocol.IsInternalTopic(tp.Topic) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.are == nil {
		l.are = map[protocol.TopicPartition]*metadata.Partition{}
	}
	l.are[tp] = is
}

// roomInterval is how often replicas that found no room on the disk are tried
// again.
const roomInterval = 5 * time.Second

// roomless are replicas that have no role because the disk was full. The image
// will not change for their sake, so Tick tries again.
type roomless struct {
	waiting
	due time.Time // zero: nothing to do
}

func (r *roomless) set(due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = due
}

// waiting are replicas that are to have their role later.
type waiting struct {
	mu    sync.Mutex                       // roles are given side by side
	isNew map[protocol.TopicPartition]bool // whether the replica was never here
}

// add takes one, which stays new if it was.
func (w *waiting) add(tp protocol.TopicPartition, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isNew == nil {
		w.isNew = map[protocol.TopicPartition]bool{}
	}
	w.isNew[tp] = isNew || w.isNew[tp]
}

// drop forgets one that has its role.
func (w *waiting) drop(tp protocol.TopicPartition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.isNew, tp)
}

// take gives all and forgets them.
func (w *waiting) take() (isNew map[protocol.TopicPartition]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isNew, w.isNew = w.isNew, nil
	return isNew
}

// NewApplier makes an Applier that has applied nothing. sideBySide runs tasks in
// any order and returns when all are done.
func NewApplier(nodeID protocol.NodeID, options *TopicOptions, replicas *replica.Manager, logs *store.Store, directories *DirectoryReports, sideBySide func(tasks []func()), logger *slog.Logger) *Applier {
	a := &Applier{nodeID: nodeID, options: options, replicas: replicas, store: logs, directories: directories, sideBySide: sideBySide, logger: logger}
	a.moveLimit = -1
	return a
}

// Offset is that of the last Image applied, -1 before the first.
func (a *Applier) Offset() protocol.Offset {
	if image := a.applied.Load(); image != nil {
		return image.Provenance().Offset
	}
	return -1
}

// Image is the last Image applied, nil before the first. Whoever finds a partition
// of this node in it finds its replica in place too: it is what clients are shown.
func (a *Applier) Image() *metadata.Image { return a.applied.Load() }

// First applies the Image that a start begins with: logs that the cluster does
// not know any more are set aside, and every replica gets its role.
func (a *Applier) First(now time.Time, image *metadata.Image) {
	for _, stray := range a.strays(image) {
		a.logger.Warn("a partition's log belongs to no replica of this node and was set aside", "partition", stray.String())
		if err := a.store.SetStray(now, stray); err != nil {
			a.logger.Error("the log could not be set aside", "partition", stray.String(), "error", err)
		}
	}
	for _, future := range a.store.Futures() {
		if known := image.Partition(future.Partition); known != nil && known.HasReplica(a.nodeID) {
			continue // the move goes on
		}
		if err := a.store.RemoveFuture(now, future.Partition); err != nil {
			a.logger.Error("a future log could not be removed", "partition", future.Partition.String(), "error", err)
		}
	}
	a.Apply(now, metadata.Empty(), image)
}

// strays finds logs whose partition is not this node's, or belongs to another
// topic of the same name.
func (a *Applier) strays(image *metadata.Image) []protocol.TopicPartition {
	var strays []protocol.TopicPartition
	for _, l := range a.store.Logs() {
		tp := l.TopicPartition()
		topic, known := image.Topic(tp.Topic), image.Partition(tp)
		if known == nil || !known.HasReplica(a.nodeID) || !l.TopicID().IsZero() && l.TopicID() != topic.ID {
			strays = append(strays, tp)
		}
	}
	return strays
}

// Apply makes the difference between two Images true on this node: what is
// gone goes first, so that a topic made anew finds its name free.
func (a *Applier) Apply(now time.Time, before, after *metadata.Image) {
	a.applying.Lock()
	defer a.applying.Unlock()
	if a.closed {
		return
	}
	a.image = after
	changes := metadata.Diff(before, after)
	if a.Offset() >= 0 { // what the first Image holds is no news
		a.logTopics(changes)
	}
	for _, topic := range changes.DeletedTopics {
		for n, old := range topic.Partitions() {
			if old.HasReplica(a.nodeID) {
				a.remove(now, protocol.TopicPartition{Topic: topic.Name, Partition: n})
			}
		}
	}
	a.settings(now, changes, after)
	a.roles(now, changes.Topics)
	if a.registered() {
		a.again(now, a.withheld.take())
	}
	for _, c := range a.coordinators {
		c.topicsDeleted(now, changes.DeletedTopics)
	}
	a.applied.Store(after)
	a.lead(now)
}

// roles gives the replicas of changed partitions their roles, side by side: each
// new leader epoch waits for the disk.
func (a *Applier) roles(now time.Time, topics []metadata.TopicChange) {
	var tasks []func()
	for _, change := range topics {
		for _, n := range change.Partitions {
			tasks = append(tasks, func() { a.partition(now, change, n) })
		}
	}
	a.sideBySide(tasks)
}

func (a *Applier) partition(now time.Time, change metadata.TopicChange, n int32) {
	tp := protocol.TopicPartition{Topic: change.New.Name, Partition: n}
	var old *metadata.Partition
	if change.Old != nil {
		old = change.Old.Partition(n)
	}
	had := old != nil && old.HasReplica(a.nodeID)
	is := change.New.Partition(n)
	if is == nil || !is.HasReplica(a.nodeID) {
		if had {
			a.remove(now, tp)
		}
		return
	}
	// Before the first Image there is no telling what is new; a log that is
	// missing then may lie in a directory that is offline.
	isNew := !had && a.Offset() >= 0
	if err := a.role(now, change.New, n, isNew); err != nil {
		a.logger.Error("a replica could not take its role", "partition", tp.String(), "error", err)
		a.later(now, tp, isNew, err)
	}
}

// role gives one replica the role that its topic says.
func (a *Applier) role(now time.Time, topic *metadata.Topic, n int32, isNew bool) error {
	tp, is := protocol.TopicPartition{Topic: topic.Name, Partition: n}, topic.Partition(n)
	if is.Leader == a.nodeID && !a.registered() {
		a.withheld.add(tp, isNew)
		led := *is
		led.Leader = protocol.NoNode
		is = &led
	} else {
		a.withheld.drop(tp)
	}
	directory := is.Directory(a.nodeID)
	if directory == protocol.DirectoryMigrating || directory == protocol.DirectoryUnassigned || directory == protocol.DirectoryLost {
		directory = protocol.DirectoryID{}
	}
	state := partition.State{
		TopicID: topic.ID, Leader: is.Leader, LeaderEpoch: is.LeaderEpoch, PartitionEpoch: is.PartitionEpoch,
		ISR: is.ISR, Replicas: is.Replicas,
	}
	if err := a.replicas.Apply(now, tp, state, directory, isNew); err != nil {
		a.coordinate(now, tp, nil)
		return err
	}
	a.feed(now, tp, topic.ID, is)
	a.leads.add(tp, is)
	target, moving := a.replicas.MovingTo(tp) // before the actual directory is asked, so that the end of a move is not missed
	actual, ok := a.store.DirectoryOf(tp)
	switch assigned := is.Directory(a.nodeID); {
	case !ok || actual == assigned:
	case moving && target == assigned: // as was asked for: it will be there
	default:
		a.directories.Report(topic.ID, n, actual)
	}
	return nil
}

// registered tells whether the Image knows of this process, and not only of one before it.
func (a *Applier) registered() bool {
	if a.Incarnation == (protocol.IncarnationID{}) {
		return true
	}
	self := a.image.Broker(a.nodeID)
	return self != nil && self.IncarnationID == a.Incarnation
}

// feed has a replica fetched that follows, once it has taken that role.
func (a *Applier) feed(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, is *metadata.Partition) {
	switch {
	case a.Fetchers == nil:
	case is.Leader == a.nodeID || is.Leader == protocol.NoNode:
		a.Fetchers.Unassign(tp)
	default:
		a.Fetchers.Assign(now, tp, topicID, is.Leader, is.LeaderEpoch)
	}
}

// later remembers a replica that can be tried again when there is room.
func (a *Applier) later(now time.Time, tp protocol.TopicPartition, isNew bool, err error) {
	if !vfs.NoSpace(err) {
		return
	}
	a.roomless.add(tp, isNew)
	a.roomless.set(now.Add(roomInterval))
	if a.Wake != nil {
		a.Wake()
	}
}

// Tick tries again to give a role to the replicas that found no room.
func (a *Applier) Tick(now time.Time) {
	if due := a.NextDeadline(); due.IsZero() || now.Before(due) {
		return
	}
	a.applying.Lock()
	defer a.applying.Unlock()
	a.roomless.set(time.Time{})
	if a.closed {
		return
	}
	a.again(now, a.roomless.take())
	a.lead(now)
}

// again gives the role of the present Image to replicas that had to wait for it.
func (a *Applier) again(now time.Time, isNew map[protocol.TopicPartition]bool) {
	for _, tp := range slices.SortedFunc(maps.Keys(isNew), protocol.TopicPartition.Compare) {
		is := a.image.Partition(tp)
		if is == nil || !is.HasReplica(a.nodeID) {
			continue // gone meanwhile
		}
		if err := a.role(now, a.image.Topic(tp.Topic), tp.Partition, isNew[tp]); err != nil {
			if !vfs.NoSpace(err) {
				a.logger.Error("a replica could not take its role", "partition", tp.String(), "error", err)
			}
			a.later(now, tp, isNew[tp], err)
			continue
		}
		a.logger.Info("a replica took its role after all", "partition", tp.String())
	}
}

// lead has the coordinators begin whose replicas have taken their roles.
func (a *Applier) lead(now time.Time) {
	a.leads.mu.Lock()
	are := a.leads.are
	a.leads.are = nil
	a.leads.mu.Unlock()
	for _, tp := range slices.SortedFunc(maps.Keys(are), protocol.TopicPartition.Compare) {
		a.coordinate(now, tp, are[tp])
	}
}

// Close ends it before those whom it directs: when it returns, no Image is being applied, and none will be. The cluster goes on for as long as
// this node stops, and gives to others what was here.
func (a *Applier) Close() {
	a.applying.Lock()
	defer a.applying.Unlock()
	a.closed = true
}

// NextDeadline is when Tick has something to do; zero: never.
func (a *Applier) NextDeadline() time.Time {
	a.roomless.mu.Lock()
	defer a.roomless.mu.Unlock()
	return a.roomless.due
}

func (a *Applier) remove(now time.Time, tp protocol.TopicPartition) {
	if err := a.replicas.Remove(now, tp, true); err != nil && !errors.Is(err, protocol.UnknownTopicOrPartition.Err()) {
		a.logger.Error("a replica could not be removed", "partition", tp.String(), "error", err)
	}
	if a.Fetchers != nil {
		a.Fetchers.Unassign(tp)
	}
	a.coordinate(now, tp, nil)
}

// settings hands new log options to the topics whose configuration changed;
// after a change of the node's or the cluster's defaults, to all. It comes before
// new replicas, whose logs are made with the options of the moment.
func (a *Applier) settings(now time.Time, changes metadata.Changes, image *metadata.Image) {
	own := strconv.Itoa(int(a.nodeID))
	all := false
	for _, resource := range changes.Configs {
		all = all || resource.Kind == metadata.BrokerConfig && (resource.Name == "" || resource.Name == own)
	}
	a.options.Follow(image, all)
	for _, c := range a.coordinators {
		c.settings(a.options)
	}
	if a.Throttles != nil {
		a.Throttles.follow(image, a.replicas, a.Fetchers)
	}
	if limit := runtimeLimit(image, own, moveLimitKey); limit != a.moveLimit {
		a.moveLimit = limit
		a.replicas.SetMoveLimit(limit)
	}
	if all {
		for topic := range image.Topics() {
			a.replicas.SetOptions(now, topic.Name, a.options.Of(topic.Name))
		}
		return
	}
	for _, resource := range changes.Configs {
		if resource.Kind == metadata.TopicConfig && image.Topic(resource.Name) != nil {
			a.replicas.SetOptions(now, resource.Name, a.options.Of(resource.Name))
		}
	}
}

// moveLimitKey is a setting that is made at run time only.
const moveLimitKey = "replica.alter.log.dirs.io.max.bytes.per.second"

// logTopics says which topics came and went.
func (a *Applier) logTopics(changes metadata.Changes) {
	for _, topic := range changes.DeletedTopics {
		a.logger.Info("topic deleted", "topic", topic.Name, "topicId", topic.ID.String())
	}
	for _, change := range changes.Topics {
		switch {
		case change.Old == nil:
			a.logger.Info("topic created", "topic", change.New.Name, "topicId", change.New.ID.String(), "partitions", change.New.PartitionCount())
		case change.Old.PartitionCount() != change.New.PartitionCount():
			a.logger.Info("partitions added", "topic", change.New.Name, "partitions", change.New.PartitionCount())
		}
	}
}
