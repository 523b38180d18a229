package api

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// API is one row of the registry: what this build serves of one request.
type API struct {
	Key        protocol.APIKey
	MinVersion int16
	MaxVersion int16
	Scope      protocol.Scope // the listeners that serve it
	groups     bool           // it needs the coordinators of groups
	txns       bool           // it needs the coordinators of transactions
	serve      func(c *call, req kmsg.Request)
}

// registry lists every API of this build by ascending key. The versions are those
// of Apache Kafka 4.4.0 (protocol.APIs) unless a row says less, and why.
var registry = []API{
	row(protocol.Produce, produce),
	row(protocol.Fetch, fetch).on(protocol.OnBroker), // on controllers: with a quorum of several nodes
	row(protocol.ListOffsets, listOffsets),
	row(protocol.Metadata, describeMetadata),
	row(protocol.OffsetCommit, commitOffsets).ofGroups(),
	row(protocol.OffsetFetch, fetchOffsets).ofGroups(),
	row(protocol.FindCoordinator, findCoordinator).ofGroups(),
	row(protocol.JoinGroup, joinGroup).ofGroups(),
	row(protocol.Heartbeat, heartbeat).ofGroups(),
	row(protocol.LeaveGroup, leaveGroup).ofGroups(),
	row(protocol.SyncGroup, syncGroup).ofGroups(),
	row(protocol.DescribeGroups, describeGroups).ofGroups(),
	row(protocol.ListGroups, listGroups).ofGroups(),
	row(protocol.SaslHandshake, saslHandshake),
	row(protocol.ApiVersions, apiVersions),
	row(protocol.CreateTopics, createTopics),
	row(protocol.DeleteTopics, deleteTopics),
	row(protocol.DeleteRecords, deleteRecords),
	row(protocol.InitProducerId, initProducerID),
	row(protocol.OffsetForLeaderEpoch, offsetForLeaderEpoch),
	row(protocol.AddPartitionsToTxn, addPartitionsToTxn).ofTransactions(),
	row(protocol.AddOffsetsToTxn, addOffsetsToTxn).ofTransactions().ofGroups(),
	row(protocol.EndTxn, endTxn).ofTransactions(),
	row(protocol.WriteTxnMarkers, writeTxnMarkers).ofTransactions(),
	row(protocol.TxnOffsetCommit, commitOffsetsInTxn).ofTransactions().ofGroups(),
	row(protocol.DescribeAcls, describeACLs),
	row(protocol.DescribeConfigs, describeConfigs),
	row(protocol.AlterConfigs, alterConfigs),
	row(protocol.AlterReplicaLogDirs, alterReplicaLogDirs),
	row(protocol.DescribeLogDirs, describeLogDirs),
	row(protocol.SaslAuthenticate, saslAuthenticate),
	row(protocol.CreatePartitions, createPartitions),
	row(protocol.DeleteGroups, deleteGroups).ofGroups(),
	row(protocol.ElectLeaders, electLeaders),
	row(protocol.IncrementalAlterConfigs, incrementalAlterConfigs),
	row(protocol.AlterPartitionReassignments, alterPartitionReassignments),
	row(protocol.ListPartitionReassignments, listPartitionReassignments),
	row(protocol.OffsetDelete, deleteOffsets).ofGroups(),
	row(protocol.DescribeClientQuotas, describeClientQuotas),
	row(protocol.DescribeUserScramCredentials, describeUserScramCredentials),
	row(protocol.DescribeQuorum, describeQuorum),
	row(protocol.UpdateFeatures, updateFeatures),
	row(protocol.DescribeCluster, describeCluster),
	row(protocol.DescribeProducers, describeProducers),
	row(protocol.BrokerRegistration, clusterAction[*kmsg.BrokerRegistrationRequest]),
	row(protocol.BrokerHeartbeat, clusterAction[*kmsg.BrokerHeartbeatRequest]),
	row(protocol.UnregisterBroker, unregisterBroker),
	row(protocol.DescribeTransactions, describeTransactions).ofTransactions(),
	row(protocol.ListTransactions, listTransactions).ofTransactions(),
	row(protocol.AllocateProducerIds, clusterAction[*kmsg.AllocateProducerIDsRequest]),
	row(protocol.ConsumerGroupHeartbeat, consumerGroupHeartbeat).ofGroups(),
	row(protocol.ConsumerGroupDescribe, consumerGroupDescribe).ofGroups(),
	row(protocol.ControllerRegistration, clusterAction[*kmsg.ControllerRegistrationRequest]),
	row(protocol.AssignReplicasToDirs, clusterAction[*kmsg.AssignReplicasToDirsRequest]),
	row(protocol.ListConfigResources, listConfigResources),
	row(protocol.DescribeTopicPartitions, describeTopicPartitions),
}

// row makes a row with all versions and listeners of Apache Kafka 4.4.0. The
// handler's type says which message it takes.
func row[R kmsg.Request](key protocol.APIKey, handler func(c *call, req R)) API {
	known := protocol.APIOf(key)
	return API{
		Key: key, MinVersion: known.MinVersion, MaxVersion: known.MaxVersion, Scope: known.Scope,
		serve: func(c *call, req kmsg.Request) { handler(c, req.(R)) },
	}
}

// on restricts a row to some kinds of listener.
func (a API) on(scope protocol.Scope) API {
	a.Scope &= scope
	return a
}

// ofGroups marks a row that a node without coordinators does not have.
func (a API) ofGroups() API {
	a.groups = true
	return a
}

// ofTransactions marks a row that a node without coordinators of transactions does
// not have.
func (a API) ofTransactions() API {
	a.txns = true
	return a
}

// tableOf gives the rows that a node has.
func tableOf(node *Node) []API {
	return slices.DeleteFunc(Registry(), func(a API) bool {
		return a.groups && node.Groups == nil || a.txns && node.Transactions == nil
	})
}

// advertised is the row as ApiVersions tells it. Produce is told from version 0 on
// though served from 3 on: librdkafka takes a higher minimum for a broker that
// knows no compression (KAFKA-18659).
func (a *API) advertised() kmsg.ApiVersionsResponseApiKey {
	told := kmsg.ApiVersionsResponseApiKey{ApiKey: int16(a.Key), MinVersion: a.MinVersion, MaxVersion: a.MaxVersion}
	if a.Key == protocol.Produce {
		told.MinVersion = 0
	}
	return told
}

// serves tells whether a request is served on a kind of listener.
func (a *API) serves(scope protocol.Scope, version int16) bool {
	return a.Scope&scope != 0 && a.MinVersion <= version && version <= a.MaxVersion
}

// Supported tells whether this build serves a version of an API on a kind of
// listener; it is what server.Options.Supported wants.
func Supported(scope protocol.Scope, key protocol.APIKey, version int16) bool {
	a := find(registry, key)
	return a != nil && a.serves(scope, version)
}

// Registry gives a copy of the table, by ascending key, for whoever shows it.
func Registry() []API { return slices.Clone(registry) }

func find(table []API, key protocol.APIKey) *API {
	at, found := slices.BinarySearchFunc(table, key, func(a API, key protocol.APIKey) int { return cmp.Compare(a.Key, key) })
	if !found {
		return nil
	}
	return &table[at]
}
