package cluster

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/protocol"
)

// resourceKinds are the words for kinds of resources in scripts.
var resourceKinds = map[string]kmsg.ConfigResourceType{"topic": 2, "broker": 4, "metrics": 16, "group": 32}

var alterKinds = map[string]config.AlterKind{"=": config.AlterSet, "-": config.AlterDelete, "+=": config.AlterAppend, "-=": config.AlterSubtract}

// alter takes lines of a kind of resource, its name, and "key=value", "key+=value",
// "key-=value" or "key-"; a comma stands for a blank.
func (s *scripted) alter(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.ValidateOnly = 1, d.HasArg("validate-only")
	for _, line := range strings.Split(d.Input, "\n") {
		fields := strings.Fields(line)
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = resourceKinds[fields[0]], named(fields[1])
		for _, field := range fields[2:] {
			one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			for _, operator := range []string{"+=", "-=", "="} {
				if key, value, ok := strings.Cut(field, operator); ok {
					one.Name, one.Op, one.Value = key, kmsg.IncrementalAlterConfigOp(alterKinds[operator]), &value
					break
				}
			}
			if one.Value == nil {
				one.Name, one.Op = strings.TrimSuffix(field, "-"), kmsg.IncrementalAlterConfigOp(config.AlterDelete)
			}
			resource.Configs = append(resource.Configs, one)
		}
		req.Resources = append(req.Resources, resource)
	}
	for _, answer := range s.ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		lines = append(lines, fmt.Sprintf("%v %q: %v %s", int8(answer.ResourceType), answer.ResourceName, protocol.ErrorCode(answer.ErrorCode), quoted(answer.ErrorMessage)))
	}
	return lines
}

func named(word string) string {
	if word == "''" {
		return ""
	}
	return word
}

// replace is alter by the way before KIP-339: "key=value" only.
func (s *scripted) replace(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Version, req.ValidateOnly = 2, d.HasArg("validate-only")
	for _, line := range strings.Split(d.Input, "\n") {
		fields := strings.Fields(line)
		resource := kmsg.NewAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = resourceKinds[fields[0]], named(fields[1])
		for _, field := range fields[2:] {
			key, value, _ := strings.Cut(field, "=")
			resource.Configs = append(resource.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: key, Value: &value})
		}
		req.Resources = append(req.Resources, resource)
	}
	for _, answer := range s.ask(req).(*kmsg.AlterConfigsResponse).Resources {
		lines = append(lines, fmt.Sprintf("%v %q: %v %s", int8(answer.ResourceType), answer.ResourceName, protocol.ErrorCode(answer.ErrorCode), quoted(answer.ErrorMessage)))
	}
	return lines
}

// elect takes lines of topics with partitions "a 0,1"; "all" is all. The argument is
// the kind.
func (s *scripted) elect(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.TimeoutMillis = 2, 10000
	if d.HasArg("unclean") {
		req.ElectionType = uncleanElection
	}
	for _, line := range strings.Split(d.Input, "\n") {
		if line == "all" {
			req.Topics = nil
			break
		}
		name, partitions, _ := strings.Cut(line, " ")
		topic := kmsg.ElectLeadersRequestTopic{Topic: name}
		for _, n := range strings.Split(partitions, ",") {
			topic.Partitions = append(topic.Partitions, number(s.t, n))
		}
		req.Topics = append(req.Topics, topic)
	}
	answer := s.ask(req).(*kmsg.ElectLeadersResponse)
	for _, topic := range answer.Topics {
		lines = append(lines, fmt.Sprintf("%q: %d partitions", topic.Topic, len(topic.Partitions)))
		for _, p := range topic.Partitions {
			lines = append(lines, fmt.Sprintf("%s-%d: %v %s", topic.Topic, p.Partition, protocol.ErrorCode(p.ErrorCode), quoted(p.ErrorMessage)))
		}
	}
	return append(lines, protocol.ErrorCode(answer.ErrorCode).String())
}

// reassign takes lines of topics with "0:1,2;1:3"; "0:-" takes the change back.
func (s *scripted) reassign(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Version, req.TimeoutMillis, req.AllowReplicationFactorChange = 1, 10000, !d.HasArg("same-factor")
	for _, line := range strings.Split(d.Input, "\n") {
		name, plan, _ := strings.Cut(line, " ")
		topic := kmsg.AlterPartitionAssignmentsRequestTopic{Topic: name}
		for _, one := range strings.Split(plan, ";") {
			partition := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			if n, back := strings.CutSuffix(one, ":-"); back {
				partition.Partition = number(s.t, n)
			} else {
				partitions, brokers := s.replicas(one)
				partition.Partition, partition.Replicas = partitions[0], append([]int32{}, brokers[0]...)
			}
			topic.Partitions = append(topic.Partitions, partition)
		}
		req.Topics = append(req.Topics, topic)
	}
	answer := s.ask(req).(*kmsg.AlterPartitionAssignmentsResponse)
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			lines = append(lines, fmt.Sprintf("%s-%d: %v %s", topic.Topic, p.Partition, protocol.ErrorCode(p.ErrorCode), quoted(p.ErrorMessage)))
		}
	}
	return append(lines, protocol.ErrorCode(answer.ErrorCode).String())
}

// reassignments lists what is being changed, of all or of the topics and partitions
// named as in elect.
func (s *scripted) reassignments(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = 10000
	for _, line := range strings.Split(d.Input, "\n") {
		if line == "all" {
			break
		}
		name, partitions, _ := strings.Cut(line, " ")
		topic := kmsg.ListPartitionReassignmentsRequestTopic{Topic: name}
		for _, n := range strings.Split(partitions, ",") {
			topic.Partitions = append(topic.Partitions, number(s.t, n))
		}
		req.Topics = append(req.Topics, topic)
	}
	answer := s.ask(req).(*kmsg.ListPartitionReassignmentsResponse)
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			lines = append(lines, fmt.Sprintf("%s-%d: %v adding %v removing %v", topic.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas))
		}
	}
	return append(lines, protocol.ErrorCode(answer.ErrorCode).String())
}

// features takes lines "name level", with the kind as argument; nothing is changed
// unless "commit" is one.
func (s *scripted) features(d *datadriven.TestData) []string {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 2, 10000, !d.HasArg("commit")
	for _, line := range strings.Split(d.Input, "\n") {
		update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		name, level, _ := strings.Cut(line, " ")
		update.Feature, update.MaxVersionLevel, update.UpgradeType = name, int16(number(s.t, level)), featureUpgrade
		switch {
		case d.HasArg("safe"):
			update.UpgradeType = featureSafeDowngrade
		case d.HasArg("unsafe"):
			update.UpgradeType = featureUnsafeDowngrade
		case d.HasArg("odd"):
			update.UpgradeType = 9
		}
		req.FeatureUpdates = append(req.FeatureUpdates, update)
	}
	answer := s.ask(req).(*kmsg.UpdateFeaturesResponse)
	text := strings.ReplaceAll(quoted(answer.ErrorMessage), "Local controller 99", "Local controller 1") // see join
	return []string{fmt.Sprintf("%v %s", protocol.ErrorCode(answer.ErrorCode), text)}
}

// unregister takes lines of ids.
func (s *scripted) unregister(d *datadriven.TestData) (lines []string) {
	for _, line := range strings.Split(d.Input, "\n") {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = number(s.t, line)
		answer := s.ask(req).(*kmsg.UnregisterBrokerResponse)
		lines = append(lines, fmt.Sprintf("%s: %v %s", line, protocol.ErrorCode(answer.ErrorCode), quoted(answer.ErrorMessage)))
	}
	return lines
}
