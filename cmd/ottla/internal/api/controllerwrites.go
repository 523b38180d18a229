package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// clusterAction answers what nodes ask the active controller: BrokerRegistration,
// BrokerHeartbeat, ControllerRegistration, AllocateProducerIds and
// AssignReplicasToDirs. The controller core decides; a failure to decide is the
// response's own code.
func clusterAction[R kmsg.Request](c *call, req R) {
	if !c.mayCluster(kmsg.ACLOperationClusterAction) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	c.askController(req, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(req, c.unreached(err))
		}
		c.reply(resp)
	})
}
