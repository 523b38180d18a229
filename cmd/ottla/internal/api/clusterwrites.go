package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// clusterWrite answers what administrators ask of the cluster as a whole, and the
// controller core decides alone. On a broker's listener it is forwarded, so that any
// broker takes it (KIP-590). The controller is asked in the newest version: its core
// knows no older ones.
func clusterWrite[R kmsg.Request](operation kmsg.ACLOperation, timeout func(req R) int32) func(c *call, req R) {
	return func(c *call, req R) {
		switch {
		case !c.mayCluster(operation):
			c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
			return
		case timeout != nil && timeout(req) <= 0: // as Kafka: over before it began
			c.reply(errorResponse(req, protocol.RequestTimedOut.Err()))
			return
		}
		req.SetVersion(protocol.APIOf(protocol.APIKey(req.Key())).MaxVersion)
		c.askController(req, func(resp kmsg.Response, err error) {
			if err != nil {
				resp = errorResponse(req, c.unreached(err))
			}
			c.reply(resp)
		})
	}
}

var (
	electLeaders                = clusterWrite(kmsg.ACLOperationAlter, func(req *kmsg.ElectLeadersRequest) int32 { return req.TimeoutMillis })
	alterPartitionReassignments = clusterWrite(kmsg.ACLOperationAlter, func(req *kmsg.AlterPartitionAssignmentsRequest) int32 { return req.TimeoutMillis })
	listPartitionReassignments  = clusterWrite[*kmsg.ListPartitionReassignmentsRequest](kmsg.ACLOperationDescribe, nil) // Kafka never looks at its timeout
	unregisterBroker            = clusterWrite[*kmsg.UnregisterBrokerRequest](kmsg.ACLOperationAlter, nil)
)

// updateFeatures finalizes other levels of features (KIP-584, KIP-778). Up to version
// 1 the answer names each of them again. Version 0 never goes down: it says so in a
// way that Kafka's controller does not read.
func updateFeatures(c *call, req *kmsg.UpdateFeaturesRequest) {
	if c.version == 0 {
		for i := range req.FeatureUpdates {
			req.FeatureUpdates[i].UpgradeType = 1
		}
	}
	if !c.mayCluster(kmsg.ACLOperationAlter) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	req.SetVersion(protocol.APIOf(protocol.UpdateFeatures).MaxVersion)
	c.askController(req, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(req, c.unreached(err))
		}
		if answer := resp.(*kmsg.UpdateFeaturesResponse); c.version < 2 && answer.ErrorCode == 0 {
			answer.Results = nil
			for _, asked := range req.FeatureUpdates {
				answer.Results = append(answer.Results, kmsg.UpdateFeaturesResponseResult{Feature: asked.Feature, ErrorMessage: kmsg.StringPtr("NONE")})
			}
		}
		c.reply(resp)
	})
}
