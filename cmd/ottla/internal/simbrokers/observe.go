package simbrokers

import (
	"fmt"
	"iter"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/partition"
)

// truth is what the committed log of the metadata adds up to.
type truth struct {
	end    protocol.Offset
	loader *metadata.Loader
	images map[protocol.Offset]*metadata.Image // by the last offset in them
	roles  map[roleKey]*metadata.Partition     // every state of a partition that was ever committed
}

type roleKey struct {
	topic protocol.TopicID
	n     int32
	epoch int32 // of the partition
}

func newTruth() truth {
	return truth{loader: metadata.NewLoader(), images: map[protocol.Offset]*metadata.Image{}, roles: map[roleKey]*metadata.Partition{}}
}

// commit takes the next batch of the log; what it has already must be the same for ever.
func (t *truth) commit(s *Simulation, b record.Batch) {
	if b.BaseOffset() < t.end {
		return
	}
	batch := metadata.Batch{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Epoch: b.PartitionLeaderEpoch(), TimestampMs: b.MaxTimestamp()}
	if !b.IsControl() {
		for r, err := range record.Records(b, s.pool, 1<<20) {
			must(err)
			batch.Values = append(batch.Values, slices.Clone(r.Value))
		}
	}
	before := t.loader.Image()
	_, image, err := t.loader.Apply(batch)
	must(err)
	t.end = b.NextOffset()
	if image == nil {
		return
	}
	t.images[batch.LastOffset] = image
	for tp, state := range t.partitions() {
		topic := image.Topic(tp.Topic).ID
		t.roles[roleKey{topic, tp.Partition, state.PartitionEpoch}] = state
		if before.Partition(tp) != state {
			s.Note(fmt.Sprintf("    committed: %s of %s: %+v", tp, topic, *state))
		}
		if former := before.Partition(tp); former != nil && former.IsReassigning() && !state.IsReassigning() && before.Topic(tp.Topic).ID == topic {
			s.counts.Reassignments++
			s.counts.Removed += max(len(former.Replicas)-len(state.Replicas), 0)
		}
	}
	if former := before.Topic(passingName); former != nil && image.TopicByID(former.ID) == nil {
		s.counts.Deletions++
		s.gone = append(s.gone, former.ID)
	}
}

// topics are all that stay.
var topics = []string{topicName, protocol.ConsumerOffsetsTopic, protocol.TransactionStateTopic}

// partitions gives the states of all partitions as they are committed.
func (t *truth) partitions() iter.Seq2[protocol.TopicPartition, *metadata.Partition] {
	return partitionsOf(t.loader.Image())
}

func partitionsOf(image *metadata.Image) iter.Seq2[protocol.TopicPartition, *metadata.Partition] {
	return func(yield func(protocol.TopicPartition, *metadata.Partition) bool) {
		for _, name := range [...]string{topicName, protocol.ConsumerOffsetsTopic, protocol.TransactionStateTopic, passingName} {
			for i := range int32(10) {
				tp := protocol.TopicPartition{Topic: name, Partition: i}
				state := image.Partition(tp)
				if state == nil {
					break
				}
				if !yield(tp, state) {
					return
				}
			}
		}
	}
}

// registered tells whether the controllers know of the present process of a machine.
func (t *truth) registered(m *machine) bool {
	known := t.loader.Image().Broker(m.id)
	return known != nil && !known.Fenced && m.epoch >= 0 && known.Epoch == m.epoch
}

// seen is what was looked at already of a process.
type seen struct {
	image *metadata.Image
	roles map[protocol.TopicPartition]role
}

type role struct {
	view          *partition.View
	highWatermark protocol.Offset
}

func newSeen() *seen { return &seen{roles: map[protocol.TopicPartition]role{}} }

// observe holds what must be true against what a node publishes.
func (m *machine) observe() {
	m.observeImage()
	if !m.opened || m.s.Failure != nil {
		return
	}
	whole := m.suspect
	for tp, state := range m.s.controllers.truth.partitions() {
		m.observeRole(tp)
		whole = whole && (slices.Contains(state.ISR, m.id) || !state.HasReplica(m.id))
	}
	if m.s.plan.renewal > 0 {
		for i := range int32(passingPartitions) { // also while it is not there
			m.observeRole(protocol.TopicPartition{Topic: passingName, Partition: i})
		}
	}
	if whole && m.s.controllers.truth.registered(m) {
		m.suspect = false
	}
}

