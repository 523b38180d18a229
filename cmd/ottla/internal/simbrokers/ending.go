package simbrokers

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/checkpoint"
	"ottla/storage/log"
	"ottla/storage/logdir"
	producerstate "ottla/storage/producer"
	"ottla/storage/vfs"
)

// patience is how long after the faults all must be well again, in the time of the run.
const patience = 120 * time.Second

// heal ends the faults.
func (s *Simulation) heal() {
	s.ending, s.network.Healthy = true, true
	clear(s.network.Cut)
	for _, m := range s.machines {
		m.pausedUntil, m.doom.In = time.Time{}, 0
		if !m.up {
			m.boot()
		}
	}
	s.AllWell("are all well", 200*time.Millisecond, 200*time.Millisecond, patience, s.unwell, s.verify)
}

// unwell tells what is not yet as it should be.
func (s *Simulation) unwell() string {
	t := &s.controllers.truth
	for _, p := range s.producers {
		if !p.done {
			return "a producer of " + p.tp.String() + " has no answer"
		}
	}
	for _, t := range s.transactors {
		if !t.done {
			return t.id + " has no answer"
		}
	}
	for _, m := range s.machines {
		if !m.opened || m.stopping || !t.registered(m) {
			return fmt.Sprintf("%d is not back (up %t, opened %t, %s, stopping %t)", m.id, m.up, m.opened, m.state, m.stopping)
		}
	}
	for tp, state := range t.partitions() {
		if len(state.ISR) != len(state.Replicas) || state.Leader < 1 || state.IsReassigning() {
			return fmt.Sprintf("%s has the leader %d and in sync only %v of %v, +%v -%v",
				tp, state.Leader, state.ISR, state.Replicas, state.AddingReplicas, state.RemovingReplicas)
		}
		leader, err := s.machine(int(state.Leader)).node.Replicas().Describe(tp)
		if err != nil || leader.HighWatermark != leader.LogEndOffset {
			return fmt.Sprintf("the leader %d of %s has committed %d of %d (%v)", state.Leader, tp, leader.HighWatermark, leader.LogEndOffset, err)
		}
		if leader.LastStableOffset != leader.HighWatermark {
			return fmt.Sprintf("a transaction is open on %s from %d to %d", tp, leader.LastStableOffset, leader.HighWatermark)
		}
		for _, m := range s.having(state) {
			d, err := m.node.Replicas().Describe(tp)
			if err != nil || d.LogEndOffset != leader.LogEndOffset || d.HighWatermark != leader.HighWatermark {
				return fmt.Sprintf("%d has %s up to %d, %d committed, the leader up to %d (%v)", m.id, tp, d.LogEndOffset, d.HighWatermark, leader.LogEndOffset, err)
			}
			if state.Directory(m.id) != d.Directory {
				return fmt.Sprintf("%d has %s in %s, the controllers think in %s", m.id, tp, d.Directory, state.Directory(m.id))
			}
		}
	}
	for _, m := range s.machines {
		if is := m.leftOver(); is != "" {
			return is
		}
	}
	return ""
}

// having gives the machines that have a replica.
func (s *Simulation) having(state *metadata.Partition) (are []*machine) {
	for _, m := range s.machines {
		if state.HasReplica(m.id) {
			are = append(are, m)
		}
	}
	return are
}

// leftOver tells what is on a disk of partitions that are not the machine's, or of topics before of the same name.
func (m *machine) leftOver() string {
	entries, err := m.disk.ReadDir(dataDir)
	must(err)
	image, aside := m.s.controllers.truth.loader.Image(), 0
	for _, entry := range entries {
		if !entry.Dir {
			continue
		}
		switch kind, tp := logdir.Classify(entry.Name); kind {
		case logdir.KindIgnored:
		case logdir.KindAside:
			aside++
		case logdir.KindPartition:
			is := image.Partition(tp)
			if is == nil || !is.HasReplica(m.id) {
				return fmt.Sprintf("%d has the files of %s", m.id, tp)
			}
			text, err := vfs.ReadFile(m.disk, path.Join(dataDir, entry.Name, log.MetadataFile))
			must(err)
			if id, err := checkpoint.ParseTopicID(text); err != nil || id != image.Topic(tp.Topic).ID {
				return fmt.Sprintf("%d has %s of the topic %s, not %s (%v)", m.id, tp, id, image.Topic(tp.Topic).ID, err)
			}
		default:
			return fmt.Sprintf("%d has %s", m.id, entry.Name)
		}
	}
	m.s.counts.Aside = max(m.s.counts.Aside, aside)
	return ""
}

