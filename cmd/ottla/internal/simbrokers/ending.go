package simbrokers

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
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
	topic := t.loader.Image().Topic(topicName)
	if topic == nil {
		s.over = true // it could not be created in time
		return
	}
	logs := map[protocol.TopicPartition]map[protocol.Offset]string{}
	missing := 0
	for tp := range t.partitions() {
		for _, m := range s.machines {
			missing++
			s.ask(clientEnd, int(m.id), readAll(topic.ID, tp.Partition), func(frame []byte, err error) {
				if err != nil {
					s.Violate("%s cannot be read from %d: %v", tp, m.id, err)
					return
				}
				log := s.values(tp, m, frame)
				if first := logs[tp]; first == nil {
					logs[tp] = log
				} else if fmt.Sprint(first) != fmt.Sprint(log) {
					s.Violate("%d has another log of %s than others: %d batches, not %d", m.id, tp, len(log), len(first))
				}
				if missing--; missing == 0 {
					s.verifyAcknowledged(logs)
				}
			})
		}
	}
}

func (s *Simulation) verifyAcknowledged(logs map[protocol.TopicPartition]map[protocol.Offset]string) {
	for _, a := range s.acked {
		if at := logs[a.tp][a.base]; at != a.value {
			s.Violate("%s was acknowledged at offset %d of %s, where there is %q", a.value, a.base, a.tp, at)
		}
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

// values takes the response to readAll apart.
func (s *Simulation) values(tp protocol.TopicPartition, m *machine, frame []byte) map[protocol.Offset]string {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(protocol.APIOf(protocol.Fetch).MaxVersion)
	_, resp, err := wire.ReadResponse(frame, req)
	must(err)
	p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		s.Violate("%d answers a fetch of %s: %s", m.id, tp, protocol.ErrorCode(p.ErrorCode))
	}
	found := map[protocol.Offset]string{}
	for bytes := p.RecordBatches; len(bytes) > 0; {
		batch, rest, err := record.Next(bytes)
		must(err)
		for r, err := range record.Records(batch, s.pool, 1<<20) {
			must(err)
			found[r.Offset] = string(r.Value)
		}
		bytes = rest
	}
	return found
}
