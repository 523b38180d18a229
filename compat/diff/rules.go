package diff

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rule says what is right for one API.
type rule struct {
	variants []string // several kinds of right request
	// prepare is called before each case.
	prepare func(g *generated, variant string)
	// fill sets the fields of a request, which has its version, so that it is right.
	fill func(g *generated, req kmsg.Request, variant string)
	skip []string // fields, or Field=value, that are not changed
	// skipOnController is skip on the controller's listener. Apache Kafka resigns as controller over some of what it does not expect,
	// and what comes after is not to be compared.
	skipOnController []string
	late             bool // it changes what other cases see
}

// with makes a fill of one type of request.
func with[R kmsg.Request](fill func(g *generated, req R, variant string)) func(*generated, kmsg.Request, string) {
	return func(g *generated, req kmsg.Request, variant string) { fill(g, req.(R), variant) }
}

// rules are by API key. Not there, because they would end the only node's quorum or come with their feature: the requests between
// voters, AlterPartition, Envelope, FetchSnapshot, the voters' administration, share groups, streams groups.
var rules = map[int16]rule{
	0: {fill: with(func(g *generated, r *kmsg.ProduceRequest, _ string) {
		*r = *g.producing(g.version, g.topic, 0, of("four").bytes())
	}), skip: []string{"TimeoutMillis"}},
	1: {fill: with(fillFetch), skip: []string{"MaxWaitMillis", "ReplicaState", "ID", "Epoch", "ReplicaDirectoryID", "HighWatermark"}},
	2: {fill: with(func(g *generated, r *kmsg.ListOffsetsRequest, variant string) {
		r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: g.topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
		if variant == "earliest" {
			r.Topics[0].Partitions[0].Timestamp, r.IsolationLevel = -2, 1
		}
	}), variants: []string{"latest", "earliest"}},
	3: {fill: with(func(g *generated, r *kmsg.MetadataRequest, variant string) {
		r.AllowAutoTopicCreation = false
		r.Topics = []kmsg.MetadataRequestTopic{{Topic: &g.topic}}
		if variant == "id" {
			r.Topics[0] = kmsg.MetadataRequestTopic{TopicID: g.idOf(g.topic)}
		}
	}), variants: []string{"name", "id"}, skip: []string{"AllowAutoTopicCreation", `Topic="gen-missing"`}},
	8: {fill: with(func(g *generated, r *kmsg.OffsetCommitRequest, _ string) {
		r.Group, r.Generation = "gen-group", -1
		addCommit(r, g.ids, g.version, g.topic, 1)
	}), skip: []string{`Group=""`}},
	9: {fill: with(func(g *generated, r *kmsg.OffsetFetchRequest, _ string) {
		r.Group, r.Topics = "gen-group", []kmsg.OffsetFetchRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "gen-group", MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: g.topic, TopicID: g.idOf(g.topic), Partitions: []int32{0}}}}}
	})},
	10: {fill: with(func(g *generated, r *kmsg.FindCoordinatorRequest, _ string) {
		r.CoordinatorKey, r.CoordinatorKeys = "gen-group", []string{"gen-group"}
	}), skip: []string{"CoordinatorType=1", "CoordinatorType=2"}},
	11: {fill: with(func(g *generated, r *kmsg.JoinGroupRequest, _ string) {
		r.Group, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.MemberID, r.ProtocolType = "join-"+g.unique, 10_000, 10_000, "", "consumer"
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("x")}}
	}), skip: []string{"RebalanceTimeoutMillis", `Group="gen-other"`, `Group="a b"`, `Group="1"`}},
	12: {fill: with(func(g *generated, r *kmsg.HeartbeatRequest, _ string) {
		r.Group, r.MemberID, r.Generation = "gen-group", "nobody", 1
	})},
	13: {fill: with(func(g *generated, r *kmsg.LeaveGroupRequest, _ string) {
		r.Group, r.MemberID, r.Members = "gen-group", "nobody", []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}}
	})},
	14: {fill: with(func(g *generated, r *kmsg.SyncGroupRequest, _ string) {
		r.Group, r.MemberID, r.Generation, r.ProtocolType, r.Protocol = "gen-group", "nobody", 1, kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: "nobody", MemberAssignment: []byte("x")}}
	})},
	15: {fill: with(func(g *generated, r *kmsg.DescribeGroupsRequest, _ string) { r.Groups = []string{"gen-group"} })},
	16: {fill: with(func(g *generated, r *kmsg.ListGroupsRequest, _ string) {
		r.StatesFilter, r.TypesFilter = []string{"Dead"}, []string{"classic"}
	})},
	17: {fill: with(func(g *generated, r *kmsg.SASLHandshakeRequest, _ string) { r.Mechanism = "PLAIN" })},
	18: {fill: with(func(g *generated, r *kmsg.ApiVersionsRequest, _ string) {
		r.ClientSoftwareName, r.ClientSoftwareVersion = "teller", "1"
	})},
	19: {fill: with(fillCreateTopics), skip: []string{"TimeoutMillis"}},
	20: {
		prepare: func(g *generated, _ string) { g.setUp(1, "del-"+g.unique) },
		fill: with(func(g *generated, r *kmsg.DeleteTopicsRequest, variant string) {
			name := "del-" + g.unique
			r.TimeoutMillis, r.TopicNames = 10_000, []string{name}
			r.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
			if variant == "id" {
				r.Topics[0] = kmsg.DeleteTopicsRequestTopic{TopicID: g.idOf(name)}
			}
		}), variants: []string{"name", "id"}, skip: []string{"TimeoutMillis", `Topic="__consumer_offsets"`, `TopicNames[0]="__consumer_offsets"`},
	},
	21: {fill: with(func(g *generated, r *kmsg.DeleteRecordsRequest, _ string) {
		r.TimeoutMillis = 10_000
		r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: g.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 1}}}}
	}), skip: []string{"TimeoutMillis", `Topic="__consumer_offsets"`}},
	22: {prepare: func(g *generated, _ string) { g.producersReady() }, fill: with(func(g *generated, r *kmsg.InitProducerIDRequest, _ string) {
		r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = 60_000, -1, -1
	}), skip: []string{`TransactionalID="gen-other"`, `TransactionalID="a b"`, `TransactionalID="1"`}},
	23: {fill: with(func(g *generated, r *kmsg.OffsetForLeaderEpochRequest, _ string) {
		r.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: g.topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1}}}}
	}), skip: []string{`Topic="__consumer_offsets"`}},
	24: {prepare: transactional, fill: with(func(g *generated, r *kmsg.AddPartitionsToTxnRequest, _ string) {
		r.TransactionalID, r.ProducerID, r.ProducerEpoch = g.transaction, g.producer, 0
		r.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
		r.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: g.transaction, ProducerID: g.producer, Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: g.topic, Partitions: []int32{0}}}}}
	}), skip: []string{"ProducerID=0", "ProducerID=1", "ProducerID=7"}},
	25: {prepare: transactional, fill: with(func(g *generated, r *kmsg.AddOffsetsToTxnRequest, _ string) {
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = g.transaction, g.producer, 0, "gen-group"
	}), skip: []string{"ProducerID=0", "ProducerID=1", "ProducerID=7"}},
	26: {prepare: func(g *generated, variant string) {
		transactional(g, variant)
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = g.transaction, g.producer, 0
		add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
		secret[*kmsg.AddPartitionsToTxnResponse](g.Teller, "setup", 3, add)
	}, fill: with(func(g *generated, r *kmsg.EndTxnRequest, _ string) {
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = g.transaction, g.producer, 0, true
	}), skip: []string{"ProducerID=0", "ProducerID=1", "ProducerID=7"}},
	27: {fill: with(func(g *generated, r *kmsg.WriteTxnMarkersRequest, _ string) {
		r.Markers = []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 9000, Committed: true, Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: g.topic, Partitions: []int32{0}}}}}
	}), skip: []string{`Topic="__consumer_offsets"`, "CoordinatorEpoch=2147483647"}},
	28: {prepare: transactional, fill: with(func(g *generated, r *kmsg.TxnOffsetCommitRequest, _ string) {
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group, r.Generation = g.transaction, g.producer, 0, "gen-group", -1
		r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: g.topic, TopicID: g.idOf(g.topic), Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 3, LeaderEpoch: -1}}}}
	}), skip: []string{"ProducerID=0", "ProducerID=1", "ProducerID=7"}},
	29: {fill: with(func(g *generated, r *kmsg.DescribeACLsRequest, _ string) {
		r.ResourceType, r.ResourcePatternType, r.Operation, r.PermissionType = 1, 1, 1, 1
	})},
	30: {fill: with(func(g *generated, r *kmsg.CreateACLsRequest, _ string) {
		r.Creations = []kmsg.CreateACLsRequestCreation{{ResourceType: 2, ResourceName: g.topic, ResourcePatternType: 3, Principal: "User:x", Host: "*", Operation: 3, PermissionType: 3}}
	})},
	31: {fill: with(func(g *generated, r *kmsg.DeleteACLsRequest, _ string) {
		r.Filters = []kmsg.DeleteACLsRequestFilter{{ResourceType: 2, ResourceName: &g.topic, ResourcePatternType: 3, Operation: 3, PermissionType: 3}}
	})},
	32: {fill: with(fillDescribeConfigs), variants: []string{"topic", "broker", "group", "metrics"}, skip: []string{"ConfigNames=null", `ResourceName="1"`, "ResourceType=8"}},
	33: {fill: with(func(g *generated, r *kmsg.AlterConfigsRequest, variant string) {
		r.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: 2, ResourceName: g.topic, Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: kmsg.StringPtr("86400000")}}}}
		otherResource(variant, &r.Resources[0].ResourceType, &r.Resources[0].ResourceName, &r.Resources[0].Configs[0].Name, &r.Resources[0].Configs[0].Value)
	}), variants: []string{"topic", "broker", "group"}},
	34: {
		fill: with(func(g *generated, r *kmsg.AlterReplicaLogDirsRequest, _ string) {
			r.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: g.directory(), Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: g.topic, Partitions: []int32{0}}}}}
		}),
	},
	35: {fill: with(func(g *generated, r *kmsg.DescribeLogDirsRequest, _ string) {
		r.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
	})},
	36: {fill: with(func(g *generated, r *kmsg.SASLAuthenticateRequest, _ string) { r.SASLAuthBytes = []byte("\x00a\x00b") })},
	37: {
		prepare: func(g *generated, _ string) { g.setUp(1, "add-"+g.unique) },
		fill: with(func(g *generated, r *kmsg.CreatePartitionsRequest, _ string) {
			r.TimeoutMillis = 10_000
			r.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "add-" + g.unique, Count: 2, Assignment: []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{1}}}}}
		}), skip: []string{"TimeoutMillis", `Topic="__consumer_offsets"`},
	},
	42: {prepare: func(g *generated, variant string) {
		if variant == "there" {
			secret[*kmsg.OffsetCommitResponse](g.Teller, "broker", 7, committing(g.ids, 7, "gone-"+g.unique, "", -1, g.topic, 1))
		}
	}, fill: with(func(g *generated, r *kmsg.DeleteGroupsRequest, variant string) {
		r.Groups = []string{"gen-unheard-of"}
		if variant == "there" {
			r.Groups[0] = "gone-" + g.unique
		}
	}), variants: []string{"", "there"}},
	43: {fill: with(func(g *generated, r *kmsg.ElectLeadersRequest, _ string) {
		r.TimeoutMillis, r.Topics = 10_000, []kmsg.ElectLeadersRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
	}), skip: []string{"Topics=null", "TimeoutMillis"}},
	44: {fill: with(func(g *generated, r *kmsg.IncrementalAlterConfigsRequest, variant string) {
		r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 2, ResourceName: g.topic, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: kmsg.StringPtr("86400000")}}}}
		c := &r.Resources[0].Configs[0]
		if variant == "list" {
			c.Name, c.Op, c.Value = "cleanup.policy", 2, kmsg.StringPtr("compact")
			return
		}
		otherResource(variant, &r.Resources[0].ResourceType, &r.Resources[0].ResourceName, &c.Name, &c.Value)
	}), variants: []string{"topic", "list", "broker", "group"}, skip: []string{"Op=-1", "Op=4", "Op=8", "Op=127", "Op=-128"}, skipOnController: []string{"Value=null"}},
	45: {fill: with(func(g *generated, r *kmsg.AlterPartitionAssignmentsRequest, _ string) {
		r.TimeoutMillis = 10_000
		r.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: g.topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: []int32{1}}}}}
	}), skip: []string{"TimeoutMillis"}},
	46: {fill: with(func(g *generated, r *kmsg.ListPartitionReassignmentsRequest, _ string) {
		r.TimeoutMillis, r.Topics = 10_000, []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
	}), skip: []string{"TimeoutMillis"}},
	47: {fill: with(func(g *generated, r *kmsg.OffsetDeleteRequest, _ string) {
		r.Group = "gen-group"
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: g.topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
	})},
	48: {fill: with(func(g *generated, r *kmsg.DescribeClientQuotasRequest, _ string) {
		r.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "client-id", MatchType: 0, Match: kmsg.StringPtr("gen-other")}}
	})},
	50: {fill: with(func(g *generated, r *kmsg.DescribeUserSCRAMCredentialsRequest, _ string) {
		r.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: "gen-user"}}
	})},
	55: {fill: with(func(g *generated, r *kmsg.DescribeQuorumRequest, _ string) {
		r.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: "__cluster_metadata", Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{}}}}
	})},
	57: {fill: with(func(g *generated, r *kmsg.UpdateFeaturesRequest, _ string) {
		r.TimeoutMillis, r.ValidateOnly = 10_000, true
		r.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1}}
	}), skip: []string{"TimeoutMillis"}},
	60: {fill: func(*generated, kmsg.Request, string) {}},
	61: {fill: with(func(g *generated, r *kmsg.DescribeProducersRequest, _ string) {
		r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
	}), skip: []string{`Topic="__consumer_offsets"`}},
	62: {fill: with(fillRegistration), late: true, skipOnController: []string{"Listeners=twice", `Name=""`, `Name="a b"`, "Host", "SecurityProtocol"}},
	63: {fill: with(func(g *generated, r *kmsg.BrokerHeartbeatRequest, _ string) {
		r.BrokerID, r.BrokerEpoch, r.WantFence = 77, g.epoch(), true
	}), late: true, skip: []string{"BrokerID=1", "CurrentMetadataOffset", "WantFence", "CordonedLogDirs"}},
	64: {
		prepare: func(g *generated, _ string) { g.epoch() },
		fill:    with(func(g *generated, r *kmsg.UnregisterBrokerRequest, _ string) { r.BrokerID = 77 }), skip: []string{"BrokerID=1"}, late: true,
	},
	65: {fill: with(func(g *generated, r *kmsg.DescribeTransactionsRequest, _ string) {
		r.TransactionalIDs = []string{"gen-unheard-of"}
	})},
	66: {fill: with(func(g *generated, r *kmsg.ListTransactionsRequest, _ string) {
		r.StateFilters, r.ProducerIDFilters, r.DurationFilterMillis = []string{"Ongoing"}, []int64{1 << 40}, -1
	}), skip: []string{"ProducerIDFilters=null", "ProducerIDFilters=[]", "ProducerIDFilters[0]=0", "ProducerIDFilters[0]=1", "ProducerIDFilters[0]=7"}},
	67: {fill: with(func(g *generated, r *kmsg.AllocateProducerIDsRequest, _ string) {
		r.BrokerID, r.BrokerEpoch = 77, g.epoch()
	}), late: true},
	68: {fill: with(func(g *generated, r *kmsg.ConsumerGroupHeartbeatRequest, _ string) {
		r.Group, r.MemberID, r.RebalanceTimeoutMillis = "consumers-"+g.unique, "member of "+g.unique, 10_000
		r.SubscribedTopicNames, r.Topics = []string{g.topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}), skip: []string{`MemberID=""`, `Group="gen-other"`, `Group="a b"`, `Group="1"`}},
	69: {fill: with(func(g *generated, r *kmsg.ConsumerGroupDescribeRequest, _ string) { r.Groups = []string{"gen-group"} })},
	70: {fill: with(func(g *generated, r *kmsg.ControllerRegistrationRequest, _ string) {
		r.ControllerID, r.IncarnationID = 77, [16]byte{15: 7}
		r.Listeners = []kmsg.ControllerRegistrationRequestListener{{Name: "CONTROLLER", Host: "localhost", Port: 7}}
		r.Features = []kmsg.ControllerRegistrationRequestFeature{{Name: "metadata.version", MinSupportedVersion: 7, MaxSupportedVersion: 50}}
	}), skip: []string{"ControllerID=1", "Host", "SecurityProtocol"}, late: true},
	73: {fill: with(func(g *generated, r *kmsg.AssignReplicasToDirsRequest, _ string) {
		r.BrokerID, r.BrokerEpoch = 77, g.epoch()
		r.Directories = []kmsg.AssignReplicasToDirsRequestDirectory{{ID: [16]byte{15: 200}, Topics: []kmsg.AssignReplicasToDirsRequestDirectoryTopic{{TopicID: g.idOf(g.topic), Partitions: []kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{{}}}}}}
	}), late: true},
	74: {fill: with(func(g *generated, r *kmsg.ListConfigResourcesRequest, _ string) { r.ResourceTypes = []int8{16} }), skip: []string{"ResourceTypes=null", "ResourceTypes=[]", "ResourceTypes[0]=2"}},
	75: {fill: with(func(g *generated, r *kmsg.DescribeTopicPartitionsRequest, _ string) {
		r.Topics, r.ResponsePartitionLimit = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: g.topic}}, 2000
		r.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: g.topic, Partition: 1}
	}), skip: []string{"Topics=null", "Topics=[]"}},
}

