package protocol

import "strconv"

// APIKey is the number that names a request on the wire.
type APIKey int16

// Scope says on which kind of listener an API is served.
type Scope uint8

// The listener kinds of the API table.
const (
	OnBroker Scope = 1 << iota
	OnController
)

// API is one row of the API table of Apache Kafka 4.4.0: what a drop-in may
// advertise, never what this build serves (that is the api package's registry).
type API struct {
	Key        APIKey
	Name       string
	MinVersion int16
	MaxVersion int16 // highest stable version
	Scope      Scope
	Forwarded  bool  // a broker forwards it to the active controller
	Flexible   int16 // first version with compact encoding and tagged fields; -1 if none
}

// The keys of Apache Kafka 4.4.0.
const (
	Produce                               APIKey = 0
	Fetch                                 APIKey = 1
	ListOffsets                           APIKey = 2
	Metadata                              APIKey = 3
	OffsetCommit                          APIKey = 8
	OffsetFetch                           APIKey = 9
	FindCoordinator                       APIKey = 10
	JoinGroup                             APIKey = 11
	Heartbeat                             APIKey = 12
	LeaveGroup                            APIKey = 13
	SyncGroup                             APIKey = 14
	DescribeGroups                        APIKey = 15
	ListGroups                            APIKey = 16
	SaslHandshake                         APIKey = 17
	ApiVersions                           APIKey = 18
	CreateTopics                          APIKey = 19
	DeleteTopics                          APIKey = 20
	DeleteRecords                         APIKey = 21
	InitProducerId                        APIKey = 22
	OffsetForLeaderEpoch                  APIKey = 23
	AddPartitionsToTxn                    APIKey = 24
	AddOffsetsToTxn                       APIKey = 25
	EndTxn                                APIKey = 26
	WriteTxnMarkers                       APIKey = 27
	TxnOffsetCommit                       APIKey = 28
	DescribeAcls                          APIKey = 29
	CreateAcls                            APIKey = 30
	DeleteAcls                            APIKey = 31
	DescribeConfigs                       APIKey = 32
	AlterConfigs                          APIKey = 33
	AlterReplicaLogDirs                   APIKey = 34
	DescribeLogDirs                       APIKey = 35
	SaslAuthenticate                      APIKey = 36
	CreatePartitions                      APIKey = 37
	CreateDelegationToken                 APIKey = 38
	RenewDelegationToken                  APIKey = 39
	ExpireDelegationToken                 APIKey = 40
	DescribeDelegationToken               APIKey = 41
	DeleteGroups                          APIKey = 42
	ElectLeaders                          APIKey = 43
	IncrementalAlterConfigs               APIKey = 44
	AlterPartitionReassignments           APIKey = 45
	ListPartitionReassignments            APIKey = 46
	OffsetDelete                          APIKey = 47
	DescribeClientQuotas                  APIKey = 48
	AlterClientQuotas                     APIKey = 49
	DescribeUserScramCredentials          APIKey = 50
	AlterUserScramCredentials             APIKey = 51
	Vote                                  APIKey = 52
	BeginQuorumEpoch                      APIKey = 53
	EndQuorumEpoch                        APIKey = 54
	DescribeQuorum                        APIKey = 55
	AlterPartition                        APIKey = 56
	UpdateFeatures                        APIKey = 57
	Envelope                              APIKey = 58
	FetchSnapshot                         APIKey = 59
	DescribeCluster                       APIKey = 60
	DescribeProducers                     APIKey = 61
	BrokerRegistration                    APIKey = 62
	BrokerHeartbeat                       APIKey = 63
	UnregisterBroker                      APIKey = 64
	DescribeTransactions                  APIKey = 65
	ListTransactions                      APIKey = 66
	AllocateProducerIds                   APIKey = 67
	ConsumerGroupHeartbeat                APIKey = 68
	ConsumerGroupDescribe                 APIKey = 69
	ControllerRegistration                APIKey = 70
	GetTelemetrySubscriptions             APIKey = 71
	PushTelemetry                         APIKey = 72
	AssignReplicasToDirs                  APIKey = 73
	ListConfigResources                   APIKey = 74
	DescribeTopicPartitions               APIKey = 75
	ShareGroupHeartbeat                   APIKey = 76
	ShareGroupDescribe                    APIKey = 77
	ShareFetch                            APIKey = 78
	ShareAcknowledge                      APIKey = 79
	AddRaftVoter                          APIKey = 80
	RemoveRaftVoter                       APIKey = 81
	UpdateRaftVoter                       APIKey = 82
	InitializeShareGroupState             APIKey = 83
	ReadShareGroupState                   APIKey = 84
	WriteShareGroupState                  APIKey = 85
	DeleteShareGroupState                 APIKey = 86
	ReadShareGroupStateSummary            APIKey = 87
	StreamsGroupHeartbeat                 APIKey = 88
	StreamsGroupDescribe                  APIKey = 89
	DescribeShareGroupOffsets             APIKey = 90
	AlterShareGroupOffsets                APIKey = 91
	DeleteShareGroupOffsets               APIKey = 92
	StreamsGroupTopologyDescriptionUpdate APIKey = 93
	UnregisterController                  APIKey = 94
)

