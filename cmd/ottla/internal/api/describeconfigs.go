package api

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol"
)

// The kinds of resources that kmsg has no names for.
const (
	clientMetricsResource kmsg.ConfigResourceType = 16
	groupResource         kmsg.ConfigResourceType = 32
)

// maxMentions is how often one request may name one resource. Kafka answers each
// mention; but a request of a few bytes a mention must not become a response without
// bound.
const maxMentions = 10

// maxUnbound is how many groups and subscriptions one request may name, for the same
// reason: they need not exist.
const maxUnbound = 10_000

// describeConfigs tells the configuration of topics and of this node, with where
// each value comes from. What may not be seen is told last, as Kafka does.
func describeConfigs(c *call, req *kmsg.DescribeConfigsRequest) {
	for _, asked := range req.Resources {
		if describeConfigsRight(asked).operation == 0 { // Kafka gives up the whole request
			c.reply(errorResponse(req, protocol.InvalidRequest.Err()))
			return
		}
	}
	d := configsDescriber{call: c, request: req, image: c.Image(), mentions: map[string]int{}}
	resp := kmsg.NewPtrDescribeConfigsResponse()
	var denied []kmsg.DescribeConfigsResponseResource
	for _, asked := range req.Resources {
		right := describeConfigsRight(asked)
		if !c.may(right.operation, right.kind, right.name) {
			denied = append(denied, refusedResource(asked, right.denied.Err()))
			continue
		}
		entries, err := d.entries(asked)
		if err != nil {
			refused := refusedResource(asked, err)
			refused.ErrorMessage = kmsg.StringPtr(deref(protocol.MessageOf(err))) // no sentence is "" here, as in Kafka
			resp.Resources = append(resp.Resources, refused)
			continue
		}
		resp.Resources = append(resp.Resources, d.resource(asked, entries))
	}
	resp.Resources = append(resp.Resources, denied...)
	c.reply(resp)
}

// right is what one must be allowed to, and what is said to those who are not.
type right struct {
	operation kmsg.ACLOperation
	kind      kmsg.ACLResourceType
	name      string
	denied    protocol.ErrorCode
}

func describeConfigsRight(asked kmsg.DescribeConfigsRequestResource) right {
	return configsRight(asked.ResourceType, asked.ResourceName, kmsg.ACLOperationDescribeConfigs)
}

// configsRight is the right to do something to the settings of a resource; the zero
// right for kinds that there are not.
func configsRight(kind kmsg.ConfigResourceType, name string, operation kmsg.ACLOperation) right {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		return right{operation, kmsg.ACLResourceTypeTopic, name, protocol.TopicAuthorizationFailed}
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, clientMetricsResource:
		return right{operation, kmsg.ACLResourceTypeCluster, clusterResource, protocol.ClusterAuthorizationFailed}
	case groupResource:
		return right{operation, kmsg.ACLResourceTypeGroup, name, protocol.GroupAuthorizationFailed}
	}
	return right{}
}

func refusedResource(asked kmsg.DescribeConfigsRequestResource, err error) kmsg.DescribeConfigsResponseResource {
	resource := kmsg.NewDescribeConfigsResponseResource()
	resource.ResourceType, resource.ResourceName = asked.ResourceType, asked.ResourceName
	resource.ErrorCode, resource.ErrorMessage = int16(protocol.CodeOf(err)), sentenceOf(err)
	if describeConfigsRight(asked).operation == 0 {
		resource.ResourceType = kmsg.ConfigResourceTypeUnknown
	}
	return resource
}

// configsDescriber makes the entries of one request.
type configsDescriber struct {
	*call
	request *kmsg.DescribeConfigsRequest
	image   *metadata.Image

	mentions map[string]int // of topics by name, of this broker as "/"
	unbound  int            // resources that need not exist
}

// mention counts a resource, and refuses it beyond the limit.
func (d *configsDescriber) mention(name string) error {
	if d.mentions[name]++; d.mentions[name] > maxMentions {
		return protocol.Errorf(protocol.InvalidRequest, "The request names one resource more than %d times.", maxMentions)
	}
	return nil
}

