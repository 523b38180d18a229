package api

import (
	"errors"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// TestControllerWrites lets a broker live through the controller's listener, in
// every version of each API.
func TestControllerWrites(t *testing.T) {
	f := newTestCluster(t, nil)
	for version := int16(0); version <= 4; version++ {
		req := registration(1)
		req.Version, req.IncarnationID = version, [16]byte{1, byte(version)}
		if version < 2 {
			req.LogDirs = nil
		}
		resp := askOn[*kmsg.BrokerRegistrationResponse](f, controller, req)
		if version < 2 { // a cluster that knows directories wants them
			if protocol.ErrorCode(resp.ErrorCode) != protocol.InvalidRegistration {
				t.Errorf("registration version %d: %+v", version, resp)
			}
			continue
		}
		if resp.ErrorCode != 0 || resp.BrokerEpoch < 0 {
			t.Errorf("registration version %d: %+v", version, resp)
		}
	}
	b := f.image().Broker(1)
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrBrokerHeartbeatRequest()
		req.Version, req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset = version, 1, int64(b.Epoch), int64(b.Epoch)
		if resp := askOn[*kmsg.BrokerHeartbeatResponse](f, controller, req); resp.ErrorCode != 0 || resp.IsFenced || !resp.IsCaughtUp {
			t.Errorf("heartbeat version %d: %+v", version, resp)
		}
	}
	ids := kmsg.NewPtrAllocateProducerIDsRequest()
	ids.BrokerID, ids.BrokerEpoch = 1, int64(b.Epoch)
	for start := int64(0); start < 3000; start += 1000 {
		if resp := askOn[*kmsg.AllocateProducerIDsResponse](f, controller, ids); resp.ErrorCode != 0 || resp.ProducerIDStart != start || resp.ProducerIDLen != 1000 {
			t.Errorf("producer ids: %+v", resp)
		}
	}
	ids.BrokerEpoch++
	if resp := askOn[*kmsg.AllocateProducerIDsResponse](f, controller, ids); protocol.ErrorCode(resp.ErrorCode) != protocol.StaleBrokerEpoch {
		t.Errorf("a stale epoch: %+v", resp)
	}
	topic := f.create(newTopic("a", 1, 1))["a"]
	f.assign(1, int64(b.Epoch), [16]byte{0xd7}, topic)
	if got := f.image().Topic("a").Partition(0).Directory(1); got != (protocol.DirectoryID{0xd7}) {
		t.Errorf("directory %v", got)
	}
}

// controllerWrites are the requests that answer a failure by a code at the top.
func controllerWrites() []kmsg.Request {
	heartbeat := kmsg.NewPtrBrokerHeartbeatRequest()
	heartbeat.BrokerID = 1
	return []kmsg.Request{
		registration(1), heartbeat, kmsg.NewPtrControllerRegistrationRequest(),
		kmsg.NewPtrAllocateProducerIDsRequest(), kmsg.NewPtrAssignReplicasToDirsRequest(),
	}
}

func topCode(resp kmsg.Response) protocol.ErrorCode {
	return protocol.ErrorCode(reflect.ValueOf(resp).Elem().FieldByName("ErrorCode").Int())
}

func TestControllerWritesRefused(t *testing.T) {
	f := newTestCluster(t, nil)
	for _, req := range controllerWrites() {
		for _, err := range []error{protocol.NotController.Err(), errors.New("closed")} {
			f.failSubmitting(err)
			if got := topCode(f.exchange(controller, controller, req)); got != protocol.NotController {
				t.Errorf("%T, %v: %v", req, err, got)
			}
		}
		f.failSubmitting(nil)
		f.handler.node.Authorize = nobody{}
		if got := topCode(f.exchange(controller, controller, req)); got != protocol.ClusterAuthorizationFailed {
			t.Errorf("%T without rights: %v", req, got)
		}
		f.handler.node.Authorize = Permissive{}
	}
	if f.image().BrokerCount() != 0 {
		t.Error("something happened all the same")
	}
}

// nobody is an authorizer that allows nothing.
type nobody struct{}

func (nobody) Allowed(Requester, kmsg.ACLOperation, kmsg.ACLResourceType, string) bool { return false }

func (nobody) AllowedAny(Requester, kmsg.ACLOperation, kmsg.ACLResourceType) bool { return false }

// An error response can be made of every request of every API here, in the form of
// its version, and says the code somewhere.
func TestErrorResponseOfEveryRequest(t *testing.T) {
	for _, row := range Registry() {
		if row.Key == protocol.Produce || row.Key == protocol.Fetch {
			continue // their own handlers know every partition
		}
		for version := row.MinVersion; version <= row.MaxVersion; version++ {
			req := kmsg.RequestForKey(int16(row.Key))
			req.SetVersion(version)
			fillTopics(req)
			resp := errorResponse(req, protocol.NotController.Err())
			if resp.GetVersion() != version || resp.Key() != int16(row.Key) {
				t.Errorf("%s %d: a response to %d %d", row.Key, version, resp.Key(), resp.GetVersion())
			}
			if !says(reflect.ValueOf(resp), int64(protocol.NotController)) {
				t.Errorf("%s %d: the code is nowhere in %+v", row.Key, version, resp)
			}
		}
	}
}

