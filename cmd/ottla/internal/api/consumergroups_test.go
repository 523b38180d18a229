package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/cluster"
	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
)

// withConsumerGroups is a node that serves consumer groups.
func withConsumerGroups(n *Node) {
	n.Features[metadata.GroupVersionFeature] = cluster.Range{Min: 0, Max: 1}
}

// entering is the first heartbeat of a member that subscribes to topic "orders".
func entering(group, member string) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis = group, member, 30_000
	req.SubscribedTopicNames, req.Topics = []string{"orders"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return req
}

// Item 111, and GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
func TestConsumerGroupHeartbeatIsChecked(t *testing.T) {
	f := newFixture(t, withConsumerGroups)
	f.write(featureRecord(metadata.GroupVersionFeature, 1))
	p := f.connect()
	blank := " "
	cases := []struct {
		what   string
		change func(*kmsg.ConsumerGroupHeartbeatRequest)
		code   protocol.ErrorCode
		text   string
	}{
		{"no member id", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID = "" }, protocol.InvalidRequest, "MemberId can't be empty."},
		{"no group", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "" }, protocol.InvalidRequest, "GroupId can't be empty."},
		{"blank instance", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &blank }, protocol.InvalidRequest, "InstanceId can't be empty."},
		{"blank rack", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RackID = &blank }, protocol.InvalidRequest, "RackId can't be empty."},
		{"no timeout", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RebalanceTimeoutMillis = -1 }, protocol.InvalidRequest, "RebalanceTimeoutMs must be provided in first request."},
		{"no partitions", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Topics = nil }, protocol.InvalidRequest, "TopicPartitions must be empty when (re-)joining."},
		{"partitions", func(r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{Partitions: []int32{0}}}
		}, protocol.InvalidRequest, "TopicPartitions must be empty when (re-)joining."},
		{"no subscription", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = nil }, protocol.InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."},
		{"leaves, not static", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -2 }, protocol.InvalidRequest, "InstanceId can't be null."},
		{"bad epoch", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -3 }, protocol.InvalidRequest, "MemberEpoch is invalid."},
		{"bad assignor", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = kmsg.StringPtr("best") }, protocol.UnsupportedAssignor, "ServerAssignor best is not supported. Supported assignors: uniform, range."},
	}
	for _, c := range cases {
		req := entering("g", "m")
		c.change(req)
		resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, req, 1)
		if protocol.ErrorCode(resp.ErrorCode) != c.code || deref(resp.ErrorMessage) != c.text {
			t.Errorf("%s: %d %q, want %d %q", c.what, resp.ErrorCode, deref(resp.ErrorMessage), c.code, c.text)
		}
	}
	first := entering("", "") // version 0 lets the coordinator choose the member's id
	if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, first, 0); deref(resp.ErrorMessage) != "GroupId can't be empty." {
		t.Errorf("version 0 without member id: %q", deref(resp.ErrorMessage))
	}
	for _, epoch := range []int32{-1, 5} {
		first.MemberEpoch = epoch
		if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, first, 0); deref(resp.ErrorMessage) != "MemberId can't be empty." {
			t.Errorf("version 0, epoch %d without member id: %q", epoch, deref(resp.ErrorMessage))
		}
	}
}

func TestConsumerGroupsAreAuthorized(t *testing.T) {
	f := newFixture(t, withConsumerGroups, func(n *Node) { n.Authorize = deny("secret", "hidden") })
	f.write(featureRecord(metadata.GroupVersionFeature, 1))
	p := f.connect()
	if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, entering("secret", "m"), 1); protocol.ErrorCode(resp.ErrorCode) != protocol.GroupAuthorizationFailed {
		t.Errorf("a secret group: %d", resp.ErrorCode)
	}
	req := entering("g", "m")
	req.SubscribedTopicNames = []string{"orders", "hidden"}
	if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, req, 1); protocol.ErrorCode(resp.ErrorCode) != protocol.TopicAuthorizationFailed {
		t.Errorf("a hidden topic: %d", resp.ErrorCode)
	}
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{"secret"}
	if resp := request[*kmsg.ConsumerGroupDescribeResponse](p, describe, 1); protocol.ErrorCode(resp.Groups[0].ErrorCode) != protocol.GroupAuthorizationFailed {
		t.Errorf("a secret group described: %d", resp.Groups[0].ErrorCode)
	}
}

// Where consumer groups are not served their requests are advertised and refused.
func TestConsumerGroupsRefused(t *testing.T) {
	classic, _, err := config.Broker(config.Layer(config.Default(), []config.Property{{Name: "group.coordinator.rebalance.protocols", Value: "classic"}}))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		level  int16
		change func(*Node)
	}{
		"not finalized":  {0, withConsumerGroups},
		"not served":     {1, func(*Node) {}},
		"not configured": {1, func(n *Node) { withConsumerGroups(n); n.Config = classic }},
	} {
		f := newFixture(t, c.change)
		f.write(featureRecord(metadata.GroupVersionFeature, c.level))
		p := f.connect()
		if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, entering("g", "m"), 1); protocol.ErrorCode(resp.ErrorCode) != protocol.UnsupportedVersion {
			t.Errorf("%s: a heartbeat gets %d", what, resp.ErrorCode)
		}
		describe := kmsg.NewPtrConsumerGroupDescribeRequest()
		describe.Groups = []string{"g"}
		if resp := request[*kmsg.ConsumerGroupDescribeResponse](p, describe, 1); protocol.ErrorCode(resp.Groups[0].ErrorCode) != protocol.UnsupportedVersion {
			t.Errorf("%s: describing gets %+v", what, resp.Groups)
		}
	}
}
