package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
)

// incrementalAlterConfigs changes single settings of topics, brokers, groups and
// subscriptions to clients' metrics (KIP-339).
func incrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest) {
	asks := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r := &req.Resources[i]
		a := &asks[i]
		a.kind, a.name, a.incremental, a.dry = r.ResourceType, r.ResourceName, true, req.ValidateOnly
		for _, one := range r.Configs {
			kind := config.AlterKind(one.Op)
			a.add(one.Name, kind, one.Value, kind != config.AlterDelete)
		}
	}
	rest := kmsg.NewPtrIncrementalAlterConfigsRequest()
	rest.Version, rest.ValidateOnly = protocol.APIOf(protocol.IncrementalAlterConfigs).MaxVersion, req.ValidateOnly
	c.alter(asks, alterer{
		rest: rest,
		ask:  func(i int) { rest.Resources = append(rest.Resources, req.Resources[i]) },
		read: func(resp kmsg.Response) []altered { return resp.(*kmsg.IncrementalAlterConfigsResponse).Resources },
		reply: func(all []altered) {
			resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
			resp.Resources = all
			c.reply(resp)
		},
	})
}

// alterConfigs replaces all settings of resources by those named: the way before
// KIP-339.
func alterConfigs(c *call, req *kmsg.AlterConfigsRequest) {
	asks := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r := &req.Resources[i]
		a := &asks[i]
		a.kind, a.name, a.dry = r.ResourceType, r.ResourceName, req.ValidateOnly
		for _, one := range r.Configs {
			a.add(one.Name, config.AlterSet, one.Value, true)
		}
	}
	rest := kmsg.NewPtrAlterConfigsRequest()
	rest.Version, rest.ValidateOnly = protocol.APIOf(protocol.AlterConfigs).MaxVersion, req.ValidateOnly
	c.alter(asks, alterer{
		rest: rest,
		ask:  func(i int) { rest.Resources = append(rest.Resources, req.Resources[i]) },
		read: func(resp kmsg.Response) (all []altered) {
			for _, one := range resp.(*kmsg.AlterConfigsResponse).Resources {
				all = append(all, altered(one))
			}
			return all
		},
		reply: func(all []altered) {
			resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
			for _, one := range all {
				resp.Resources = append(resp.Resources, kmsg.AlterConfigsResponseResource(one))
			}
			c.reply(resp)
		},
	})
}

// altered is the answer for one resource, which has the same fields in both
// responses.
type altered = kmsg.IncrementalAlterConfigsResponseResource

// alterer is what the two requests differ in.
type alterer struct {
	rest  kmsg.Request // to the controller
	ask   func(i int)  // adds the resource to it
	read  func(kmsg.Response) []altered
	reply func([]altered)
}

// alter judges what only this node can judge: its own settings, and its loggers,
// which no log keeps. The rest the controller decides.
func (c *call) alter(asks []alteration, how alterer) {
	answered := c.judgeAlterations(asks)
	for i := range asks {
		if !answered[i] {
			how.ask(i)
		}
	}
	finish := func(decided []altered) {
		var all []altered
		for i := range asks {
			switch {
			case !answered[i] && len(decided) > 0:
				all, decided = append(all, decided[0]), decided[1:]
			case !asks[i].again:
				all = append(all, refusedAlteration(asks[i].kind, asks[i].name, asks[i].err))
			}
		}
		how.reply(all)
	}
	if !slices.Contains(answered, false) {
		finish(nil)
		return
	}
	c.askController(how.rest, func(resp kmsg.Response, err error) {
		if err != nil {
			resp = errorResponse(how.rest, c.unreached(err))
		}
		finish(how.read(resp))
	})
}

func refusedAlteration(kind kmsg.ConfigResourceType, name string, err error) altered {
	answer := kmsg.NewIncrementalAlterConfigsResponseResource()
	answer.ResourceType, answer.ResourceName = kind, name
	answer.ErrorCode, answer.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	return answer
}

// alteration is what a request wants of one resource.
type alteration struct {
	kind        kmsg.ConfigResourceType
	name        string
	incremental bool
	dry         bool // nothing is to be changed
	changes     []config.Alteration
	nulls       []string // keys that lack a value
	err         error    // why it is refused here
	again       bool     // it is answered with an earlier one of the request
}

