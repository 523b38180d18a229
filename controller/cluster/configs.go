package cluster

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// minISR is the one setting that eligible leader replicas make the cluster's affair.
const minISR = "min.insync.replicas"

// configScopes maps the kinds of resources that the log keeps settings of.
var configScopes = map[int8]config.Scope{
	metadata.TopicConfig:         config.TopicScope,
	metadata.BrokerConfig:        config.BrokerScope,
	metadata.ClientMetricsConfig: config.ClientMetricsScope,
	metadata.GroupConfig:         config.GroupScope,
}

// incrementalAlterConfigs changes single settings of resources (KIP-339). One
// resource that is refused does not hinder the others; of one resource all
// changes are made or none.
func (c *Controller) incrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	var records []schema.MetadataRecord
	for i := range req.Resources {
		asked := &req.Resources[i]
		resource := metadata.ConfigResource{Kind: int8(asked.ResourceType), Name: asked.ResourceName}
		answer := kmsg.NewIncrementalAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = asked.ResourceType, asked.ResourceName
		made, err := c.alterations(resource, asked.Configs)
		if err == nil {
			err = c.checkAltered(resource, made)
		}
		if err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		} else {
			records = append(records, made...)
		}
		response.Resources = append(response.Resources, answer)
	}
	records, err := c.settled(records)
	if err != nil {
		for i := range response.Resources {
			response.Resources[i].ErrorCode, response.Resources[i].ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		}
	}
	if req.ValidateOnly || err != nil {
		records = nil
	}
	return c.result(response, records...)
}

// alterations makes the records of one resource's changes. Of a key that comes
// twice the last change counts, as in Kafka.
func (c *Controller) alterations(resource metadata.ConfigResource, asked []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]schema.MetadataRecord, *protocol.Error) {
	scope, current := configScopes[resource.Kind], c.image.Config(resource.Kind, resource.Name)
	var records []schema.MetadataRecord
	for i := range asked {
		a := config.Alteration{Name: asked[i].Name, Kind: config.AlterKind(asked[i].Op)}
		if asked[i].Value != nil {
			a.Value = *asked[i].Value
		}
		switch {
		case slices.ContainsFunc(asked[i+1:], func(later kmsg.IncrementalAlterConfigsRequestResourceConfig) bool { return later.Name == a.Name }):
			continue
		case a.Kind == config.AlterSet && asked[i].Value == nil: // a broker would have refused it
			a.Kind = config.AlterDelete
		case !a.Kind.Known() || a.Kind >= config.AlterAppend && asked[i].Value == nil:
			return nil, protocol.UnknownServerError.Err() // what brings Kafka's controller down
		case a.Kind >= config.AlterAppend && !config.IsList(scope, a.Name):
			return nil, protocol.Errorf(protocol.InvalidConfig, "Can't %s to key %s because its type is not LIST.", a.Kind, a.Name)
		}
		var own *string
		if value, ok := current[a.Name]; ok {
			own = &value
		}
		if next := a.Apply(scope, own); worthARecord(resource, own, next) {
			records = append(records, setting(resource, a.Name, next))
		}
	}
	return records, nil
}

// worthARecord tells changes. For brokers what is set again is written again, for
// what it names may have changed, as a key file (KAFKA-14136).
func worthARecord(resource metadata.ConfigResource, own, next *string) bool {
	if resource.Kind == metadata.BrokerConfig {
		return true
	}
	return (own == nil) != (next == nil) || own != nil && *own != *next
}

func setting(resource metadata.ConfigResource, name string, value *string) *schema.ConfigRecord {
	record := schema.NewConfigRecord()
	record.ResourceType, record.ResourceName, record.Name, record.Value = resource.Kind, resource.Name, name, value
	return record
}

// alterConfigs replaces all settings of resources: what is not named is removed.
func (c *Controller) alterConfigs(req *kmsg.AlterConfigsRequest) machine.Result {
	response := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	var records []schema.MetadataRecord
	for i := range req.Resources {
		asked := &req.Resources[i]
		resource := metadata.ConfigResource{Kind: int8(asked.ResourceType), Name: asked.ResourceName}
		answer := kmsg.NewAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = asked.ResourceType, asked.ResourceName
		made := c.replacements(resource, asked.Configs)
		if err := c.checkAltered(resource, made); err != nil {
			answer.ErrorCode, answer.ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		} else {
			records = append(records, made...)
		}
		response.Resources = append(response.Resources, answer)
	}
	records, err := c.settled(records)
	if err != nil {
		for i := range response.Resources {
			response.Resources[i].ErrorCode, response.Resources[i].ErrorMessage = int16(err.Code), protocol.MessageOf(err)
		}
	}
	if req.ValidateOnly || err != nil {
		records = nil
	}
	return c.result(response, records...)
}

