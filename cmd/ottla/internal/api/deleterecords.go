package api

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// deleteRecords moves the starts of logs up (KIP-107), and answers when every live
// replica has followed or the time is up.
func deleteRecords(c *call, req *kmsg.DeleteRecordsRequest) {
	d := &deleting{call: c, slots: c.deleteSlots(req)}
	d.left.Store(int32(len(d.slots)) + 1) // one for this function
	timeout := time.Duration(req.TimeoutMillis) * time.Millisecond
	for i := range d.slots {
		slot := &d.slots[i]
		if slot.err != nil {
			d.finish()
			continue
		}
		c.Replicas.DeleteRecords(c.now, slot.partition, slot.offset, timeout, func(low protocol.Offset, err error) {
			slot.low, slot.err = low, err
			c.guard(d.finish)
		})
	}
	d.finish()
}

// deleting is a DeleteRecords whose partitions are under way.
type deleting struct {
	*call
	slots []deleteSlot
	left  atomic.Int32
}

// deleteSlot is one partition's place in the response.
type deleteSlot struct {
	partition protocol.TopicPartition
	offset    protocol.Offset
	low       protocol.Offset
	err       error
}

// deleteSlots lists the partitions of a request, with an error in those whose
// records cannot be deleted. Of a partition that is named twice the last counts,
// as in Apache Kafka.
func (c *call) deleteSlots(req *kmsg.DeleteRecordsRequest) []deleteSlot {
	image := c.Image()
	var slots []deleteSlot
	places := map[protocol.TopicPartition]int{}
	for i := range req.Topics {
		topic := &req.Topics[i]
		allowed := c.mayTopic(kmsg.ACLOperationDelete, topic.Topic)
		for j := range topic.Partitions {
			q := &topic.Partitions[j]
			tp := protocol.TopicPartition{Topic: topic.Topic, Partition: q.Partition}
			slot := deleteSlot{partition: tp, offset: protocol.Offset(q.Offset), low: protocol.NoOffset, err: checkDelete(image, tp, allowed)}
			if at, twice := places[tp]; twice {
				slots[at] = slot
				continue
			}
			places[tp] = len(slots)
			slots = append(slots, slot)
		}
	}
	return slots
}

// checkDelete tells why a partition's records cannot be deleted.
func checkDelete(image *metadata.Image, tp protocol.TopicPartition, allowed bool) error {
	switch {
	case !allowed:
		return protocol.TopicAuthorizationFailed.Err()
	case image.Partition(tp) == nil:
		return protocol.UnknownTopicOrPartition.Err()
	case protocol.IsInternalTopic(tp.Topic):
		return protocol.InvalidTopicException.Err()
	}
	return nil
}

// finish counts one part that is done; the last one answers.
func (d *deleting) finish() {
	if d.left.Add(-1) > 0 {
		return
	}
	resp := kmsg.NewPtrDeleteRecordsResponse()
	at := map[string]int{}
	for i := range d.slots {
		slot := &d.slots[i]
		place, known := at[slot.partition.Topic]
		if !known {
			place = len(resp.Topics)
			at[slot.partition.Topic] = place
			topic := kmsg.NewDeleteRecordsResponseTopic()
			topic.Topic = slot.partition.Topic
			resp.Topics = append(resp.Topics, topic)
		}
		part := kmsg.NewDeleteRecordsResponseTopicPartition()
		part.Partition, part.LowWatermark, part.ErrorCode = slot.partition.Partition, int64(slot.low), int16(protocol.CodeOf(slot.err))
		resp.Topics[place].Partitions = append(resp.Topics[place].Partitions, part)
	}
	d.reply(resp)
}
