package api

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

func clusterRequest(version int16, kind int8, fenced bool) *kmsg.DescribeClusterRequest {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version, req.EndpointType, req.IncludeFencedBrokers = version, kind, fenced
	return req
}

// Item 34 and KIP-919, KIP-1073.
func TestDescribeClusterBrokers(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(2, 1)
	f.register(registration(3)) // fenced
	for version := int16(0); version <= 2; version++ {
		for _, fenced := range []bool{false, true} {
			req := clusterRequest(version, 1, fenced && version == 2)
			req.IncludeClusterAuthorizedOperations = fenced
			resp := askOn[*kmsg.DescribeClusterResponse](f, other, req)
			want, operations := []int32{1, 2}, int32(-1<<31)
			if fenced {
				operations = 8096
			}
			if fenced && version == 2 {
				want = append(want, 3)
			}
			var ids []int32
			for _, b := range resp.Brokers {
				ids = append(ids, b.NodeID)
				if b.Port != 10092 || b.IsFenced != (b.NodeID == 3) || deref(b.Rack) == "" {
					t.Errorf("version %d: %+v", version, b)
				}
			}
			if resp.ErrorCode != 0 || resp.ErrorMessage != nil || resp.ClusterID != "cluster" || resp.EndpointType != 1 ||
				resp.ControllerID != 1 && resp.ControllerID != 2 || resp.ClusterAuthorizedOperations != operations || !slices.Equal(ids, want) {
				t.Errorf("version %d: %+v", version, resp)
			}
		}
	}
	f.handler.node.Authorize = allow()
	req := clusterRequest(2, 1, false)
	req.IncludeClusterAuthorizedOperations = true
	if resp := ask[*kmsg.DescribeClusterResponse](f, req); resp.ErrorCode != 0 || resp.ClusterAuthorizedOperations != 0 || len(resp.Brokers) != 2 {
		t.Errorf("without rights: %+v", resp)
	}
}

func TestDescribeClusterControllers(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for id := int32(2); id >= 1; id-- {
		req := kmsg.NewPtrControllerRegistrationRequest()
		req.ControllerID, req.IncarnationID = id, [16]byte{byte(id)}
		req.Listeners = []kmsg.ControllerRegistrationRequestListener{{Name: controller, Host: "c", Port: uint16(9093 + id)}}
		if resp := askOn[*kmsg.ControllerRegistrationResponse](f, controller, req); resp.ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
	}
	for _, version := range []int16{1, 2} {
		resp := askOn[*kmsg.DescribeClusterResponse](f, controller, clusterRequest(version, 2, version == 2))
		if resp.ErrorCode != 0 || resp.EndpointType != 2 || resp.ControllerID != 1 || resp.ClusterID != "cluster" || len(resp.Brokers) != 2 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		for i, c := range resp.Brokers {
			if int(c.NodeID) != i+1 || c.Host != "c" || c.Port != int32(9094+i) || c.Rack != nil {
				t.Errorf("version %d: %+v", version, c)
			}
		}
	}
	f.handler.node.ControllerID = nil
	if got := askOn[*kmsg.DescribeClusterResponse](f, controller, clusterRequest(1, 2, false)).ControllerID; got != -1 {
		t.Errorf("controller %d while nobody leads", got)
	}
}

func TestDescribeClusterAtTheWrongDoor(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for _, c := range []struct {
		listener string
		version  int16
		kind     int8
		code     protocol.ErrorCode
		text     string
	}{
		{plain, 1, 2, protocol.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"},
		{controller, 2, 1, protocol.MismatchedEndpointType, "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"},
		{controller, 0, 1, protocol.InvalidRequest, "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"},
		{plain, 2, 3, protocol.UnsupportedEndpointType, "Unsupported endpoint type 3"},
		{controller, 1, 0, protocol.UnsupportedEndpointType, "Unsupported endpoint type 0"},
	} {
		resp := askOn[*kmsg.DescribeClusterResponse](f, c.listener, clusterRequest(c.version, c.kind, false))
		if protocol.ErrorCode(resp.ErrorCode) != c.code || deref(resp.ErrorMessage) != c.text || len(resp.Brokers) != 0 || resp.ClusterID != "" {
			t.Errorf("%+v: %+v", c, resp)
		}
	}
}

func pageRequest(limit int32, names ...string) *kmsg.DescribeTopicPartitionsRequest {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = limit
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
	}
	return req
}

func from(req *kmsg.DescribeTopicPartitionsRequest, topic string, partition int32) *kmsg.DescribeTopicPartitionsRequest {
	req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: topic, Partition: partition}
	return req
}

// shape writes a page as a line: topics with their partitions or code, and the
// cursor after an arrow.
func shape(resp *kmsg.DescribeTopicPartitionsResponse) string {
	var line []byte
	for _, topic := range resp.Topics {
		line = append(line, deref(topic.Topic)...)
		if topic.ErrorCode != 0 {
			line = append(line, '!')
			line = append(line, protocol.ErrorCode(topic.ErrorCode).String()...)
		}
		line = append(line, '[')
		for _, p := range topic.Partitions {
			line = append(line, byte('0'+p.Partition))
		}
		line = append(line, "] "...)
	}
	if resp.NextCursor != nil {
		line = append(line, "-> "+resp.NextCursor.Topic...)
		line = append(line, ':', byte('0'+resp.NextCursor.Partition))
	}
	return string(line)
}

