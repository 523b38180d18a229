package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/server"
)

func coordinator(version int16, kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType = kind
	if version < findsManyFrom {
		req.CoordinatorKey = keys[0]
	} else {
		req.CoordinatorKeys = keys
	}
	return req
}

// found gives the first coordinator of a response, whatever the version.
func found(resp *kmsg.FindCoordinatorResponse) (codeOf, kmsg.FindCoordinatorResponseCoordinator) {
	if resp.Version >= findsManyFrom {
		return codeOf(resp.Coordinators[0].ErrorCode), resp.Coordinators[0]
	}
	return codeOf(resp.ErrorCode), kmsg.FindCoordinatorResponseCoordinator{NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port}
}

// BEHAVIOUR 100: the first who asks has the topic created, once, in Kafka's form.
func TestFindCoordinatorCreatesTheTopic(t *testing.T) {
	f := newFixture(t)
	f.controller = func(req kmsg.Request) (kmsg.Response, error) { return req.ResponseKind(), nil }
	p := f.connect()
	versions(t, protocol.FindCoordinator, func(t *testing.T, version int16) {
		code, none := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(version, groupCoordinator, "g"), version))
		if code != protocol.CoordinatorNotAvailable || none.NodeID != -1 || none.Host != "" || none.Port != -1 {
			t.Errorf("%v, %+v", code, none)
		}
	})
	asked := f.asked[0].(*kmsg.CreateTopicsRequest)
	if len(asked.Topics) != 1 {
		t.Fatalf("%d topics", len(asked.Topics))
	}
	topic := asked.Topics[0]
	if topic.Topic != protocol.ConsumerOffsetsTopic || topic.NumPartitions != 50 || topic.ReplicationFactor != 1 {
		t.Errorf("%+v", topic)
	}
	configs := map[string]string{}
	for _, c := range topic.Configs {
		configs[c.Name] = *c.Value
	}
	if len(configs) != 3 || configs["cleanup.policy"] != "compact" || configs["compression.type"] != "producer" || configs["segment.bytes"] != "104857600" {
		t.Errorf("created with %v", configs)
	}
}

// While a creation is on its way it is not begun again; when it failed, it is.
func TestFindCoordinatorCreatesOnce(t *testing.T) {
	f := newFixture(t, withProperty("offsets.topic.num.partitions", "7"), func(n *Node) { n.Forward = nil })
	var pending []func(kmsg.Response, error)
	f.handler.node.Forward = func(_ kmsg.Request, done func(kmsg.Response, error)) { pending = append(pending, done) }
	p := f.connect()
	ask := func() {
		_ = request[*kmsg.FindCoordinatorResponse](p, coordinator(4, groupCoordinator, "a", "b"), 4)
	}
	ask()
	ask()
	if len(pending) != 1 {
		t.Fatalf("%d creations for two requests", len(pending))
	}
	pending[0](nil, errNoController)
	ask()
	if len(pending) != 2 {
		t.Errorf("%d creations after the first failed", len(pending))
	}
}

func TestFindCoordinator(t *testing.T) {
	f := newFixture(t)
	f.coordinate()
	f.coordinateTransactions()
	p := f.connect()
	versions(t, protocol.FindCoordinator, func(t *testing.T, version int16) {
		for _, id := range []string{"g", ""} {
			code, at := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(version, groupCoordinator, id), version))
			if code != protocol.None || at.NodeID != 1 || at.Host != "external-1" || at.Port != 9092 {
				t.Errorf("%q: %v, %+v", id, code, at)
			}
		}
		if version == 0 {
			return // knows groups only
		}
		code, at := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(version, transactionCoordinator, "tx"), version))
		if code != protocol.None || at.NodeID != 1 || at.Host != "external-1" {
			t.Errorf("of transactions: %v, %+v", code, at)
		}
		for _, kind := range []int8{9, -1, shareCoordinator} {
			code, none := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(version, kind, "k"), version))
			if code != protocol.InvalidRequest || none.NodeID != -1 {
				t.Errorf("kind %d: %v, %+v", kind, code, none)
			}
		}
	})
	inside := f.connectTo(server.Listener{Name: internalListener, Protocol: "PLAINTEXT", Scope: protocol.OnBroker})
	if _, at := found(request[*kmsg.FindCoordinatorResponse](inside, coordinator(4, groupCoordinator, "g"), 4)); at.Host != "internal-1" {
		t.Errorf("on another listener the coordinator is at %s", at.Host)
	}
	if len(f.asked) > 0 {
		t.Errorf("asked the controller: %v", f.asked)
	}
}

