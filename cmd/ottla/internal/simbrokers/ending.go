package simbrokers

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	producerstate "ottla/storage/producer"
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
		if len(state.ISR) != brokers || state.Leader < 1 {
			return fmt.Sprintf("%s has the leader %d and in sync only %v", tp, state.Leader, state.ISR)
		}
		leader, err := s.machine(int(state.Leader)).node.Replicas().Describe(tp)
		if err != nil || leader.HighWatermark != leader.LogEndOffset {
			return fmt.Sprintf("the leader %d of %s has committed %d of %d (%v)", state.Leader, tp, leader.HighWatermark, leader.LogEndOffset, err)
		}
		if leader.LastStableOffset != leader.HighWatermark {
			return fmt.Sprintf("a transaction is open on %s from %d to %d", tp, leader.LastStableOffset, leader.HighWatermark)
		}
		for _, m := range s.machines {
			d, err := m.node.Replicas().Describe(tp)
			if err != nil || d.LogEndOffset != leader.LogEndOffset || d.HighWatermark != leader.HighWatermark {
				return fmt.Sprintf("%d has %s up to %d, %d committed, the leader up to %d (%v)", m.id, tp, d.LogEndOffset, d.HighWatermark, leader.LogEndOffset, err)
			}
		}
	}
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
	for tp := range t.partitions() {
		for _, m := range s.machines {
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
		if at := logs[a.tp].values[a.base]; at != a.value {
			s.Violate("%s was acknowledged at offset %d of %s, where there is %q", a.value, a.base, a.tp, at)
		}
	}
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
	req := kmsg.NewPtrFetchRequest()
	req.SessionEpoch, req.MaxBytes, req.MaxWaitMillis, req.MinBytes = -1, 1<<30, 10, 1
	req.ReplicaState = kmsg.NewFetchRequestReplicaState()
	req.ReplicaState.ID = -1
	t := kmsg.NewFetchRequestTopic()
	t.TopicID = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.PartitionMaxBytes = partition, 1<<30
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