// add takes down a change of one key.
func (a *alteration) add(key string, kind config.AlterKind, value *string, needsValue bool) {
	if value == nil && needsValue {
		a.nulls = append(a.nulls, key)
	}
	a.changes = append(a.changes, config.Alteration{Name: key, Kind: kind, Value: deref(value)})
}

// judgeAlterations finds what is answered here, well or with an error.
func (c *call) judgeAlterations(asks []alteration) (answered []bool) {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	times := map[resource]int{}
	for i := range asks {
		times[resource{asks[i].kind, asks[i].name}]++
	}
	answered = make([]bool, len(asks))
	onController := c.request.Conn.Scope() == protocol.OnController
	refused := map[resource]bool{}
	for i := range asks {
		a := &asks[i]
		switch is := (resource{a.kind, a.name}); {
		case times[is] > 1 && onController: // told once (ControllerApis.scala)
			a.err, a.again = protocol.Errorf(protocol.InvalidRequest, "Duplicate resource."), refused[is]
			refused[is] = true
		case times[is] > 1:
			a.err = protocol.Errorf(protocol.InvalidRequest, "Each resource must appear at most once.")
		case onController:
			a.err = c.checkOnController(a)
		default:
			a.err = c.checkAlteration(a)
		}
		loggers := a.incremental && a.kind == kmsg.ConfigResourceTypeBrokerLogger
		if a.err == nil && !loggers {
			if right := configsRight(a.kind, a.name, kmsg.ACLOperationAlterConfigs); right.operation != 0 && !c.may(right.operation, right.kind, right.name) {
				a.err = right.denied.Err()
			}
		}
		answered[i] = a.err != nil || loggers
	}
	return answered
}

// checkOnController is what a controller's listener looks at before the controller
// decides (ControllerApis.scala).
func (c *call) checkOnController(a *alteration) error {
	switch a.kind {
	case kmsg.ConfigResourceTypeBrokerLogger:
		if a.incremental {
			return c.alterLoggers(a)
		}
		return protocol.Errorf(protocol.InvalidRequest, "Unexpected resource type BROKER_LOGGER.")
	case kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, clientMetricsResource, groupResource:
		return nil
	}
	return protocol.Errorf(protocol.UnsupportedVersion, "Unknown resource type %d.", a.kind)
}

// checkAlteration is what the broker that was asked looks at
// (ConfigAdminManager.preprocess).
func (c *call) checkAlteration(a *alteration) error {
	keys := map[string]bool{}
	for _, change := range a.changes {
		if keys[change.Name] {
			return protocol.Errorf(protocol.InvalidRequest, "Error due to duplicate config keys")
		}
		keys[change.Name] = true
	}
	if len(a.nulls) > 0 {
		return protocol.Errorf(protocol.InvalidRequest, "Null value not supported for : %s", strings.Join(a.nulls, ", "))
	}
	switch {
	case a.kind == kmsg.ConfigResourceTypeBrokerLogger && a.incremental:
		return c.alterLoggers(a)
	case a.kind == kmsg.ConfigResourceTypeBroker:
		return c.checkOwnSettings(a)
	case a.kind == kmsg.ConfigResourceTypeTopic || a.kind == clientMetricsResource || a.kind == groupResource:
		return nil
	}
	return protocol.Errorf(protocol.InvalidRequest, "Unknown resource type %d", a.kind)
}

// checkOwnSettings judges the run-time settings of this broker or of all.
func (c *call) checkOwnSettings(a *alteration) error {
	if a.name != "" {
		id, err := strconv.ParseInt(a.name, 10, 32)
		if err != nil {
			return protocol.Errorf(protocol.InvalidRequest, "Node id must be an integer, but it is: %s", a.name)
		}
		if protocol.NodeID(id) != c.ID {
			return protocol.Errorf(protocol.InvalidRequest, "Unexpected broker id, expected %d, but received %s", c.ID, a.name)
		}
	}
	image := c.Image()
	var current map[string]string
	if a.incremental {
		current = image.Config(metadata.BrokerConfig, a.name)
	}
	for _, change := range a.changes {
		if !change.Kind.Known() {
			return protocol.Errorf(protocol.InvalidRequest, "Unknown operations type %d", change.Kind)
		}
	}
	settings, err := config.AlterBroker(current, a.changes)
	if err != nil {
		return err
	}
	clusterDefaults, own := image.Config(metadata.BrokerConfig, ""), image.Config(metadata.BrokerConfig, strconv.Itoa(int(c.ID)))
	return c.Config.ValidateDynamic(settings, clusterDefaults, own, a.name != "")
}