func fillFetch(g *generated, r *kmsg.FetchRequest, _ string) {
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = 10, 1, 1<<20, -1
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes = 1 << 20
	partition.LogStartOffset = -1
	r.Topics = []kmsg.FetchRequestTopic{{Topic: g.topic, TopicID: g.idOf(g.topic), Partitions: []kmsg.FetchRequestTopicPartition{partition}}}
	r.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: g.topic, TopicID: g.idOf(g.topic), Partitions: []int32{1}}}
}

func fillCreateTopics(g *generated, r *kmsg.CreateTopicsRequest, _ string) {
	r.TimeoutMillis = 10_000
	r.Topics = []kmsg.CreateTopicsRequestTopic{{
		Topic: "made-" + g.unique, NumPartitions: -1, ReplicationFactor: -1,
		ReplicaAssignment: []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: []int32{1}}},
		Configs:           []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: kmsg.StringPtr("86400000")}},
	}}
	if g.version < 6 { // the settings of a topic are long; two versions tell them
		r.ValidateOnly = g.version == 5
	}
}

func fillDescribeConfigs(g *generated, r *kmsg.DescribeConfigsRequest, variant string) {
	resource := kmsg.DescribeConfigsRequestResource{ResourceType: 2, ResourceName: g.topic, ConfigNames: []string{"retention.ms", "cleanup.policy"}}
	switch variant {
	case "broker":
		resource = kmsg.DescribeConfigsRequestResource{ResourceType: 4, ResourceName: "1", ConfigNames: []string{"log.cleanup.policy", "num.io.threads", "node.id"}}
	case "group":
		resource = kmsg.DescribeConfigsRequestResource{ResourceType: 32, ResourceName: "gen-group", ConfigNames: []string{"consumer.session.timeout.ms"}}
	case "metrics":
		resource = kmsg.DescribeConfigsRequestResource{ResourceType: 16, ResourceName: "gen-metrics", ConfigNames: []string{"interval.ms"}}
	}
	r.Resources = []kmsg.DescribeConfigsRequestResource{resource}
	r.IncludeSynonyms = true
}

