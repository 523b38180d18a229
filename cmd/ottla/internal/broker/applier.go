package broker

import (
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/store"
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

	applied atomic.Int64 // offset of the last Image applied
}

// NewApplier makes an Applier that has applied nothing. sideBySide runs tasks in
// any order and returns when all are done.
func NewApplier(nodeID protocol.NodeID, options *TopicOptions, replicas *replica.Manager, logs *store.Store, directories *DirectoryReports, sideBySide func(tasks []func()), logger *slog.Logger) *Applier {
	a := &Applier{nodeID: nodeID, options: options, replicas: replicas, store: logs, directories: directories, sideBySide: sideBySide, logger: logger}
	a.applied.Store(-1)
	return a
}

// Offset is that of the last Image applied, -1 before the first.
func (a *Applier) Offset() protocol.Offset { return protocol.Offset(a.applied.Load()) }

// First applies the Image that a start begins with: logs that the cluster does
// not know any more are set aside, and every replica gets its role.
func (a *Applier) First(now time.Time, image *metadata.Image) {
	for _, stray := range a.strays(image) {
		a.logger.Warn("a partition's log belongs to no replica of this node and was set aside", "partition", stray.String())
		if err := a.store.SetStray(now, stray); err != nil {
			a.logger.Error("the log could not be set aside", "partition", stray.String(), "error", err)
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
	changes := metadata.Diff(before, after)
	for _, topic := range changes.DeletedTopics {
		for n, old := range topic.Partitions() {
			if old.HasReplica(a.nodeID) {
				a.remove(now, protocol.TopicPartition{Topic: topic.Name, Partition: n})
			}
		}
	}
	a.settings(now, changes, after)
	a.roles(now, changes.Topics)
	a.applied.Store(int64(after.Provenance().Offset))
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
	directory := is.Directory(a.nodeID)
	if directory == protocol.DirectoryMigrating || directory == protocol.DirectoryUnassigned || directory == protocol.DirectoryLost {
		directory = protocol.DirectoryID{}
	}
	state := partition.State{
		TopicID: change.New.ID, Leader: is.Leader, LeaderEpoch: is.LeaderEpoch, PartitionEpoch: is.PartitionEpoch,
		ISR: is.ISR, Replicas: is.Replicas,
	}
	if err := a.replicas.Apply(now, tp, state, directory, isNew); err != nil {
		a.logger.Error("a replica could not take its role", "partition", tp.String(), "error", err)
		a.coordinate(now, tp, nil)
		return
	}
	a.coordinate(now, tp, is)
	if actual, ok := a.store.DirectoryOf(tp); ok && actual != is.Directory(a.nodeID) {
		a.directories.Report(change.New.ID, n, actual)
	}
}

func (a *Applier) remove(now time.Time, tp protocol.TopicPartition) {
	if err := a.replicas.Remove(now, tp, true); err != nil && !errors.Is(err, protocol.UnknownTopicOrPartition.Err()) {
		a.logger.Error("a replica could not be removed", "partition", tp.String(), "error", err)
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
