package api

import (
	"maps"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// softwareName is what a client may call itself (KIP-511).
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions tells what this listener serves, and the features by which clients
// choose (KIP-584). It needs no authorisation: it comes before authentication.
func apiVersions(c *call, req *kmsg.ApiVersionsRequest) {
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := checkApiVersions(c, req); err != protocol.None {
		resp.ErrorCode = int16(err)
		c.reply(resp)
		return
	}
	if c.version >= 3 {
		c.request.Conn.SetClientSoftware(req.ClientSoftwareName, req.ClientSoftwareVersion)
	}
	scope := c.request.Conn.Scope()
	for i := range c.handler.table {
		if a := &c.handler.table[i]; a.Scope&scope != 0 {
			if told := c.withController(a.advertised()); told.MinVersion <= told.MaxVersion {
				resp.ApiKeys = append(resp.ApiKeys, told)
			}
		}
	}
	c.addFeatures(resp)
	c.reply(resp)
}

// withController leaves of what a broker forwards the versions that the active controller serves too, as far as that is known: it may
// be older (DefaultApiVersionManager).
func (c *call) withController(told kmsg.ApiVersionsResponseApiKey) kmsg.ApiVersionsResponseApiKey {
	key := protocol.APIKey(told.ApiKey)
	if c.ControllerServes == nil || c.request.Conn.Scope() == protocol.OnController || !protocol.APIOf(key).Forwarded {
		return told
	}
	if lowest, highest, known := c.ControllerServes(key); known {
		told.MinVersion, told.MaxVersion = max(told.MinVersion, lowest), min(told.MaxVersion, highest)
	}
	return told
}

// checkApiVersions refuses a client that misnames itself (KIP-511) or that meant
// another node (KIP-1242).
func checkApiVersions(c *call, req *kmsg.ApiVersionsRequest) protocol.ErrorCode {
	if c.version < 3 {
		return protocol.None
	}
	if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
		return protocol.InvalidRequest
	}
	switch wanted := req.ClusterID; {
	case c.version < 5:
	case (wanted == nil) != (req.NodeID == int32(protocol.NoNode)): // both or neither
		return protocol.InvalidRequest
	case c.request.Conn.Scope() == protocol.OnController: // controllers do not look who was meant
	case wanted != nil && (*wanted != c.ClusterID || req.NodeID != int32(c.ID)):
		return protocol.RebootstrapRequired
	}
	return protocol.None
}

// addFeatures tells what is supported and what is finalized.
func (c *call) addFeatures(resp *kmsg.ApiVersionsResponse) {
	for _, name := range slices.Sorted(maps.Keys(c.Features)) {
		served := c.Features[name]
		if c.version < 4 && served.Min == 0 {
			continue // clients of 3.9 and older refuse a minimum of 0 (KAFKA-17011)
		}
		resp.SupportedFeatures = append(resp.SupportedFeatures, kmsg.ApiVersionsResponseSupportedFeature{
			Name: name, MinVersion: served.Min, MaxVersion: served.Max,
		})
	}
	image := c.Image()
	levels := c.finalizedFeatures(image)
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, kmsg.ApiVersionsResponseFinalizedFeature{
			Name: name, MinVersionLevel: levels[name], MaxVersionLevel: levels[name],
		})
	}
	resp.FinalizedFeaturesEpoch = int64(image.Provenance().Offset)
}

// apiVersionsUnsupported answers a version that there is not: version 0, and the
// range of ApiVersions alone, so that the client can ask again (KIP-511).
func apiVersionsUnsupported(c *call) {
	c.version = 0
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = int16(protocol.UnsupportedVersion)
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{c.handler.find(protocol.ApiVersions).advertised()}
	c.reply(resp)
}
