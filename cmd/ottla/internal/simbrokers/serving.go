package simbrokers

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/vfs"
)

// fetch answers a Fetch of the metadata log, at once or when there is something new (KafkaRaftClient.handleFetchRequest).
func (c *controllers) fetch(index int, req *kmsg.FetchRequest, until time.Time, reply func(any)) {
	m := c.members[index]
	asked := req.Topics[0].Partitions[0]
	resp, topic, p := kmsg.NewPtrFetchResponse(), kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch, p.HighWatermark = -1, int32(m.epoch), -1
	if m.leader >= 0 {
		id := int32(firstController + m.leader)
		p.CurrentLeader.LeaderID = id
		resp.Brokers = []kmsg.FetchResponseBroker{{NodeID: id, Host: "c", Port: id}}
	}
	l := m.leads
	if p.ErrorCode = l.refusal(asked.CurrentLeaderEpoch); p.ErrorCode == 0 {
		p.HighWatermark = int64(l.committed)
		offset, last := protocol.Offset(asked.FetchOffset), protocol.LeaderEpoch(asked.LastFetchedEpoch)
		found := l.epochEnd(last)
		switch {
		case offset < l.start:
			id, _ := l.newest()
			c.s.counts.Snapshots++
			p.SnapshotID.EndOffset, p.SnapshotID.Epoch = int64(id.End), int32(id.Epoch)
		case offset > 0 && (found.Epoch != last || found.End < offset):
			c.s.counts.Divergences++
			p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = int32(found.Epoch), int64(found.End)
		default:
			p.RecordBatches = l.recordsFrom(offset, int(req.MaxBytes))
			if len(p.RecordBatches) == 0 && int64(l.committed) <= asked.HighWatermark && c.s.Now.Before(until) {
				l.park(until, func() { c.fetch(index, req, until, reply) })
				return
			}
		}
	}
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	reply(resp)
}

// refusal is the error for who asks in an epoch that is not this leader's; nil leads nothing.
func (l *leader) refusal(epoch int32) int16 {
	switch {
	case l == nil:
		return int16(protocol.NotLeaderOrFollower)
	case epoch < int32(l.epoch):
		return int16(protocol.FencedLeaderEpoch)
	case epoch > int32(l.epoch):
		return int16(protocol.UnknownLeaderEpoch)
	}
	return int16(protocol.None)
}

// park runs something once: when something is new, or at the latest then.
func (l *leader) park(until time.Time, again func()) {
	done := false
	once := func() {
		if !done {
			done = true
			again()
		}
	}
	l.parked = append(l.parked, once)
	l.c.s.At(until, "a fetch of metadata has waited", once)
}

// epochEnd is the largest epoch not above one, and where it ends in the log.
func (l *leader) epochEnd(epoch protocol.LeaderEpoch) raft.EpochEnd {
	found := raft.EpochEnd{}
	for _, b := range l.log {
		if b.PartitionLeaderEpoch() > epoch {
			break
		}
		found = raft.EpochEnd{Epoch: b.PartitionLeaderEpoch(), End: b.NextOffset()}
	}
	return found
}

func (l *leader) recordsFrom(offset protocol.Offset, most int) (records []byte) {
	for _, b := range l.log {
		if b.NextOffset() <= offset {
			continue
		}
		if len(records) > 0 && len(records)+b.Size() > most {
			break
		}
		records = append(records, b...)
	}
	return records
}

// newest is the latest snapshot of what is committed.
func (l *leader) newest() (newest raft.SnapshotID, found bool) {
	entries, err := l.disk.ReadDir(metadataLog)
	must(err)
	for _, entry := range entries {
		id, ok := snapshotOf(entry.Name)
		if ok && id.End > 0 && id.End <= l.committed && id.End > newest.End {
			newest, found = id, true
		}
	}
	return newest, found
}

// snapshotOf reads the name of a snapshot's file.
func snapshotOf(name string) (id raft.SnapshotID, ok bool) {
	text, ok := strings.CutSuffix(name, ".checkpoint")
	if !ok || len(text) != 31 {
		return id, false
	}
	return raft.SnapshotID{End: protocol.Offset(number(text[:20])), Epoch: protocol.LeaderEpoch(number(text[21:]))}, true
}

func number(digits string) (n int64) {
	for _, d := range digits {
		n = 10*n + int64(d-'0')
	}
	return n
}

// fetchSnapshot answers with a chunk of a snapshot.
func (c *controllers) fetchSnapshot(index int, req *kmsg.FetchSnapshotRequest) kmsg.Response {
	m := c.members[index]
	asked := req.Topics[0].Partitions[0]
	resp, topic, p := kmsg.NewPtrFetchSnapshotResponse(), kmsg.NewFetchSnapshotResponseTopic(), kmsg.NewFetchSnapshotResponseTopicPartition()
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = -1, int32(m.epoch)
	if m.leader >= 0 {
		p.CurrentLeader.LeaderID = int32(firstController + m.leader)
	}
	p.SnapshotID.EndOffset, p.SnapshotID.Epoch = asked.SnapshotID.EndOffset, asked.SnapshotID.Epoch
	l := m.leads
	if p.ErrorCode = l.refusal(asked.CurrentLeaderEpoch); p.ErrorCode == 0 {
		content, err := vfs.ReadFile(l.disk, path.Join(metadataLog, snapshotFile(asked.SnapshotID.EndOffset, asked.SnapshotID.Epoch)))
		if err != nil || asked.Position > int64(len(content)) {
			p.ErrorCode = int16(protocol.SnapshotNotFound)
		} else {
			p.Size, p.Position = int64(len(content)), asked.Position
			p.Bytes = content[asked.Position:min(asked.Position+int64(req.MaxBytes), int64(len(content)))]
		}
	}
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func snapshotFile(end int64, epoch int32) string {
	return fmt.Sprintf("%020d-%010d.checkpoint", end, epoch)
}
