package node_test

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
	"ottla/controller/group"
	"ottla/controller/shard"
	"ottla/protocol"
	"ottla/storage/vfs"
)

// stepped is a node driven by hand.
type stepped struct {
	*testing.T
	now      time.Time
	disk     *vfs.Mem
	node     *node.Node
	config   *config.BrokerConfig
	logger   *slog.Logger // nil: nobody listens
	requests []func()
}

func (s *stepped) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stepped) boot() {
	s.Helper()
	properties, err := config.FromOverrides([]string{
		"process.roles=broker,controller", "node.id=1", "listeners=PLAINTEXT://h0:9092,CONTROLLER://h0:9093",
		"controller.listener.names=CONTROLLER", "controller.quorum.voters=1@h0:9093", "log.dirs=/data",
		"offsets.topic.replication.factor=1",
	})
	s.must(err)
	s.config, _, err = config.Broker(properties)
	s.must(err)
	random := rand.New(rand.NewPCG(uint64(s.now.UnixNano()), 1))
	s.node, err = node.New(s.now, node.Options{
		Config: s.config, FS: s.disk, Random: random.Uint64, Logger: cmp.Or(s.logger, slog.New(slog.DiscardHandler)), Hostname: "h0", KeepReserve: true,
		Send: func(req kmsg.Request, done func(kmsg.Response, error)) {
			s.requests = append(s.requests, func() { s.node.Submit(s.now, req, done) })
		},
		Fatal: func(err error) { s.Errorf("the node cannot go on: %v", err) }, State: func(broker.State) {},
	})
	s.must(err)
	s.must(s.node.Start(s.now))
	s.run(10*time.Second, func() bool { return s.node.State() == broker.Running })
}

// run pumps the parts until something is so.
func (s *stepped) run(atMost time.Duration, until func() bool) {
	s.Helper()
	for end := s.now.Add(atMost); s.now.Before(end); s.now = s.now.Add(10 * time.Millisecond) {
		requests := s.requests
		s.requests = nil
		for _, request := range requests {
			request()
		}
		for _, part := range s.node.Parts() {
			if due := part.Deadline(s.now); !due.IsZero() && !due.After(s.now) {
				part.Tick(s.now)
			}
		}
		if until() {
			return
		}
	}
	s.Fatalf("not so within %v", atMost)
}

func (s *stepped) change(req kmsg.Request) {
	s.Helper()
	answered := false
	s.node.Submit(s.now, req, func(resp kmsg.Response, err error) {
		answered = true
		s.must(err)
		if made, ok := resp.(*kmsg.CreateTopicsResponse); ok && made.Topics[0].ErrorCode != 0 {
			s.Fatalf("%s: %d", made.Topics[0].Topic, made.Topics[0].ErrorCode)
		}
	})
	if !answered {
		s.Fatal("a controller alone answers at once")
	}
}

// ask gives a request to the coordinator of a group.
func (s *stepped) ask(groupID string, req kmsg.Request) (resp kmsg.Response, failure error) {
	s.Helper()
	request := group.Request{Message: req, ClientID: "c", ClientHost: "/127.0.0.1"}
	s.node.Groups().Submit(s.now, shard.PartitionFor(groupID, 50), request, func(reply any, err error) {
		resp, _ = reply.(kmsg.Response)
		failure = err
	})
	if resp == nil && failure == nil {
		s.Fatalf("%T has no answer", req)
	}
	return resp, failure
}

func (s *stepped) commit(groupID, topic string, offset int64) {
	s.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, groupID, -1
	of, partition := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	of.Topic, partition.Offset = topic, offset
	of.Partitions = append(of.Partitions, partition)
	req.Topics = append(req.Topics, of)
	resp, err := s.ask(groupID, req)
	s.must(err)
	if code := resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		s.Fatalf("the commit of %d got %s", offset, protocol.ErrorCode(code))
	}
}

// committed gives the offset of the first partition of each topic.
func (s *stepped) committed(groupID string) map[string]int64 {
	s.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	of := kmsg.NewOffsetFetchRequestGroup()
	of.Group = groupID
	req.Groups = append(req.Groups, of)
	resp, err := s.ask(groupID, req)
	s.must(err)
	found := map[string]int64{}
	for _, topic := range resp.(*kmsg.OffsetFetchResponse).Groups[0].Topics {
		found[topic.Topic] = topic.Partitions[0].Offset
	}
	return found
}