func (d *configsDescriber) entries(asked kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	clusterDefaults := d.image.Config(metadata.BrokerConfig, "")
	ownDynamic := d.image.Config(metadata.BrokerConfig, strconv.Itoa(int(d.ID)))
	switch asked.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if err := protocol.CheckTopicName(asked.ResourceName); err != nil {
			return nil, err
		}
		if d.image.Topic(asked.ResourceName) == nil {
			return nil, &protocol.Error{Code: protocol.UnknownTopicOrPartition}
		}
		if err := d.mention(asked.ResourceName); err != nil {
			return nil, err
		}
		overrides := d.image.Config(metadata.TopicConfig, asked.ResourceName)
		topic := config.ResolveTopic(asked.ResourceName, overrides, clusterDefaults, ownDynamic, d.Config)
		return config.DescribeTopic(topic, asked.ConfigNames), nil
	case kmsg.ConfigResourceTypeBroker:
		if err := d.mention("/"); err != nil {
			return nil, err
		}
		if asked.ResourceName == "" {
			return config.DescribeClusterDefaults(clusterDefaults, asked.ConfigNames), nil
		}
		if err := d.own(asked.ResourceName, " or empty string,"); err != nil {
			return nil, err
		}
		return config.DescribeBroker(d.Config, clusterDefaults, ownDynamic, asked.ConfigNames), nil
	case kmsg.ConfigResourceTypeBrokerLogger:
		if asked.ResourceName == "" {
			return nil, protocol.Errorf(protocol.InvalidRequest, "Broker id must not be empty")
		}
		if err := d.own(asked.ResourceName, ""); err != nil {
			return nil, err
		}
		return d.describeLoggers(asked.ConfigNames), nil
	}
	if d.unbound++; d.unbound > maxUnbound {
		return nil, protocol.Errorf(protocol.InvalidRequest, "The request names more than %d groups and client metrics subscriptions.", maxUnbound)
	}
	settings := d.image.Config(int8(asked.ResourceType), asked.ResourceName)
	if asked.ResourceType == clientMetricsResource {
		if asked.ResourceName == "" {
			return nil, protocol.Errorf(protocol.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return config.DescribeClientMetrics(settings, asked.ConfigNames), nil
	}
	if asked.ResourceName == "" {
		return nil, protocol.Errorf(protocol.InvalidRequest, "Group name must not be empty")
	}
	return config.DescribeGroup(settings, d.Config, clusterDefaults, ownDynamic, asked.ConfigNames), nil
}

// own tells whether a broker resource is this node, in Kafka's words if it is not.
// Its parser of integers takes a sign and leading zeros.
func (d *configsDescriber) own(name, orElse string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "Broker id must be an integer, but it is: %s", name)
	}
	if protocol.NodeID(id) != d.ID {
		return protocol.Errorf(protocol.InvalidRequest, "Unexpected broker id, expected %d%s but received %s", d.ID, orElse, name)
	}
	return nil
}

func (d *configsDescriber) resource(asked kmsg.DescribeConfigsRequestResource, entries []config.Entry) kmsg.DescribeConfigsResponseResource {
	resource := kmsg.NewDescribeConfigsResponseResource()
	resource.ResourceType, resource.ResourceName = asked.ResourceType, asked.ResourceName
	resource.ErrorMessage = kmsg.StringPtr("")
	for i := range entries {
		resource.Configs = append(resource.Configs, d.entry(&entries[i]))
	}
	return resource
}

func (d *configsDescriber) entry(e *config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	entry := kmsg.NewDescribeConfigsResponseResourceConfig()
	entry.Name, entry.Value, entry.ReadOnly, entry.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	entry.Source, entry.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	if d.request.IncludeSynonyms {
		for _, s := range e.Synonyms {
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			entry.ConfigSynonyms = append(entry.ConfigSynonyms, synonym)
		}
	}
	if d.request.IncludeDocumentation {
		entry.Documentation = &e.Doc
	}
	return entry
}
