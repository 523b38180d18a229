package txn

import (
	"math"
	"slices"

	"ottla/protocol"
)

// noEpoch is the epoch of a producer id that nobody has had.
const noEpoch protocol.ProducerEpoch = -1

// lastEpoch is the highest epoch that a producer is given. One more is left to
// the coordinator, to fence it.
const lastEpoch protocol.ProducerEpoch = math.MaxInt16 - 1

// State is where a transactional id stands; the numbers are those of the records.
type State int8

// The states that a record can have.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
)

// Names that Apache Kafka has for states in the order of their numbers. The last
// two are those of moments that no record shows; filters may name them.
var stateNames = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// String gives Apache Kafka's name.
func (s State) String() string { return stateNames[s] }

// IsStateName tells whether Apache Kafka has a state of that name.
func IsStateName(name string) bool { return slices.Contains(stateNames, name) }

// preparing tells that the outcome is decided and markers are being written.
func (s State) preparing() bool { return s == PrepareCommit || s == PrepareAbort }

// completed is the state that follows when all markers are written.
func (s State) completed() State {
	if s == PrepareCommit {
		return CompleteCommit
	}
	return CompleteAbort
}

// transaction is one transactional id.
type transaction struct {
	id      string
	durable metadata // as its last record says

	// Volatile.
	previousEpoch protocol.ProducerEpoch // before the last bump, for a retry; -1: unknown
	unmarked      map[protocol.TopicPartition]bool
}

// before is the epoch before the last bump, as far as that is known: each end of a
// transaction of clients whose epoch that bumps tells of it.
func (t *transaction) before() protocol.ProducerEpoch {
	m := &t.durable
	switch {
	case t.previousEpoch != noEpoch:
		return t.previousEpoch
	case m.clientVersion < Version2 || m.state != CompleteCommit && m.state != CompleteAbort:
		return noEpoch
	case m.producer.Epoch > 0:
		return m.producer.Epoch - 1
	case m.previousID != m.producer.ID:
		return lastEpoch
	}
	return noEpoch
}

// metadata is what a record has of a transactional id.
type metadata struct {
	producer      Producer
	previousID    protocol.ProducerID // the id before the last change of any kind
	nextID        protocol.ProducerID // what follows when a Prepare… is completed; -1: the same
	timeoutMs     int32
	state         State
	partitions    []protocol.TopicPartition // in order; not changed, replaced
	startMs       int64                     // when the transaction was begun; -1: never
	updateMs      int64
	clientVersion int16 // how the client works that made the last change
}

// next is the metadata for the next change of state: what every change does.
func (m *metadata) next(state State, nowMs int64) metadata {
	after := *m
	after.state, after.previousID, after.updateMs = state, m.producer.ID, nowMs
	return after
}

// exhausted tells that a producer can be given no higher epoch.
func exhausted(epoch protocol.ProducerEpoch) bool { return epoch >= lastEpoch }

// has tells whether a partition is part of the transaction.
func (m *metadata) has(tp protocol.TopicPartition) bool {
	_, found := slices.BinarySearchFunc(m.partitions, tp, protocol.TopicPartition.Compare)
	return found
}

// with gives the partitions with others added, in order and each once.
func (m *metadata) with(more []protocol.TopicPartition) []protocol.TopicPartition {
	all := slices.Concat(m.partitions, more)
	slices.SortFunc(all, protocol.TopicPartition.Compare)
	return slices.Compact(all)
}
