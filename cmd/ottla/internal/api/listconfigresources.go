package api

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// listedResources are the kinds that can be listed, in Kafka's order.
var listedResources = []kmsg.ConfigResourceType{
	groupResource, clientMetricsResource, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeTopic,
}

// listConfigResources lists what DescribeConfigs can be asked about (KIP-1142):
// topics and brokers that there are, and groups and subscriptions to clients'
// metrics that have settings. Version 0 is for those subscriptions only.
func listConfigResources(c *call, req *kmsg.ListConfigResourcesRequest) {
	if !c.mayCluster(kmsg.ACLOperationDescribeConfigs) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	wanted := map[kmsg.ConfigResourceType]bool{}
	for _, kind := range req.ResourceTypes {
		if !slices.Contains(listedResources, kmsg.ConfigResourceType(kind)) {
			c.reply(errorResponse(req, protocol.UnsupportedVersion.Err()))
			return
		}
		wanted[kmsg.ConfigResourceType(kind)] = true
	}
	if c.version == 0 {
		wanted = map[kmsg.ConfigResourceType]bool{clientMetricsResource: true}
	}
	resp := kmsg.NewPtrListConfigResourcesResponse()
	for _, kind := range listedResources {
		if len(wanted) > 0 && !wanted[kind] {
			continue
		}
		for _, name := range c.configResources(c.Image(), kind) {
			resource := kmsg.NewListConfigResourcesResponseConfigResource()
			resource.Name, resource.Type = name, int8(kind)
			resp.ConfigResources = append(resp.ConfigResources, resource)
		}
	}
	c.reply(resp)
}

func (c *call) configResources(image *metadata.Image, kind kmsg.ConfigResourceType) (names []string) {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		for topic := range image.Topics() {
			names = append(names, topic.Name)
		}
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		for b := range image.Brokers() {
			if c.endpoint(image, b.ID) != nil {
				names = append(names, strconv.Itoa(int(b.ID)))
			}
		}
	default:
		for resource := range image.Configs() {
			if resource.Kind == int8(kind) {
				names = append(names, resource.Name)
			}
		}
	}
	return names
}