// Item 40. Each line is what 4.4.0 answered to the same request.
func TestDescribeTopicPartitionsPages(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("dp3", 1, 1), newTopic("dp1", 3, 1), newTopic("dp2", 2, 1))
	named := []string{"dp3", "dp1", "dp2"}
	const whole, refused = "dp1[012] dp2[01] dp3[0] ", "dp3!INVALID_REQUEST[] dp1!INVALID_REQUEST[] dp2!INVALID_REQUEST[] "
	for _, c := range []struct {
		title string
		req   *kmsg.DescribeTopicPartitionsRequest
		want  string
	}{
		{"all", pageRequest(2000), whole},
		{"named", pageRequest(2000, named...), whole},
		{"named twice", pageRequest(2000, "dp3", "dp3"), "dp3[0] "},
		{"missing", pageRequest(2000, "dp3", "nope", "a/b"), "a/b!INVALID_TOPIC_EXCEPTION[] dp3[0] nope!UNKNOWN_TOPIC_OR_PARTITION[] "},
		{"limit 4", pageRequest(4, named...), "dp1[012] dp2[0] -> dp2:1"},
		{"limit 3", pageRequest(3, named...), "dp1[012] -> dp2:0"},
		{"limit 2", pageRequest(2, "dp3", "dp1", "nope", "aaa"), "aaa!UNKNOWN_TOPIC_OR_PARTITION[] dp1[01] -> dp1:2"},
		{"limit 0", pageRequest(0, "dp1"), "dp1[0] -> dp1:1"},
		{"limit -1", pageRequest(-1, "dp1"), "dp1[0] -> dp1:1"},
		{"limit reached by the last", pageRequest(6, named...), whole},
		{"limit before a missing topic", pageRequest(3, "dp1", "nope"), "dp1[012] -> nope:0"},
		{"cursor", from(pageRequest(2000, named...), "dp1", 2), "dp1[2] dp2[01] dp3[0] "},
		{"cursor behind the last partition", from(pageRequest(2000, named...), "dp1", 3), "dp1[] dp2[01] dp3[0] "},
		{"cursor and limit", from(pageRequest(2, named...), "dp1", 1), "dp1[12] -> dp2:0"},
		{"cursor and limit that fits", from(pageRequest(2, "dp1"), "dp1", 1), "dp1[12] "},
		{"cursor of a missing topic", from(pageRequest(2000, "dp3", "nope"), "nope", 1), "nope!UNKNOWN_TOPIC_OR_PARTITION[] "},
		{"cursor in all", from(pageRequest(2000), "dp2", 1), "dp2[1] dp3[0] "},
		{"cursor in all at a deleted topic", from(pageRequest(2000), "dp15", 1), "dp2[01] dp3[0] "},
		{"cursor behind all", from(pageRequest(2000), "zzz", 1), ""},
		{"cursor below 0", from(pageRequest(2000, named...), "dp1", -1), refused},
		{"cursor not among the topics", from(pageRequest(2000, named...), "dp15", 0), refused},
	} {
		if got := shape(ask[*kmsg.DescribeTopicPartitionsResponse](f, c.req)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.title, got, c.want)
		}
	}
	small := newTestCluster(t, nil, "max.request.partition.size.limit=2")
	small.join(1)
	small.create(newTopic("a", 3, 1))
	if got := shape(ask[*kmsg.DescribeTopicPartitionsResponse](small, pageRequest(2000))); got != "a[01] -> a:2" {
		t.Errorf("the broker's own limit: %s", got)
	}
}

func TestDescribeTopicPartitionsTells(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	elsewhere := registration(2)
	elsewhere.Listeners = elsewhere.Listeners[:1]
	f.beat(2, f.register(elsewhere))
	id := f.create(assigned("a", 2, 1))["a"]
	topic := ask[*kmsg.DescribeTopicPartitionsResponse](f, pageRequest(10, "a")).Topics[0]
	if topic.TopicID != id || topic.IsInternal || topic.AuthorizedOperations != 3576 {
		t.Errorf("%+v", topic)
	}
	p := topic.Partitions[0]
	if p.ErrorCode != 0 || p.LeaderID != 2 || p.LeaderEpoch != 0 || !slices.Equal(p.Replicas, []int32{2, 1}) || !slices.Equal(p.ISR, []int32{2, 1}) || len(p.OfflineReplicas) != 0 {
		t.Errorf("%+v", p)
	}
	if p.EligibleLeaderReplicas == nil || p.LastKnownELR == nil {
		t.Error("lists that 4.4.0 gives as empty are null")
	}
	p = askOn[*kmsg.DescribeTopicPartitionsResponse](f, other, pageRequest(10, "a")).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || p.LeaderID != -1 || !slices.Equal(p.OfflineReplicas, []int32{2}) {
		t.Errorf("on a listener that the leader has not: %+v", p)
	}
}

func TestDescribeTopicPartitionsAuthorization(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	f.create(newTopic("seen", 1, 1), newTopic("hidden", 1, 1))
	f.handler.node.Authorize = allow("DESCRIBE seen", "DESCRIBE seennew")
	if got := shape(ask[*kmsg.DescribeTopicPartitionsResponse](f, pageRequest(10))); got != "seen[0] " {
		t.Errorf("all: %s", got)
	}
	want := "seen[0] seennew!UNKNOWN_TOPIC_OR_PARTITION[] a/b!TOPIC_AUTHORIZATION_FAILED[] hidden!TOPIC_AUTHORIZATION_FAILED[] nope!TOPIC_AUTHORIZATION_FAILED[] "
	resp := ask[*kmsg.DescribeTopicPartitionsResponse](f, pageRequest(10, "seen", "hidden", "nope", "seennew", "a/b"))
	if got := shape(resp); got != want {
		t.Errorf("named: %s", got)
	}
	for _, topic := range resp.Topics {
		if protocol.ErrorCode(topic.ErrorCode) == protocol.TopicAuthorizationFailed && (topic.TopicID != (protocol.TopicID{}) || topic.AuthorizedOperations != -1<<31) {
			t.Errorf("%+v", topic)
		}
	}
}
