package offsets

import (
	"maps"
	"slices"

	"ottla/protocol"
)

// Offset is what a group has committed for one partition.
type Offset struct {
	Offset   protocol.Offset
	Epoch    protocol.LeaderEpoch
	Metadata string
	TopicID  protocol.TopicID // zero: the commit did not know it
	CommitMs int64
	ExpireMs int64 // of commits that asked for a retention of their own; -1: none
	// Record is where the commit stands in the log. A transaction that commits
	// later than another write of the same offset is not later than it.
	Record protocol.Offset
}

// OfAnother tells that an offset was committed for an earlier topic of the name.
func (o *Offset) OfAnother(id protocol.TopicID) bool {
	return !o.TopicID.IsZero() && !id.IsZero() && o.TopicID != id
}

// byGroup has something by group, topic and partition. What is empty is not in it.
type byGroup[V any] map[string]map[string]map[int32]V

func (m byGroup[V]) get(group, topic string, partition int32) (V, bool) {
	v, found := m[group][topic][partition]
	return v, found
}

func (m byGroup[V]) put(group, topic string, partition int32, v V) {
	if m[group] == nil {
		m[group] = map[string]map[int32]V{}
	}
	if m[group][topic] == nil {
		m[group][topic] = map[int32]V{}
	}
	m[group][topic][partition] = v
}

func (m byGroup[V]) remove(group, topic string, partition int32) {
	delete(m[group][topic], partition)
	if len(m[group][topic]) == 0 {
		delete(m[group], topic)
	}
	if len(m[group]) == 0 {
		delete(m, group)
	}
}

func (m byGroup[V]) each(group string, visit func(topic string, partition int32, v V)) {
	for _, topic := range slices.Sorted(maps.Keys(m[group])) {
		m.eachOf(group, topic, func(partition int32, v V) { visit(topic, partition, v) })
	}
}

func (m byGroup[V]) eachOf(group, topic string, visit func(partition int32, v V)) {
	for _, partition := range slices.Sorted(maps.Keys(m[group][topic])) {
		visit(partition, m[group][topic][partition])
	}
}

// Store is the offsets of all groups of a partition of __consumer_offsets.
type Store struct {
	committed byGroup[Offset]
	pending   map[protocol.ProducerID]byGroup[Offset]
	open      byGroup[int] // how many producers have an offset pending
}

// NewStore makes an empty Store.
func NewStore() *Store {
	return &Store{committed: byGroup[Offset]{}, pending: map[protocol.ProducerID]byGroup[Offset]{}, open: byGroup[int]{}}
}

// Get gives what a group has committed for a partition.
func (s *Store) Get(group, topic string, partition int32) (Offset, bool) {
	return s.committed.get(group, topic, partition)
}

// Put takes over a commit outside of transactions.
func (s *Store) Put(group, topic string, partition int32, o Offset) {
	s.committed.put(group, topic, partition, o)
}

// Remove takes over the deletion of a commit. What is pending goes, too, though its
// transaction may end later: the deletion stands behind it in the log.
func (s *Store) Remove(group, topic string, partition int32) {
	s.committed.remove(group, topic, partition)
	if _, open := s.open.get(group, topic, partition); !open {
		return
	}
	s.open.remove(group, topic, partition)
	for id, of := range s.pending {
		of.remove(group, topic, partition)
		if len(of) == 0 {
			delete(s.pending, id)
		}
	}
}

// Pend takes over a commit in a producer's transaction.
func (s *Store) Pend(id protocol.ProducerID, group, topic string, partition int32, o Offset) {
	if s.pending[id] == nil {
		s.pending[id] = byGroup[Offset]{}
	}
	if _, again := s.pending[id].get(group, topic, partition); !again {
		n, _ := s.open.get(group, topic, partition)
		s.open.put(group, topic, partition, n+1)
	}
	s.pending[id].put(group, topic, partition, o)
}

// End takes over the marker of a producer's transaction. An offset that was
// committed behind it in the log stays.
func (s *Store) End(id protocol.ProducerID, committed bool) {
	for group, topics := range s.pending[id] {
		for topic, partitions := range topics {
			for partition, o := range partitions {
				s.close(group, topic, partition)
				if is, found := s.committed.get(group, topic, partition); committed && (!found || is.Record < o.Record) {
					s.committed.put(group, topic, partition, o)
				}
			}
		}
	}
	delete(s.pending, id)
}

// close takes one producer off those that have an offset pending.
func (s *Store) close(group, topic string, partition int32) {
	if n, _ := s.open.get(group, topic, partition); n > 1 {
		s.open.put(group, topic, partition, n-1)
		return
	}
	s.open.remove(group, topic, partition)
}

// Open tells whether an offset is pending for a partition, and OpenOf whether any
// is for a group.
func (s *Store) Open(group, topic string, partition int32) bool {
	_, open := s.open.get(group, topic, partition)
	return open
}

// OpenOf tells whether a group has anything pending; see Open.
func (s *Store) OpenOf(group string) bool { return len(s.open[group]) > 0 }

// Groups lists those that have something committed or pending, by name.
func (s *Store) Groups() []string {
	groups := map[string]bool{}
	for group := range s.committed {
		groups[group] = true
	}
	for group := range s.open {
		groups[group] = true
	}
	return slices.Sorted(maps.Keys(groups))
}

// Topics lists the topics of which a group has committed offsets, by name.
func (s *Store) Topics(group string) []string {
	return slices.Sorted(maps.Keys(s.committed[group]))
}

// Each visits what a group has committed, by topic and partition.
func (s *Store) Each(group string, visit func(topic string, partition int32, o Offset)) {
	s.committed.each(group, visit)
}

// EachOf visits what a group has committed for one topic, by partition.
func (s *Store) EachOf(group, topic string, visit func(partition int32, o Offset)) {
	s.committed.eachOf(group, topic, visit)
}

// EachAny visits the partitions for which a group has an offset committed or
// pending, each once.
func (s *Store) EachAny(group string, visit func(topic string, partition int32)) {
	s.committed.each(group, func(topic string, partition int32, _ Offset) { visit(topic, partition) })
	s.open.each(group, func(topic string, partition int32, _ int) {
		if _, found := s.committed.get(group, topic, partition); !found {
			visit(topic, partition)
		}
	})
}

// EachOfTopic visits the partitions of a topic that is gone for which a group has
// an offset committed or pending, each once. What was committed for a later topic
// of the name is not visited.
func (s *Store) EachOfTopic(group, topic string, id protocol.TopicID, visit func(partition int32)) {
	partitions := map[int32]bool{}
	gather := func(partition int32, o Offset) {
		if o.TopicID.IsZero() || o.TopicID == id {
			partitions[partition] = true
		}
	}
	s.committed.eachOf(group, topic, gather)
	for _, of := range s.pending {
		of.eachOf(group, topic, gather)
	}
	for _, partition := range slices.Sorted(maps.Keys(partitions)) {
		visit(partition)
	}
}

// Count is how many offsets are committed.
func (s *Store) Count() (count int) {
	for _, topics := range s.committed {
		for _, partitions := range topics {
			count += len(partitions)
		}
	}
	return count
}
