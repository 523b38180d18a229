package api

import (
	"testing"
	"time"

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

// enter makes a member of a consumer group and lets it beat until it has partitions.
func (f *fixture) enter(p *peer, group, member string) *kmsg.ConsumerGroupHeartbeatResponse {
	f.t.Helper()
	resp := request[*kmsg.ConsumerGroupHeartbeatResponse](p, entering(group, member), 1)
	for n := 0; resp.Assignment == nil || len(resp.Assignment.Topics) == 0; n++ {
		if resp.ErrorCode != 0 || n > 10 {
			f.t.Fatalf("%s in %s: %+v", member, group, resp)
		}
		f.pass(time.Second) // the least between two assignments
		beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		beat.Group, beat.MemberID, beat.MemberEpoch, beat.RebalanceTimeoutMillis = group, member, resp.MemberEpoch, -1
		resp = request[*kmsg.ConsumerGroupHeartbeatResponse](p, beat, 1)
	}
	return resp
}

func TestConsumerGroup(t *testing.T) {
	authorizer := deny()
	f := newFixture(t, withConsumerGroups, func(n *Node) { n.Authorize = authorizer })
	f.write(featureRecord(metadata.GroupVersionFeature, 1))
	f.topic("orders", topicSpec{partitions: 2})
	f.coordinate()
	p := f.connect()
	if got := f.enter(p, "g", "m").Assignment.Topics; len(got) != 1 || got[0].TopicID != topicID("orders") || len(got[0].Partitions) != 2 {
		t.Fatalf("the member is given %+v", got)
	}
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups, describe.IncludeAuthorizedOperations = []string{"g", "", "nobody's"}, true
	described := request[*kmsg.ConsumerGroupDescribeResponse](p, describe, 1)
	byID := map[string]kmsg.ConsumerGroupDescribeResponseGroup{}
	for _, g := range described.Groups {
		byID[g.Group] = g
	}
	if g := byID["g"]; g.State != "Stable" || len(g.Members) != 1 || g.Members[0].ClientID != "test" || g.AuthorizedOperations != 3400 {
		t.Errorf("the group is described as %+v", g)
	}
	if a, b := byID[""].ErrorCode, byID["nobody's"].ErrorCode; codeOf(a) != codeOf(protocol.InvalidGroupID) || codeOf(b) != codeOf(protocol.GroupIDNotFound) {
		t.Errorf("no group: %d, nobody's: %d", a, b)
	}
	for filter, want := range map[string]int{"consumer": 1, "Classic": 0} {
		list := kmsg.NewPtrListGroupsRequest()
		list.TypesFilter = []string{filter}
		if got := request[*kmsg.ListGroupsResponse](p, list, 5).Groups; len(got) != want || want == 1 && (got[0].GroupType != "consumer" || got[0].ProtocolType != "consumer") {
			t.Errorf("groups of type %s: %+v", filter, got)
		}
	}
	describe.Groups = []string{"g"}
	authorizer.mu.Lock()
	authorizer.names["orders"] = true
	authorizer.mu.Unlock()
	hidden := request[*kmsg.ConsumerGroupDescribeResponse](p, describe, 0).Groups[0]
	if hidden.Group != "g" || codeOf(hidden.ErrorCode) != codeOf(protocol.TopicAuthorizationFailed) || hidden.State != "" || len(hidden.Members) != 0 {
		t.Errorf("a group with a hidden topic is described as %+v", hidden)
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
