package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// operationsOf lists what can be done to a resource (AclEntry.supportedOperations).
var operationsOf = map[kmsg.ACLResourceType][]kmsg.ACLOperation{
	kmsg.ACLResourceTypeTopic: {
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter,
		kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeGroup: {
		kmsg.ACLOperationRead, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs,
		kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeCluster: {
		kmsg.ACLOperationCreate, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationClusterAction,
		kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs, kmsg.ACLOperationIdempotentWrite,
	},
}

// authorizedOperations gives what the requester may do to a resource, as a set of
// bits by the operations' numbers (KIP-430).
func (c *call) authorizedOperations(kind kmsg.ACLResourceType, name string) int32 {
	var bits int32
	for _, operation := range operationsOf[kind] {
		if c.may(operation, kind, name) {
			bits |= 1 << operation
		}
	}
	return bits
}

// clusterOperations is authorizedOperations of the cluster, 0 for those who may not
// even describe it.
func (c *call) clusterOperations() int32 {
	if !c.mayCluster(kmsg.ACLOperationDescribe) {
		return 0
	}
	return c.authorizedOperations(kmsg.ACLResourceTypeCluster, clusterResource)
}
