package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// seeker asks for offsets by time and for the ends of leader epochs while others
// write, and compares with what the model knows for sure.
type seeker struct {
	s       *Simulation
	host    *host
	name    string
	random  *seeded.Random
	conn    *conn
	busy    bool
	pumping bool
}

func newSeeker(s *Simulation, h *host, i int) *seeker {
	return &seeker{s: s, host: h, name: fmt.Sprintf("seeker%d", i), random: s.random.Fork()}
}

func (k *seeker) start()       { k.again(k.random.Between(0, 3*time.Second)) }
func (k *seeker) idle() string { return "" }

func (k *seeker) again(delay time.Duration) {
	if k.pumping {
		return
	}
	k.pumping = true
	k.s.After(delay, k.name+" works", func() {
		k.pumping = false
		k.turn()
	})
}

func (k *seeker) turn() {
	if k.s.phase == reading {
		return
	}
	if k.conn == nil || !k.conn.open {
		k.busy = false
		if k.conn = k.s.connect(k.name, k.host, protocol.OnBroker, func() { k.again(50 * time.Millisecond) }); k.conn == nil {
			k.again(100 * time.Millisecond)
			return
		}
	}
	if p := k.somePart(); p != nil && !k.busy {
		if k.random.Chance(300) {
			k.seekEpoch(p)
		} else {
			k.seekTime(p)
		}
	}
	k.again(k.random.Between(10*time.Millisecond, time.Second))
}

// somePart gives a partition whose name means one topic only.
func (k *seeker) somePart() *partModel {
	var parts []*partModel
	for _, t := range k.s.model.order {
		if !t.plan.churn && !t.plan.transactions {
			parts = append(parts, t.parts...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return parts[k.random.Below(len(parts))]
}

func (k *seeker) send(req kmsg.Request, version int16, done func(resp kmsg.Response, incarnation int)) {
	k.busy = true
	conn := k.conn
	conn.send(req, version, 20*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == k.conn {
			k.busy = false
		}
		if err == nil {
			done(resp, conn.incarnation)
		}
	})
}

func listOffsets(p *partModel, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = p.topic.name
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp, part.CurrentLeaderEpoch = p.n, timestamp, -1
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return req
}

// seekTime checks an answer against records that were known when it was asked: none
// of them is skipped, and what is found is what was asked for.
func (k *seeker) seekTime(p *partModel) {
	timestamp := k.s.Now.UnixMilli() - int64(k.random.Below(30000))
	known := protocol.Offset(-1) // the first known record that fits
	for offset := p.seen.start; offset < p.seen.highWatermark; offset++ {
		if at, ok := p.times[offset]; ok && at >= timestamp {
			known = offset
			break
		}
	}
	k.send(listOffsets(p, timestamp), int16(1+k.random.Below(10)), func(resp kmsg.Response, incarnation int) {
		part := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if code := protocol.ErrorCode(part.ErrorCode); code != protocol.None {
			excuse(k.s, k.name, code, "ListOffsets", p)
			return
		}
		found := protocol.Offset(part.Offset)
		if at, ok := p.times[found]; ok && found >= 0 && !p.stale(incarnation, found) && (at != part.Timestamp || at < timestamp) {
			k.s.Violate("%s: the first record of %s from %d on is said to be %d at %d, which has timestamp %d", k.name, p, timestamp, found, part.Timestamp, at)
		}
		if known >= 0 && (found < 0 || found > known) && known >= p.maxStart && len(p.cuts) == 0 {
			k.s.Violate("%s: the first record of %s from %d on is said to be %d, but %d has timestamp %d", k.name, p, timestamp, found, known, p.times[known])
		}
	})
}

// seekEpoch checks that the end of a past epoch stays where it was.
func (k *seeker) seekEpoch(p *partModel) {
	current := k.host.node.Image().Partition(p.tp())
	if current == nil || current.LeaderEpoch == 0 {
		return
	}
	epoch := protocol.LeaderEpoch(k.random.Below(int(current.LeaderEpoch)))
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic = p.topic.name
	part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	part.Partition, part.LeaderEpoch, part.CurrentLeaderEpoch = p.n, int32(epoch), -1
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	cuts := len(p.cuts)
	k.send(req, int16(2+k.random.Below(3)), func(resp kmsg.Response, _ int) {
		part := resp.(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
		if code := protocol.ErrorCode(part.ErrorCode); code != protocol.None {
			excuse(k.s, k.name, code, "OffsetForLeaderEpoch", p)
			return
		}
		if part.EndOffset < 0 || protocol.LeaderEpoch(part.LeaderEpoch) != epoch || len(p.cuts) != cuts || p.cutPending {
			return // nothing is left of that epoch, or a power cut took its end
		}
		if protocol.Offset(part.EndOffset) <= p.maxStart {
			return // its records are deleted: where it ended is not known any more
		}
		key := epochOf{p, epoch}
		if before, known := k.s.model.ends[key]; known && before != protocol.Offset(part.EndOffset) && cuts == 0 {
			k.s.Violate("%s: epoch %d of %s ended at %d and now at %d; the metadata: %+v; the log: %+v", k.name, epoch, p, before, part.EndOffset,
				*k.host.node.Image().Partition(p.tp()), k.host.node.Store().Log(p.tp()).Epochs())
		}
		k.s.model.ends[key] = protocol.Offset(part.EndOffset)
	})
}