// otherResource turns the change of a topic's setting into that of something else's.
func otherResource(variant string, kind *kmsg.ConfigResourceType, name, key *string, value **string) {
	switch variant {
	case "broker":
		*kind, *name, *key, *value = 4, "1", "log.cleaner.threads", kmsg.StringPtr("2")
	case "group":
		*kind, *name, *key, *value = 32, "gen-settings", "consumer.session.timeout.ms", kmsg.StringPtr("50000")
	}
}

// directory is the node's log directory.
func (g *generated) directory() string {
	resp := secret[*kmsg.DescribeLogDirsResponse](g.Teller, "setup", 1, &kmsg.DescribeLogDirsRequest{})
	if resp == nil || len(resp.Dirs) == 0 {
		return "/none"
	}
	g.names[resp.Dirs[0].Dir] = "<directory>"
	return resp.Dirs[0].Dir
}

func fillRegistration(g *generated, r *kmsg.BrokerRegistrationRequest, _ string) {
	if g.cluster == "" {
		resp := secret[*kmsg.DescribeClusterResponse](g.Teller, "setup", 1, kmsg.NewPtrDescribeClusterRequest())
		if resp == nil {
			resp = secret[*kmsg.DescribeClusterResponse](g.Teller, "setup", 1, kmsg.NewPtrDescribeClusterRequest())
		}
		if resp != nil {
			g.cluster = resp.ClusterID
		}
	}
	r.BrokerID, r.ClusterID, r.IncarnationID, r.PreviousBrokerEpoch = 77, g.cluster, [16]byte{15: 7}, -1
	r.Listeners = []kmsg.BrokerRegistrationRequestListener{{Name: "PLAINTEXT", Host: "localhost", Port: 7}}
	r.LogDirs = [][16]byte{{15: 200}}
	for _, f := range []struct {
		name            string
		lowest, highest int16
	}{
		{"metadata.version", 7, 100},
		{"kraft.version", 0, 1},
		{"transaction.version", 0, 2},
		{"group.version", 0, 1},
		{"eligible.leader.replicas.version", 0, 1},
		{"share.version", 0, 2},
		{"streams.version", 0, 1},
	} {
		r.Features = append(r.Features, kmsg.BrokerRegistrationRequestFeature{Name: f.name, MinSupportedVersion: f.lowest, MaxSupportedVersion: f.highest})
	}
}