// fillTopics puts one item into requests whose responses speak of items only.
func fillTopics(req kmsg.Request) {
	name := "a"
	switch req := req.(type) {
	case *kmsg.MetadataRequest:
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	case *kmsg.CreateTopicsRequest:
		req.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name}}
	case *kmsg.DeleteTopicsRequest:
		req.TopicNames, req.Topics = []string{name}, []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
	case *kmsg.CreatePartitionsRequest:
		req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name}}
	case *kmsg.OffsetCommitRequest:
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: name, Partitions: make([]kmsg.OffsetCommitRequestTopicPartition, 1)}}
	case *kmsg.OffsetFetchRequest:
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: name, Partitions: make([]int32, 1)}}
		req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: name}}
	case *kmsg.ConsumerGroupDescribeRequest:
		req.Groups = []string{name}
	case *kmsg.AlterReplicaLogDirsRequest:
		req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: name, Partitions: make([]int32, 1)}}}}
	case *kmsg.DescribeGroupsRequest:
		req.Groups = []string{name}
	case *kmsg.DeleteGroupsRequest:
		req.Groups = []string{name}
	case *kmsg.DescribeConfigsRequest:
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name}}
	case *kmsg.IncrementalAlterConfigsRequest:
		req.Resources = make([]kmsg.IncrementalAlterConfigsRequestResource, 1)
	case *kmsg.AlterConfigsRequest:
		req.Resources = make([]kmsg.AlterConfigsRequestResource, 1)
	case *kmsg.ElectLeadersRequest:
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: name, Partitions: make([]int32, 1)}}
	case *kmsg.DescribeProducersRequest:
		req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: name, Partitions: make([]int32, 1)}}
	case *kmsg.DescribeTopicPartitionsRequest:
		req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: name}}
	case *kmsg.ListOffsetsRequest:
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: name, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{}}}}
	case *kmsg.DeleteRecordsRequest:
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{}}}}
	case *kmsg.AddPartitionsToTxnRequest:
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: name, Partitions: make([]int32, 1)}}
	case *kmsg.TxnOffsetCommitRequest:
		req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: name, Partitions: make([]kmsg.TxnOffsetCommitRequestTopicPartition, 1)}}
	case *kmsg.DescribeTransactionsRequest:
		req.TransactionalIDs = []string{name}
	case *kmsg.WriteTxnMarkersRequest:
		req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: name, Partitions: make([]int32, 1)}}}}
	case *kmsg.OffsetForLeaderEpochRequest:
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: name, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{}}}}
	}
}

// says looks for an ErrorCode of the value in a message.
func says(v reflect.Value, code int64) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && says(v.Elem(), code)
	case reflect.Slice:
		for i := range v.Len() {
			if says(v.Index(i), code) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Name == "ErrorCode" && v.Field(i).Int() == code || field.IsExported() && says(v.Field(i), code) {
				return true
			}
		}
	}
	return false
}

// Of corners that Apache Kafka has: an election of an unknown kind among no partitions, a change of no reassignments, and settings
// that come back as they were written.
func TestControllerAnswersLikeKafka(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.Version, elect.ElectionType, elect.Topics = 2, 2, []kmsg.ElectLeadersRequestTopic{}
	if resp := ask[*kmsg.ElectLeadersResponse](f, elect); resp.ErrorCode != 0 {
		t.Errorf("no election: %+v", resp)
	}
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "a", Partitions: []int32{0}}}
	if resp := ask[*kmsg.ElectLeadersResponse](f, elect); protocol.ErrorCode(resp.ErrorCode) != protocol.InvalidRequest {
		t.Errorf("an unknown election: %+v", resp)
	}
	reassign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	if resp := ask[*kmsg.AlterPartitionAssignmentsResponse](f, reassign); resp.ErrorCode != 0 || resp.ErrorMessage == nil || *resp.ErrorMessage != "" {
		t.Errorf("no reassignment: %+v", resp)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 7
	topic := newTopic("a", 1, 1)
	topic.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "cleanup.policy", Value: kmsg.StringPtr("delete,delete")}}
	create.Topics = append(create.Topics, topic)
	for _, setting := range ask[*kmsg.CreateTopicsResponse](f, create).Topics[0].Configs {
		if setting.Name == "cleanup.policy" && deref(setting.Value) != "delete,delete" {
			t.Errorf("%s is %q", setting.Name, deref(setting.Value))
		}
	}
}