func topicRequest(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.Topics = 7, 1000, topics
	return req
}

// TestReleasedNodeKeepsItsRoles: the cluster goes on for as long as a node stops, and gives to others what the node had. What it has closed takes
// no role any more, and nothing is logged about it.
func TestReleasedNodeKeepsItsRoles(t *testing.T) {
	var said bytes.Buffer
	s := &stepped{T: t, now: time.UnixMilli(1_800_000_000_000), disk: vfs.NewMem(rand.New(rand.NewPCG(1, 1)).Uint64)}
	s.logger = slog.New(slog.NewTextHandler(&said, nil))
	s.boot()
	topic := func(name string) kmsg.CreateTopicsRequestTopic {
		made := kmsg.NewCreateTopicsRequestTopic()
		made.Topic, made.NumPartitions, made.ReplicationFactor = name, 2, 1
		return made
	}
	s.change(topicRequest(topic("before"), broker.InternalTopic(s.config, protocol.ConsumerOffsetsTopic)))
	s.must(s.node.Release(s.now))
	said.Reset()
	s.change(topicRequest(topic("after")))
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis = 6, 1000
	name := kmsg.NewDeleteTopicsRequestTopic()
	name.Topic = kmsg.StringPtr("before")
	remove.Topics = append(remove.Topics, name)
	s.change(remove)
	s.now = s.now.Add(time.Minute)
	for _, part := range s.node.Parts() {
		part.Tick(s.now)
	}
	s.must(s.node.Stop(s.now, true))
	if said.Len() > 0 {
		t.Errorf("after the release it said:\n%s", said.String())
	}
	s.boot()
	if s.node.Store().Log(protocol.TopicPartition{Topic: "before"}) != nil || s.node.Store().Log(protocol.TopicPartition{Topic: "after"}) == nil {
		t.Error("the next process does not follow what the cluster said meanwhile")
	}
}

// TestGroupsOnANode: the coordinators of a node come with their topic, are there
// again after a restart of either kind, and learn of deleted topics.
func TestGroupsOnANode(t *testing.T) {
	s := &stepped{T: t, now: time.UnixMilli(1_800_000_000_000), disk: vfs.NewMem(rand.New(rand.NewPCG(1, 1)).Uint64)}
	s.boot()
	if _, err := s.ask("g", kmsg.NewPtrHeartbeatRequest()); protocol.CodeOf(err) != protocol.NotCoordinator {
		t.Errorf("without the topic: %v", err)
	}
	s.change(topicRequest(broker.InternalTopic(s.config, protocol.ConsumerOffsetsTopic)))
	orders := kmsg.NewCreateTopicsRequestTopic()
	orders.Topic, orders.NumPartitions, orders.ReplicationFactor = "orders", 1, 1
	s.change(topicRequest(orders))
	allActive := func() bool {
		_, active, _ := s.node.Groups().Counts()
		return active == 50
	}
	s.run(time.Second, allActive)
	for _, end := range []string{"death", "clean stop"} {
		for n := range 20 {
			name := fmt.Sprint("group-", n)
			s.commit(name, "orders", s.committed(name)["orders"]+7)
			s.commit(name, "bills", 3)
		}
		s.must(s.node.Release(s.now))
		if end == "death" {
			s.disk = s.disk.Kill()
		} else {
			s.must(s.node.Stop(s.now, true))
		}
		s.now = s.now.Add(time.Minute)
		s.boot()
		s.run(time.Second, allActive)
	}
	for n := range 20 {
		if got := s.committed(fmt.Sprint("group-", n)); got["orders"] != 14 || got["bills"] != 3 {
			t.Errorf("group %d has committed %v", n, got)
		}
	}
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis = 6, 1000
	name := kmsg.NewDeleteTopicsRequestTopic()
	name.Topic = kmsg.StringPtr("orders")
	remove.Topics = append(remove.Topics, name)
	s.change(remove)
	for n := range 20 {
		if got := s.committed(fmt.Sprint("group-", n)); len(got) != 1 || got["bills"] != 3 {
			t.Errorf("after the topic was deleted group %d has committed %v", n, got)
		}
	}
}