// epoch registers broker 77, which is nobody, and gives its epoch.
func (g *generated) epoch() int64 {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	fillRegistration(g, req, "")
	resp := secret[*kmsg.BrokerRegistrationResponse](g.Teller, "controller", 4, req)
	if resp == nil {
		return -1
	}
	return resp.BrokerEpoch
}

// producersReady waits until the broker has been given producer ids.
func (t *Teller) producersReady() {
	for range 400 {
		resp := secret[*kmsg.InitProducerIDResponse](t, "setup", 4, kmsg.NewPtrInitProducerIDRequest())
		if t.err != nil || resp != nil && resp.ErrorCode == 0 {
			return
		}
		pause()
	}
}

// transactional gives the case a transactional id and a producer of its own.
func transactional(g *generated, _ string) {
	g.transaction = "txn-" + g.unique
	var code int16
	for range 400 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &g.transaction, 60_000
		resp := secret[*kmsg.InitProducerIDResponse](g.Teller, "setup", 4, req)
		secret[*kmsg.FindCoordinatorResponse](g.Teller, "setup", 3, coordinatorOf(3, 1, g.transaction)) // who asks first has the topic made
		if resp != nil && resp.ErrorCode == 0 {
			g.producer = resp.ProducerID
			return
		}
		if g.err != nil {
			return
		}
		if resp != nil {
			code = resp.ErrorCode
		}
		pause()
	}
	g.fail(fmt.Errorf("no producer id for %s: error %d", g.transaction, code))
}
