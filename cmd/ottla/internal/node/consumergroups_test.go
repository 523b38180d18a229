package node_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/vfs"
)

// beat sends a heartbeat of a member of a consumer group; names are what it
// subscribes to, in its first one.
func (s *stepped) beat(member string, epoch int32, names ...string) *kmsg.ConsumerGroupHeartbeatResponse {
	s.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = 1, "g", member, epoch, -1
	if epoch == 0 {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.Topics = 30_000, names, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	resp, err := s.ask("g", req)
	s.must(err)
	return resp.(*kmsg.ConsumerGroupHeartbeatResponse)
}

// TestConsumerGroupOfANewNode: a new cluster has consumer groups; one finds the
// topics of the Image, sees one grow, and lives on in another process.
func TestConsumerGroupOfANewNode(t *testing.T) {
	s := &stepped{T: t, now: time.UnixMilli(1_800_000_000_000), disk: vfs.NewMem(rand.New(rand.NewPCG(1, 1)).Uint64)}
	s.boot()
	if level := s.node.Image().Feature(metadata.GroupVersionFeature); level != 1 {
		t.Fatalf("a new cluster has group.version %d", level)
	}
	orders := kmsg.NewCreateTopicsRequestTopic()
	orders.Topic, orders.NumPartitions, orders.ReplicationFactor = "orders", 2, 1
	s.change(topicRequest(broker.InternalTopic(s.config, protocol.ConsumerOffsetsTopic), orders))
	s.run(10*time.Second, func() bool { _, active, _ := s.node.Groups().Counts(); return active == 50 })

	joined := s.beat("m", 0, "orders")
	if joined.ErrorCode != 0 || joined.Assignment == nil || len(joined.Assignment.Topics) != 1 || len(joined.Assignment.Topics[0].Partitions) != 2 {
		t.Fatalf("the member is told %+v", joined)
	}
	if again := s.beat("m", joined.MemberEpoch); again.ErrorCode != 0 || again.Assignment != nil {
		t.Fatalf("the member is told %+v, and nothing is new", again)
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Version, grow.TimeoutMillis = 3, 1000
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "orders", Count: 3}}
	s.change(grow)
	epoch := joined.MemberEpoch
	s.run(10*time.Second, func() bool {
		resp := s.beat("m", epoch)
		epoch = resp.MemberEpoch
		return resp.Assignment != nil && len(resp.Assignment.Topics[0].Partitions) == 3
	})

	s.must(s.node.Release(s.now))
	s.disk = s.disk.Kill()
	s.now = s.now.Add(time.Minute)
	s.boot()
	s.run(10*time.Second, func() bool { _, active, _ := s.node.Groups().Counts(); return active == 50 })
	if back := s.beat("m", epoch); back.ErrorCode != 0 || back.MemberEpoch != epoch {
		t.Errorf("after the crash the member of epoch %d is told %+v", epoch, back)
	}
}

func TestDefaultFeatures(t *testing.T) {
	want := offline.Feature{Name: metadata.GroupVersionFeature, Level: 1}
	found := false
	for _, f := range node.DefaultFeatures() {
		found = found || f == want
		if f.Name == metadata.KRaftVersionFeature || f.Name == metadata.MetadataVersionFeature {
			t.Errorf("%s is derived, and no default", f.Name)
		}
	}
	if !found {
		t.Errorf("%v has no %v", node.DefaultFeatures(), want)
	}
}