// verify reads every replica: all are equal, and have what was acknowledged.
func (s *Simulation) verify() {
	t := &s.controllers.truth
	if t.loader.Image().Topic(topicName) == nil {
		s.over = true // it could not be created in time
		return
	}
	logs := map[protocol.TopicPartition]contents{}
	missing := 0
	for _, id := range s.gone {
		s.verifyGone(id)
	}
	for tp, state := range t.partitions() {
		for _, m := range s.having(state) {
			missing++
			s.ask(clientEnd, int(m.id), readAll(t.loader.Image().Topic(tp.Topic).ID, tp.Partition), func(frame []byte, err error) {
				if err != nil {
					s.Violate("%s cannot be read from %d: %v", tp, m.id, err)
					return
				}
				log := s.values(tp, m, frame)
				if first, known := logs[tp]; !known {
					logs[tp] = log
				} else if fmt.Sprint(first) != fmt.Sprint(log) {
					s.Violate("%d has another log of %s than others: %d records, not %d", m.id, tp, len(log.values), len(first.values))
				}
				if missing--; missing == 0 {
					s.verifyAcknowledged(logs)
				}
			})
		}
	}
}

func (s *Simulation) verifyAcknowledged(logs map[protocol.TopicPartition]contents) {
	for _, a := range s.acked {
		if slices.Contains(s.gone, a.topic) {
			continue
		}
		if at := logs[a.tp].values[a.base]; at != a.value {
			s.Violate("%s was acknowledged at offset %d of %s, where there is %q", a.value, a.base, a.tp, at)
		}
	}
	s.verifyRead(logs)
	visible := map[string]int{}
	for tp, log := range logs {
		if tp.Topic != topicName {
			continue
		}
		for _, value := range log.committed {
			visible[value]++
		}
	}
	for _, t := range s.transactors {
		t.judge(visible)
	}
	s.over = true
}

func readAll(topic protocol.TopicID, partition int32) *kmsg.FetchRequest {
	return readFrom(topic, partition, 0)
}

func readFrom(topic protocol.TopicID, partition int32, offset protocol.Offset) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SessionEpoch, req.MaxBytes, req.MaxWaitMillis, req.MinBytes = -1, 1<<30, 10, 1
	req.ReplicaState = kmsg.NewFetchRequestReplicaState()
	req.ReplicaState.ID = -1
	t := kmsg.NewFetchRequestTopic()
	t.TopicID = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, int64(offset), 1<<30
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// contents are what is in a replica's log, and of that what transactions have committed.
type contents struct {
	values    map[protocol.Offset]string
	committed []string
}

// values takes the response to readAll apart.
func (s *Simulation) values(tp protocol.TopicPartition, m *machine, frame []byte) contents {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(protocol.APIOf(protocol.Fetch).MaxVersion)
	_, resp, err := wire.ReadResponse(frame, req)
	must(err)
	p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		s.Violate("%d answers a fetch of %s: %s", m.id, tp, protocol.ErrorCode(p.ErrorCode))
	}
	found, open := contents{values: map[protocol.Offset]string{}}, map[protocol.ProducerID][]string{}
	for bytes := p.RecordBatches; len(bytes) > 0; {
		batch, rest, err := record.Next(bytes)
		must(err)
		id := batch.ProducerID()
		for r, err := range record.Records(batch, s.pool, 1<<20) {
			must(err)
			found.values[r.Offset] = string(r.Value)
			if batch.IsTransactional() && !batch.IsControl() {
				open[id] = append(open[id], string(r.Value))
			}
		}
		if batch.IsControl() {
			marker, err := producerstate.ReadMarker(batch)
			must(err)
			if marker.Commit {
				found.committed = append(found.committed, open[id]...)
			}
			delete(open, id)
		}
		bytes = rest
	}
	return found
}
