package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// sentMarkers is one transaction's part of a WriteTxnMarkers.
type sentMarkers struct {
	task       *markerTask
	partitions []protocol.TopicPartition
}

// send sends the markers of several transactions to a broker.
func (m *Markers) send(to protocol.NodeID, sent []*sentMarkers) {
	m.busy[to] = true
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for _, part := range sent {
		req.Markers = append(req.Markers, part.marker())
	}
	m.options.SendTo(to, req, func(response kmsg.Response, err error) {
		m.later(func(now time.Time) {
			delete(m.busy, to)
			answer, ok := response.(*kmsg.WriteTxnMarkersResponse)
			if err != nil || !ok {
				m.options.Logger.Info("the markers of transactions were not written and are tried again", "broker", int32(to), "error", err)
				answer = &kmsg.WriteTxnMarkersResponse{}
			}
			for key := range m.tasks { // some may have waited for this broker
				m.changed[key] = true
			}
			for _, part := range sent {
				m.receive(now, part, answer)
			}
		})
	})
}

func (s *sentMarkers) marker() kmsg.WriteTxnMarkersRequestMarker {
	asked := s.task.markers
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.ProducerEpoch = int64(asked.Producer.ID), int16(asked.Producer.Epoch)
	marker.Committed, marker.CoordinatorEpoch, marker.TransactionVersion = asked.Commit, asked.CoordinatorEpoch, int8(asked.Version)
	for _, tp := range s.partitions { // in order
		if last := len(marker.Topics) - 1; last < 0 || marker.Topics[last].Topic != tp.Topic {
			marker.Topics = append(marker.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: tp.Topic})
		}
		topic := &marker.Topics[len(marker.Topics)-1]
		topic.Partitions = append(topic.Partitions, tp.Partition)
	}
	return marker
}

// receive takes the answer for one transaction. A partition that is not in it is
// tried again.
func (m *Markers) receive(now time.Time, part *sentMarkers, answer *kmsg.WriteTxnMarkersResponse) {
	task := part.task
	if m.tasks[task.key] != task {
		return // it is another's by now
	}
	codes := markerCodes(answer, task.markers.Producer.ID)
	for _, tp := range part.partitions {
		code, answered := codes[tp]
		switch {
		case answered && markerDone(code):
			if code != protocol.None {
				m.options.Logger.Warn("a partition does not take the marker of a transaction, and has no part in it any more",
					"partition", tp.String(), "transactionalId", task.key.id, "producerId", int64(task.markers.Producer.ID),
					"epoch", int16(task.markers.Producer.Epoch), "error", code.String())
			}
			delete(task.targets, tp)
			task.written = append(task.written, tp)
		default:
			target := task.targets[tp]
			if answered && target.attempts == 0 {
				m.options.Logger.Info("the marker of a transaction was not written and is tried again",
					"partition", tp.String(), "transactionalId", task.key.id, "error", code.String())
			}
			target.failed(now)
		}
	}
}

// markerDone tells whether there is nothing left to do: the marker is written, or
// nothing of this transaction can be open. A higher epoch of the producer comes to
// a partition only after the end of what the lower one wrote.
func markerDone(code protocol.ErrorCode) bool {
	switch code {
	case protocol.None, protocol.InvalidProducerEpoch, protocol.UnsupportedForMessageFormat:
		return true
	}
	return false
}

func markerCodes(answer *kmsg.WriteTxnMarkersResponse, id protocol.ProducerID) map[protocol.TopicPartition]protocol.ErrorCode {
	codes := map[protocol.TopicPartition]protocol.ErrorCode{}
	for _, marker := range answer.Markers {
		if marker.ProducerID != int64(id) {
			continue
		}
		for _, topic := range marker.Topics {
			for _, p := range topic.Partitions {
				codes[protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = protocol.ErrorCode(p.ErrorCode)
			}
		}
	}
	return codes
}

// report tells the coordinator which partitions have their marker. It is told
// again if it could not write down what that meant; one that is loaded anew asks
// for the markers again.
func (m *Markers) report(now time.Time, task *markerTask) {
	written := task.written
	task.written = nil
	over := len(task.targets) == 0
	report := txn.MarkersWritten{
		TransactionalID: task.key.id, Producer: task.markers.Producer, CoordinatorEpoch: task.markers.CoordinatorEpoch, Partitions: written,
	}
	m.options.Submit(now, task.key.partition, report, func(_ any, err error) {
		if err == nil && !over {
			return
		}
		m.later(func(now time.Time) { m.reported(now, task, written, over, err) })
	})
}

func (m *Markers) reported(now time.Time, task *markerTask, written []protocol.TopicPartition, over bool, err error) {
	if m.tasks[task.key] != task {
		return
	}
	switch code := protocol.CodeOf(err); {
	case err == nil && over, code == protocol.NotCoordinator, code == protocol.CoordinatorLoadInProgress:
		delete(m.tasks, task.key)
	case err != nil:
		task.written = append(task.written, written...)
		task.due = now.Add(min(firstMarkerRetry<<min(task.attempts, 10), lastMarkerRetry))
		task.attempts++
		m.changed[task.key] = true
	}
}