// APIs lists every API of Apache Kafka 4.4.0 by ascending key.
var APIs = []API{
	{Produce, "Produce", 3, 13, OnBroker, false, 9},
	{Fetch, "Fetch", 4, 18, OnBroker | OnController, false, 12},
	{ListOffsets, "ListOffsets", 1, 11, OnBroker, false, 6},
	{Metadata, "Metadata", 0, 13, OnBroker, false, 9},
	{OffsetCommit, "OffsetCommit", 2, 10, OnBroker, false, 8},
	{OffsetFetch, "OffsetFetch", 1, 10, OnBroker, false, 6},
	{FindCoordinator, "FindCoordinator", 0, 6, OnBroker, false, 3},
	{JoinGroup, "JoinGroup", 0, 9, OnBroker, false, 6},
	{Heartbeat, "Heartbeat", 0, 4, OnBroker, false, 4},
	{LeaveGroup, "LeaveGroup", 0, 5, OnBroker, false, 4},
	{SyncGroup, "SyncGroup", 0, 5, OnBroker, false, 4},
	{DescribeGroups, "DescribeGroups", 0, 6, OnBroker, false, 5},
	{ListGroups, "ListGroups", 0, 5, OnBroker, false, 3},
	{SaslHandshake, "SaslHandshake", 0, 1, OnBroker | OnController, false, -1},
	{ApiVersions, "ApiVersions", 0, 5, OnBroker | OnController, false, 3},
	{CreateTopics, "CreateTopics", 2, 7, OnBroker | OnController, true, 5},
	{DeleteTopics, "DeleteTopics", 1, 6, OnBroker | OnController, true, 4},
	{DeleteRecords, "DeleteRecords", 0, 2, OnBroker, false, 2},
	{InitProducerId, "InitProducerId", 0, 5, OnBroker, false, 2},
	{OffsetForLeaderEpoch, "OffsetForLeaderEpoch", 2, 4, OnBroker, false, 4},
	{AddPartitionsToTxn, "AddPartitionsToTxn", 0, 5, OnBroker, false, 3},
	{AddOffsetsToTxn, "AddOffsetsToTxn", 0, 4, OnBroker, false, 3},
	{EndTxn, "EndTxn", 0, 5, OnBroker, false, 3},
	{WriteTxnMarkers, "WriteTxnMarkers", 1, 2, OnBroker, false, 0},
	{TxnOffsetCommit, "TxnOffsetCommit", 0, 6, OnBroker, false, 3},
	{DescribeAcls, "DescribeAcls", 1, 3, OnBroker | OnController, false, 2},
	{CreateAcls, "CreateAcls", 1, 3, OnBroker | OnController, true, 2},
	{DeleteAcls, "DeleteAcls", 1, 3, OnBroker | OnController, true, 2},
	{DescribeConfigs, "DescribeConfigs", 1, 4, OnBroker | OnController, false, 4},
	{AlterConfigs, "AlterConfigs", 0, 2, OnBroker | OnController, true, 2},
	{AlterReplicaLogDirs, "AlterReplicaLogDirs", 1, 2, OnBroker, false, 2},
	{DescribeLogDirs, "DescribeLogDirs", 1, 5, OnBroker, false, 2},
	{SaslAuthenticate, "SaslAuthenticate", 0, 2, OnBroker | OnController, false, 2},
	{CreatePartitions, "CreatePartitions", 0, 3, OnBroker | OnController, true, 2},
	{CreateDelegationToken, "CreateDelegationToken", 1, 3, OnBroker | OnController, true, 2},
	{RenewDelegationToken, "RenewDelegationToken", 1, 2, OnBroker | OnController, true, 2},
	{ExpireDelegationToken, "ExpireDelegationToken", 1, 2, OnBroker | OnController, true, 2},
	{DescribeDelegationToken, "DescribeDelegationToken", 1, 3, OnBroker | OnController, false, 2},
	{DeleteGroups, "DeleteGroups", 0, 3, OnBroker, false, 2},
	{ElectLeaders, "ElectLeaders", 0, 2, OnBroker | OnController, true, 2},
	{IncrementalAlterConfigs, "IncrementalAlterConfigs", 0, 1, OnBroker | OnController, true, 1},
	{AlterPartitionReassignments, "AlterPartitionReassignments", 0, 1, OnBroker | OnController, true, 0},
	{ListPartitionReassignments, "ListPartitionReassignments", 0, 0, OnBroker | OnController, true, 0},
	{OffsetDelete, "OffsetDelete", 0, 0, OnBroker, false, -1},
	{DescribeClientQuotas, "DescribeClientQuotas", 0, 1, OnBroker, false, 1},
	{AlterClientQuotas, "AlterClientQuotas", 0, 1, OnBroker | OnController, true, 1},
	{DescribeUserScramCredentials, "DescribeUserScramCredentials", 0, 0, OnBroker | OnController, false, 0},
	{AlterUserScramCredentials, "AlterUserScramCredentials", 0, 0, OnBroker | OnController, true, 0},
	{Vote, "Vote", 0, 2, OnController, false, 0},
	{BeginQuorumEpoch, "BeginQuorumEpoch", 0, 1, OnController, false, 1},
	{EndQuorumEpoch, "EndQuorumEpoch", 0, 1, OnController, false, 1},
	{DescribeQuorum, "DescribeQuorum", 0, 2, OnBroker | OnController, true, 0},
	{AlterPartition, "AlterPartition", 2, 3, OnController, false, 0},
	{UpdateFeatures, "UpdateFeatures", 0, 2, OnBroker | OnController, true, 0},
	{Envelope, "Envelope", 0, 0, OnController, false, 0},
	{FetchSnapshot, "FetchSnapshot", 0, 1, OnController, false, 0},
	{DescribeCluster, "DescribeCluster", 0, 2, OnBroker | OnController, false, 0},
	{DescribeProducers, "DescribeProducers", 0, 0, OnBroker, false, 0},
	{BrokerRegistration, "BrokerRegistration", 0, 4, OnController, false, 0},
	{BrokerHeartbeat, "BrokerHeartbeat", 0, 2, OnController, false, 0},
	{UnregisterBroker, "UnregisterBroker", 0, 0, OnBroker | OnController, true, 0},
	{DescribeTransactions, "DescribeTransactions", 0, 0, OnBroker, false, 0},
	{ListTransactions, "ListTransactions", 0, 2, OnBroker, false, 0},
	{AllocateProducerIds, "AllocateProducerIds", 0, 0, OnController, true, 0},
	{ConsumerGroupHeartbeat, "ConsumerGroupHeartbeat", 0, 1, OnBroker, false, 0},
	{ConsumerGroupDescribe, "ConsumerGroupDescribe", 0, 1, OnBroker, false, 0},
	{ControllerRegistration, "ControllerRegistration", 0, 0, OnController, false, 0},
	{GetTelemetrySubscriptions, "GetTelemetrySubscriptions", 0, 0, OnBroker, false, 0},
	{PushTelemetry, "PushTelemetry", 0, 0, OnBroker, false, 0},
	{AssignReplicasToDirs, "AssignReplicasToDirs", 0, 0, OnController, false, 0},
	{ListConfigResources, "ListConfigResources", 0, 1, OnBroker, false, 0},
	{DescribeTopicPartitions, "DescribeTopicPartitions", 0, 0, OnBroker, false, 0},
	{ShareGroupHeartbeat, "ShareGroupHeartbeat", 1, 1, OnBroker, false, 0},
	{ShareGroupDescribe, "ShareGroupDescribe", 1, 1, OnBroker, false, 0},
	{ShareFetch, "ShareFetch", 1, 2, OnBroker, false, 0},
	{ShareAcknowledge, "ShareAcknowledge", 1, 2, OnBroker, false, 0},
	{AddRaftVoter, "AddRaftVoter", 0, 1, OnBroker | OnController, true, 0},
	{RemoveRaftVoter, "RemoveRaftVoter", 0, 0, OnBroker | OnController, true, 0},
	{UpdateRaftVoter, "UpdateRaftVoter", 0, 0, OnController, false, 0},
	{InitializeShareGroupState, "InitializeShareGroupState", 0, 0, OnBroker, false, 0},
	{ReadShareGroupState, "ReadShareGroupState", 0, 0, OnBroker, false, 0},
	{WriteShareGroupState, "WriteShareGroupState", 0, 1, OnBroker, false, 0},
	{DeleteShareGroupState, "DeleteShareGroupState", 0, 0, OnBroker, false, 0},
	{ReadShareGroupStateSummary, "ReadShareGroupStateSummary", 0, 1, OnBroker, false, 0},
	{StreamsGroupHeartbeat, "StreamsGroupHeartbeat", 0, 1, OnBroker, false, 0},
	{StreamsGroupDescribe, "StreamsGroupDescribe", 0, 1, OnBroker, false, 0},
	{DescribeShareGroupOffsets, "DescribeShareGroupOffsets", 0, 1, OnBroker, false, 0},
	{AlterShareGroupOffsets, "AlterShareGroupOffsets", 0, 0, OnBroker, false, 0},
	{DeleteShareGroupOffsets, "DeleteShareGroupOffsets", 0, 0, OnBroker, false, 0},
	{StreamsGroupTopologyDescriptionUpdate, "StreamsGroupTopologyDescriptionUpdate", 0, 0, OnBroker, false, 0},
	{UnregisterController, "UnregisterController", 0, 0, OnBroker | OnController, true, 0},
}

var apiByKey = func() map[APIKey]*API {
	byKey := make(map[APIKey]*API, len(APIs))
	for i := range APIs {
		byKey[APIs[i].Key] = &APIs[i]
	}
	return byKey
}()

// APIOf gives the row of a key, or nil for one that 4.4.0 does not know.
func APIOf(key APIKey) *API { return apiByKey[key] }

// String gives the API's name as in Kafka's schemas.
func (k APIKey) String() string {
	if api := APIOf(k); api != nil {
		return api.Name
	}
	return "APIKey(" + strconv.Itoa(int(k)) + ")"
}
