package config

import (
	"maps"
	"slices"

	"ottla/protocol"
)

// ValidateTopic checks the overrides of one topic as a whole: names, values,
// the rules between them, and that Ottla acts on them. The error is a
// *protocol.Error with INVALID_CONFIG; where Kafka has a message for the
// fault, it is Kafka's, for clients match on it. Of several faults the first
// by name is told.
func ValidateTopic(overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if Find(TopicScope, name) == nil {
			return invalidConfig("Unknown topic config name: %s", name)
		}
	}
	values := map[string]value{}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		row := Find(TopicScope, name)
		parsed, bad := row.parse(overrides[name])
		if bad != nil {
			return invalidConfig("%s", row.kafkaSentence(overrides[name], bad))
		}
		values[name] = parsed
	}
	return checkTopicRules(values)
}

func checkTopicRules(values map[string]value) error {
	get := func(name string) value {
		if v, ok := values[name]; ok {
			return v
		}
		return Find(TopicScope, name).defaultValue()
	}
	shortest, longest := as[int64]("", get("min.compaction.lag.ms")), as[int64]("", get("max.compaction.lag.ms"))
	if shortest > longest {
		return invalidConfig("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", shortest, longest)
	}
	if as[bool]("", get("remote.storage.enable")) {
		return invalidConfig("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage. (%s.)", noRemote)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		row := Find(TopicScope, name)
		if row.Support == Refused && !values[name].equal(row.defaultValue()) {
			return invalidConfig("%s is %q, which is refused: %s.", name, *values[name].text(), row.Reason)
		}
	}
	return nil
}

func invalidConfig(format string, args ...any) error {
	return protocol.Errorf(protocol.InvalidConfig, format, args...)
}

// IgnoredTopicKeys gives the topic keys among overrides that are accepted and
// not acted on, where their value is not the default: for one line in the log.
func IgnoredTopicKeys(overrides map[string]string) []string {
	var ignored []string
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		row := Find(TopicScope, name)
		if row == nil || row.Support != Harmless {
			continue
		}
		if parsed, bad := row.parse(overrides[name]); bad == nil && !parsed.equal(row.defaultValue()) {
			ignored = append(ignored, name)
		}
	}
	return ignored
}
