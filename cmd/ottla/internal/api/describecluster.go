package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// What a DescribeCluster asks for, from version 1 on (KIP-919).
const (
	brokerEndpoints     int8 = 1
	controllerEndpoints int8 = 2
)

// describeCluster tells the brokers on a broker's listener, and the controllers on
// a controller's; whoever asks for the others came to the wrong door.
func describeCluster(c *call, req *kmsg.DescribeClusterRequest) {
	wanted, here, name := req.EndpointType, brokerEndpoints, map[int8]string{brokerEndpoints: "BROKER", controllerEndpoints: "CONTROLLER"}
	if c.version == 0 {
		wanted = brokerEndpoints
	}
	if c.request.Conn.Scope() == protocol.OnController {
		here = controllerEndpoints
	}
	switch {
	case name[wanted] == "":
		c.reply(errorResponse(req, protocol.Errorf(protocol.UnsupportedEndpointType, "Unsupported endpoint type %d", wanted)))
		return
	case wanted != here && c.version == 0: // which does not know the code
		c.reply(errorResponse(req, protocol.Errorf(protocol.InvalidRequest,
			"The request was sent to an endpoint of type %s, but we wanted an endpoint of type %s", name[here], name[wanted])))
		return
	case wanted != here:
		c.reply(errorResponse(req, protocol.Errorf(protocol.MismatchedEndpointType,
			"The request was sent to an endpoint of type %s, but we wanted an endpoint of type %s", name[here], name[wanted])))
		return
	}
	image := c.Image()
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ClusterID, resp.EndpointType = c.ClusterID, here
	if here == brokerEndpoints {
		resp.ControllerID, resp.Brokers = c.anyLiveBroker(image), c.clusterBrokers(image, c.version >= 2 && req.IncludeFencedBrokers)
	} else {
		resp.ControllerID, resp.Brokers = c.activeController(), c.clusterControllers(image)
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = c.clusterOperations()
	}
	c.reply(resp)
}

// activeController is the leader of the quorum, -1 while there is none.
func (c *call) activeController() int32 {
	if c.ControllerID == nil {
		return int32(protocol.NoNode)
	}
	return int32(c.ControllerID())
}

// clusterBrokers gives the brokers that have the request's listener, by id.
func (c *call) clusterBrokers(image *metadata.Image, fenced bool) []kmsg.DescribeClusterResponseBroker {
	var brokers []kmsg.DescribeClusterResponseBroker
	for b := range image.Brokers() {
		if at := b.Endpoint(c.listener()); at != nil && (fenced || !b.Fenced) {
			broker := kmsg.NewDescribeClusterResponseBroker()
			broker.NodeID, broker.Host, broker.Port, broker.Rack, broker.IsFenced = int32(b.ID), at.Host, int32(at.Port), b.Rack, b.Fenced
			brokers = append(brokers, broker)
		}
	}
	return brokers
}

// clusterControllers gives the registered controllers that have the request's
// listener, by id.
func (c *call) clusterControllers(image *metadata.Image) []kmsg.DescribeClusterResponseBroker {
	var controllers []kmsg.DescribeClusterResponseBroker
	for registered := range image.Controllers() {
		if at := registered.Endpoint(c.listener()); at != nil {
			controller := kmsg.NewDescribeClusterResponseBroker()
			controller.NodeID, controller.Host, controller.Port = int32(registered.ID), at.Host, int32(at.Port)
			controllers = append(controllers, controller)
		}
	}
	return controllers
}
