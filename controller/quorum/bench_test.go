package quorum

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/cluster"
	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// wide is a cluster of 5,000 topics with 10 partitions each, over a disk in
// memory.
func wide(b *testing.B) *rig {
	b.Helper()
	r := rigOn(b, vfs.NewMem(seeded(1)))
	r.format(1)
	r.machine = newCluster(b)
	r.options.Machine, r.options.SegmentBytes, r.options.SnapshotBytes, r.options.SnapshotAge = r.machine, 1<<30, 1<<30, 0
	r.mustStart()
	r.joinCluster(1, -1)
	for i := range 5000 {
		if answer := r.createTopic(fmt.Sprintf("topic.%05d", i), 10); answer.ErrorCode != 0 {
			b.Fatal(protocol.ErrorCode(answer.ErrorCode))
		}
	}
	return r
}

func BenchmarkWide(b *testing.B) {
	r := wide(b)
	controller := r.machine.(*cluster.Controller)
	b.Logf("%d partitions, log of %d bytes", r.q.Image().PartitionCount(), r.q.log.Size())
	b.Run("NextDeadline", func(b *testing.B) {
		for b.Loop() {
			controller.NextDeadline()
		}
	})
	b.Run("Heartbeat", func(b *testing.B) {
		beat := kmsg.NewPtrBrokerHeartbeatRequest()
		beat.BrokerID, beat.BrokerEpoch, beat.CurrentMetadataOffset = 1, int64(r.q.Image().Broker(1).Epoch), 1<<40
		for b.Loop() {
			ask[*kmsg.BrokerHeartbeatResponse](r, beat)
		}
	})
	b.Run("CreateOneTopic", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			r.createTopic(fmt.Sprintf("more_%d.%d", b.N, i), 1)
		}
	})
	b.Run("CreateTopic9999Partitions", func(b *testing.B) {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.ValidateOnly = 7, true
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "huge", 9999, 1
		req.Topics = append(req.Topics, topic)
		for b.Loop() {
			ask[*kmsg.CreateTopicsResponse](r, req)
		}
	})
	b.Run("Create5000Topics", func(b *testing.B) {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.ValidateOnly = 7, true
		for i := range 5000 {
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = fmt.Sprintf("many.%d", i), 1, 1
			req.Topics = append(req.Topics, topic)
		}
		for b.Loop() {
			ask[*kmsg.CreateTopicsResponse](r, req)
		}
	})
	b.Run("RestartFromLog", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			disk := r.fs.Kill()
			b.StartTimer()
			r.again(disk, log.SameBoot).mustStart()
		}
	})
	b.Run("FenceAndReturn", func(b *testing.B) {
		for b.Loop() {
			r.tick(10 * time.Second)
			r.joinCluster(byte(b.N), -1)
		}
	})
	b.Run("Snapshot", func(b *testing.B) {
		for b.Loop() {
			if err := r.q.takeSnapshot(r.now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("RestartFromSnapshot", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			disk := r.fs.Kill()
			b.StartTimer()
			r.again(disk, log.SameBoot).mustStart()
		}
	})
	if strings.Contains(r.log.String(), "ERROR") {
		b.Fatal(r.log.String())
	}
}