// observeImage: an Image is what the committed log adds up to at its offset.
func (m *machine) observeImage() {
	image := m.node.Image()
	if image == m.seen.image {
		return
	}
	m.s.counts.Images++
	offset := image.Provenance().Offset
	t := &m.s.controllers.truth
	before := m.seen.image
	m.seen.image = image
	switch known := t.images[offset]; {
	case offset >= t.end:
		m.s.Violate("%d publishes an Image of offset %d, but the metadata is committed up to %d", m.id, offset, t.end)
	case known == nil:
		m.s.Violate("%d publishes an Image of offset %d, where no batch ends", m.id, offset)
	case known.Provenance().Epoch != image.Provenance().Epoch || !known.Equal(image):
		m.s.Violate("%d publishes another Image of offset %d than the controllers have committed", m.id, offset)
	case before != nil && before.Provenance().Offset > offset:
		m.s.Violate("%d publishes an Image of offset %d after one of %d", m.id, offset, before.Provenance().Offset)
	}
}

// observeRole: no role is taken that was not committed, none is kept that the node's Image does not give, and high watermarks do not fall.
func (m *machine) observeRole(tp protocol.TopicPartition) {
	d, err := m.node.Replicas().Describe(tp)
	if err != nil {
		delete(m.seen.roles, tp)
		return
	}
	topic, is := m.node.Image().Topic(tp.Topic), m.node.Image().Partition(tp)
	if is == nil || !is.HasReplica(m.id) || topic.ID != d.View.TopicID {
		m.s.Violate("%d has a replica of %s of the topic %s, but by its Image it is of %v and has %+v", m.id, tp, d.View.TopicID, topic, is)
	}
	last, known := m.seen.roles[tp]
	known = known && last.view.TopicID == d.View.TopicID
	if known && last.view == d.View && last.highWatermark == d.HighWatermark {
		return
	}
	m.seen.roles[tp] = role{d.View, d.HighWatermark}
	if known && d.HighWatermark < last.highWatermark {
		m.s.Violate("the high watermark of %s on %d falls from %d to %d", tp, m.id, last.highWatermark, d.HighWatermark)
	}
	if d.HighWatermark > d.LogEndOffset {
		m.s.Violate("the high watermark %d of %s on %d is beyond its end %d", d.HighWatermark, tp, m.id, d.LogEndOffset)
	}
	if known && last.view == d.View {
		return
	}
	m.s.counts.Roles++
	view := d.View
	state := m.s.controllers.truth.roles[roleKey{view.TopicID, tp.Partition, view.PartitionEpoch}]
	withheld := state != nil && state.Leader == m.id && view.Leader == protocol.NoNode && !m.known()
	if state == nil || state.Leader != view.Leader && !withheld || state.LeaderEpoch != view.LeaderEpoch || !sameMembers(state.ISR, view.ISR) {
		m.s.Violate("%d has for %s leader %d, epoch %d.%d, in sync %v; committed is %+v",
			m.id, tp, view.Leader, view.LeaderEpoch, view.PartitionEpoch, view.ISR, state)
	}
	if view.Role == partition.Leader && view.Leader != m.id {
		m.s.Violate("%d leads %s, but the leader is %d", m.id, tp, view.Leader)
	}
	if view.Role == partition.Leader && !m.known() {
		m.s.Violate("%d leads %s before its Image knows of this process", m.id, tp)
	}
}

// known tells whether the machine's own Image knows of its present process, and not only of one before.
func (m *machine) known() bool {
	self := m.node.Image().Broker(m.id)
	return self != nil && m.registering != (protocol.IncarnationID{}) && self.IncarnationID == m.registering
}

func sameMembers(a, b []protocol.NodeID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// registers: a registration tells the epoch that a clean stop has left, and nothing after any other end (KIP-966).
func (s *Simulation) registers(req *kmsg.BrokerRegistrationRequest) {
	m := s.machine(int(req.BrokerID))
	if m.registering != req.IncarnationID {
		return // late, of an earlier process
	}
	if req.PreviousBrokerEpoch == -1 {
		s.counts.Unclean++
	}
	if protocol.BrokerEpoch(req.PreviousBrokerEpoch) != m.previous && m.up {
		s.Violate("%d registers with the previous epoch %d, but the end before left %d", m.id, req.PreviousBrokerEpoch, m.previous)
	}
}