func (c *Controller) replacements(resource metadata.ConfigResource, asked []kmsg.AlterConfigsRequestResourceConfig) []schema.MetadataRecord {
	current, next := c.image.Config(resource.Kind, resource.Name), map[string]*string{}
	for _, s := range asked {
		next[s.Name] = s.Value
	}
	var records []schema.MetadataRecord
	for _, name := range sortedNames(next) {
		var own *string
		if value, ok := current[name]; ok {
			own = &value
		}
		if worthARecord(resource, own, next[name]) {
			records = append(records, setting(resource, name, next[name]))
		}
	}
	for _, name := range sortedNames(current) {
		if _, named := next[name]; !named {
			records = append(records, setting(resource, name, nil))
		}
	}
	return records
}

// checkAltered judges a resource as the records would make it
// (ControllerConfigurationValidator). Settings of brokers were judged by the
// broker that was asked, which knows what its own file says.
func (c *Controller) checkAltered(resource metadata.ConfigResource, records []schema.MetadataRecord) *protocol.Error {
	all := map[string]string{}
	for name, value := range c.image.Config(resource.Kind, resource.Name) {
		all[name] = value
	}
	for _, r := range records {
		record := r.(*schema.ConfigRecord)
		if err := c.checkMinISR(record); err != nil {
			return err
		}
		if record.Value == nil {
			delete(all, record.Name)
			continue
		}
		if len(*record.Value) > config.MaxValueBytes {
			return protocol.Errorf(protocol.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", config.MaxValueBytes)
		}
		all[record.Name] = *record.Value
	}
	err := c.checkResource(resource, all)
	if err == nil {
		return nil
	}
	return &protocol.Error{Code: protocol.CodeOf(err), Message: textOf(err)}
}

// checkMinISR keeps min.insync.replicas where eligible leader replicas need it:
// one value for all brokers (KIP-966).
func (c *Controller) checkMinISR(record *schema.ConfigRecord) *protocol.Error {
	switch {
	case record.ResourceType != metadata.BrokerConfig || record.Name != minISR || !c.withELR():
		return nil
	case record.ResourceName != "":
		return protocol.Errorf(protocol.InvalidConfig, "Broker-level %s cannot be altered while ELR is enabled.", minISR)
	case record.Value == nil:
		return protocol.Errorf(protocol.InvalidConfig, "Cluster-level %s cannot be removed while ELR is enabled.", minISR)
	}
	return nil
}

func (c *Controller) checkResource(resource metadata.ConfigResource, settings map[string]string) error {
	switch resource.Kind {
	case metadata.TopicConfig:
		return c.checkTopicConfig(resource.Name, settings)
	case metadata.BrokerConfig:
		return c.checkBrokerName(resource.Name)
	case metadata.ClientMetricsConfig:
		return config.ValidateClientMetrics(resource.Name, settings)
	case metadata.GroupConfig:
		return config.ValidateGroup(resource.Name, settings, c.options.Config)
	}
	return protocol.Errorf(protocol.UnsupportedVersion, "Unknown resource type %d.", resource.Kind)
}

func (c *Controller) checkTopicConfig(name string, settings map[string]string) error {
	if name == "" {
		return protocol.Errorf(protocol.InvalidRequest, "Default topic resources are not allowed.")
	}
	if err := protocol.CheckTopicName(name); err != nil {
		return err
	}
	if err := config.ValidateTopic(settings); err != nil {
		return err
	}
	if c.image.Topic(name) == nil {
		return protocol.Errorf(protocol.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
	}
	return nil
}

func (c *Controller) checkBrokerName(name string) error {
	if name == "" {
		return nil // the default of all brokers
	}
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return protocol.Errorf(protocol.InvalidRequest, "Unable to parse broker name as a base 10 number.")
	case id < 0:
		return protocol.Errorf(protocol.InvalidRequest, "Invalid negative broker ID.")
	case c.image.Broker(protocol.NodeID(id)) == nil && c.image.Controller(protocol.NodeID(id)) == nil:
		return protocol.Errorf(protocol.BrokerIDNotRegistered, "No node with id %d found.", id)
	}
	return nil
}

// settled adds what follows from settings: with another min.insync.replicas
// nobody can tell any more who is eligible. It refuses too many records.
func (c *Controller) settled(records []schema.MetadataRecord) ([]schema.MetadataRecord, *protocol.Error) {
	for _, r := range records {
		record := r.(*schema.ConfigRecord)
		if record.Name != minISR || !c.withELR() || record.ResourceType != metadata.TopicConfig && record.ResourceType != metadata.BrokerConfig {
			continue
		}
		cleared := schema.NewClearElrRecord() // of all topics
		if record.ResourceType == metadata.TopicConfig {
			cleared.TopicName = record.ResourceName
		}
		records = append(records, cleared)
	}
	if len(records) > maxRecordsPerRequest {
		return nil, tooManyRecords()
	}
	return records, nil
}