// A leader that is not there is no coordinator; one on another node is.
func TestFindCoordinatorFollowsTheLeader(t *testing.T) {
	f := newFixture(t)
	f.coordinate()
	p := f.connect()
	groups := groupsOnEachPartition()
	f.lead(groups[1], 2)
	f.lead(groups[2], protocol.NoNode)
	resp := request[*kmsg.FindCoordinatorResponse](p, coordinator(6, groupCoordinator, groups...), 6)
	want := []struct {
		code codeOf
		node int32
	}{{protocol.None, 1}, {protocol.None, 2}, {protocol.CoordinatorNotAvailable, -1}, {protocol.None, 1}}
	for i, c := range resp.Coordinators {
		if c.Key != groups[i] || codeOf(c.ErrorCode) != want[i].code || c.NodeID != want[i].node {
			t.Errorf("partition %d: %+v", i, c)
		}
	}
	f.fence(2)
	resp = request[*kmsg.FindCoordinatorResponse](p, coordinator(6, groupCoordinator, groups...), 6)
	if codeOf(resp.Coordinators[1].ErrorCode) != protocol.CoordinatorNotAvailable {
		t.Errorf("a fenced coordinator: %+v", resp.Coordinators[1])
	}
}

func TestFindCoordinatorAuthorized(t *testing.T) {
	authorizer := deny("secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.controller = func(req kmsg.Request) (kmsg.Response, error) { return req.ResponseKind(), nil }
	p := f.connect()
	for kind, want := range map[int8]codeOf{groupCoordinator: protocol.GroupAuthorizationFailed, transactionCoordinator: protocol.TransactionalIDAuthorizationFailed} {
		if code, _ := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(4, kind, "secret"), 4)); code != want {
			t.Errorf("kind %d: %v", kind, code)
		}
		if kind == groupCoordinator && len(f.asked) > 0 {
			t.Error("the topic was created for somebody who may not ask")
		}
	}
	if !authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, "secret") ||
		!authorizer.wasAsked(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTransactionalId, "secret") {
		t.Errorf("asked: %v", authorizer.asked)
	}
	authorizer.names[clusterResource] = true
	if code, _ := found(request[*kmsg.FindCoordinatorResponse](p, coordinator(6, shareCoordinator, "g:id:0"), 6)); code != protocol.ClusterAuthorizationFailed {
		t.Errorf("a share group: %v", code)
	}
}

// A topic that somebody made with another number of partitions than configured
// works, and partitions that are added later move no group (BEHAVIOUR 38).
func TestGroupsStayOnTheirPartition(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.createOffsetsTopic(1)
	f.settle()
	p := f.connect()
	groups := groupsOnEachPartition()
	for _, g := range groups {
		p.commit(g, "orders", 7)
	}
	more := partitionRecord(topicID(protocol.ConsumerOffsetsTopic), 1, topicSpec{leader: 1, replicas: []protocol.NodeID{1}})
	f.write(more)
	f.settle()
	for _, g := range groups {
		resp := request[*kmsg.OffsetFetchResponse](p, askingFor(9, g, "orders", 0), 9)
		if _, offsets := offsetsIn(resp, 0); len(offsets) != 1 || offsets[0].offset != 7 {
			t.Errorf("%s: %v", g, offsets)
		}
	}
}

// Metadata creates the topic in the coordinator's form, too, as Apache Kafka does;
// the topics of coordinators that there are not it does not.
func TestMetadataCreatesTheOffsetsTopic(t *testing.T) {
	f := newFixture(t)
	f.controller = func(req kmsg.Request) (kmsg.Response, error) { return req.ResponseKind(), nil }
	ask := kmsg.NewPtrMetadataRequest()
	ask.AllowAutoTopicCreation = true
	for _, name := range []string{protocol.ConsumerOffsetsTopic, protocol.TransactionStateTopic, "__share_group_state"} {
		ask.Topics = append(ask.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	resp := request[*kmsg.MetadataResponse](f.connect(), ask, 12)
	for _, topic := range resp.Topics {
		if codeOf(topic.ErrorCode) != protocol.UnknownTopicOrPartition || !topic.IsInternal {
			t.Errorf("%+v", topic)
		}
	}
	if len(f.asked) != 1 {
		t.Fatalf("asked %d times", len(f.asked))
	}
	created := f.asked[0].(*kmsg.CreateTopicsRequest).Topics
	if len(created) != 2 || created[0].Topic != protocol.ConsumerOffsetsTopic || created[0].NumPartitions != 50 || len(created[0].Configs) != 3 ||
		created[1].Topic != protocol.TransactionStateTopic || created[1].NumPartitions != 50 || len(created[1].Configs) != 5 {
		t.Errorf("created %+v", created)
	}
}

// A node without coordinators neither tells of their APIs nor serves them.
func TestNoCoordinators(t *testing.T) {
	f := newFixture(t, func(n *Node) { n.Groups = nil })
	resp := request[*kmsg.ApiVersionsResponse](f.connect(), apiVersionsRequest(), 3)
	for _, k := range resp.ApiKeys {
		if find(registry, protocol.APIKey(k.ApiKey)).groups {
			t.Errorf("key %d is told", k.ApiKey)
		}
	}
	p := f.connect()
	p.send(coordinator(4, groupCoordinator, "g"), 4)
	p.expectClosed()
	ask := kmsg.NewPtrMetadataRequest()
	ask.AllowAutoTopicCreation = true
	ask.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(protocol.ConsumerOffsetsTopic)}}
	_ = request[*kmsg.MetadataResponse](f.connect(), ask, 12)
	if len(f.asked) > 0 {
		t.Errorf("asked the controller: %v", f.asked)
	}
}
