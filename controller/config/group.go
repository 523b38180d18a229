package config

import (
	"errors"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// groupSynonyms maps group keys to the broker keys that hold their default
// (GroupConfig.ALL_GROUP_CONFIG_SYNONYMS). Keys that are not here have a default
// of their own.
var groupSynonyms = map[string]string{
	"consumer.assignment.interval.ms":    "group.consumer.assignment.interval.ms",
	"consumer.assignor.offload.enable":   "group.consumer.assignor.offload.enable",
	"consumer.heartbeat.interval.ms":     "group.consumer.heartbeat.interval.ms",
	"consumer.session.timeout.ms":        "group.consumer.session.timeout.ms",
	"share.assignment.interval.ms":       "group.share.assignment.interval.ms",
	"share.assignor.offload.enable":      "group.share.assignor.offload.enable",
	"share.delivery.count.limit":         "group.share.delivery.count.limit",
	"share.heartbeat.interval.ms":        "group.share.heartbeat.interval.ms",
	"share.partition.max.record.locks":   "group.share.partition.max.record.locks",
	"share.record.lock.duration.ms":      "group.share.record.lock.duration.ms",
	"share.session.timeout.ms":           "group.share.session.timeout.ms",
	"streams.acceptable.recovery.lag":    "group.streams.acceptable.recovery.lag",
	"streams.assignment.interval.ms":     "group.streams.assignment.interval.ms",
	"streams.assignor.name":              "group.streams.assignors",
	"streams.assignor.offload.enable":    "group.streams.assignor.offload.enable",
	"streams.heartbeat.interval.ms":      "group.streams.heartbeat.interval.ms",
	"streams.initial.rebalance.delay.ms": "group.streams.initial.rebalance.delay.ms",
	"streams.num.standby.replicas":       "group.streams.num.standby.replicas",
	"streams.num.warmup.replicas":        "group.streams.num.warmup.replicas",
	"streams.rack.aware.assignment.tags": "group.streams.rack.aware.assignment.tags",
	"streams.session.timeout.ms":         "group.streams.session.timeout.ms",
	"streams.task.offset.interval.ms":    "group.streams.task.offset.interval.ms",
}

// groupRange bounds a group key by broker keys; "" is no bound.
type groupRange struct{ name, low, high string }

// groupRanges is in the order in which Kafka looks.
var groupRanges = []groupRange{
	{"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	{"share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	{"share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
	{"share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	{"share.delivery.count.limit", "group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"},
	{"share.partition.max.record.locks", "group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	{"share.assignment.interval.ms", "group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	{"streams.heartbeat.interval.ms", "group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	{"streams.session.timeout.ms", "group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	{"streams.num.standby.replicas", "", "group.streams.max.standby.replicas"},
	{"streams.assignment.interval.ms", "group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
	{"streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", ""},
	{"streams.num.warmup.replicas", "", "group.streams.max.warmup.replicas"},
}

// ValidateGroup checks the settings of one group as a whole, within what this
// broker allows (GroupConfig.validate). The error is a *protocol.Error.
func ValidateGroup(name string, settings map[string]string, broker *BrokerConfig) error {
	if name == "" {
		return invalidRequest("Default group resources are not allowed.")
	}
	values := map[string]value{}
	names := slices.Sorted(maps.Keys(settings))
	for _, key := range names {
		if Find(GroupScope, key) == nil {
			return invalidConfig("Unknown group config name: %s", key)
		}
	}
	for _, key := range names {
		row := Find(GroupScope, key)
		parsed, bad := row.parse(settings[key])
		if bad != nil {
			return invalidConfig("%s", row.kafkaSentence(settings[key], bad))
		}
		values[key] = parsed
	}
	return checkGroup(values, broker)
}

func checkGroup(values map[string]value, broker *BrokerConfig) error {
	for _, r := range groupRanges {
		v, given := values[r.name]
		if !given {
			continue
		}
		number := as[int64](r.name, v)
		switch {
		case r.low == "" && number > broker.Long(r.high):
			return invalidConfig("%s must be less than or equal to %d", r.name, broker.Long(r.high))
		case r.high == "" && number < broker.Long(r.low):
			return invalidConfig("%s must be greater than or equal to %d", r.name, broker.Long(r.low))
		case r.low != "" && r.high != "" && (number < broker.Long(r.low) || number > broker.Long(r.high)):
			return invalidConfig("%s must be in the range %d to %d inclusive.", r.name, broker.Long(r.low), broker.Long(r.high))
		}
	}
	if v, given := values["streams.assignor.name"]; given {
		known := broker.List("group.streams.assignors")
		if name := as[string]("", v); !slices.Contains(known, name) {
			return invalidConfig("streams.assignor.name '%s' is not a registered task assignor. Registered assignors are: [%s].", name, strings.Join(known, ", "))
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		session, heartbeat := kind+".session.timeout.ms", kind+".heartbeat.interval.ms"
		if ms, beat := groupNumber(values, broker, session), groupNumber(values, broker, heartbeat); ms <= beat {
			return invalidConfig("%s must be greater than %s", session, heartbeat)
		}
	}
	if v, given := values["errors.deadletterqueue.topic.name"]; given && strings.HasPrefix(as[string]("", v), "__") {
		return invalidConfig("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")
	}
	return nil
}

func groupNumber(values map[string]value, broker *BrokerConfig, name string) int64 {
	if v, given := values[name]; given {
		return as[int64](name, v)
	}
	return broker.Long(groupSynonyms[name])
}

// DescribeGroup gives the entries of one group, sorted by name: those of Apache
// Kafka 4.4.0, and internal ones that are set. names, when not empty, restricts
// them.
func DescribeGroup(settings map[string]string, broker *BrokerConfig, clusterDefaults, brokerDynamic map[string]string, names []string) []Entry {
	l := layered{broker, clusterDefaults, brokerDynamic}
	var entries []Entry
	for _, row := range Rows(GroupScope) {
		text, own := settings[row.Name]
		if row.Internal && !own || !wanted(names, row.Name) {
			continue
		}
		e := Entry{Name: row.Name, Type: row.Type, Doc: row.Doc, Source: SourceDefault}
		if own {
			e.Synonyms = append(e.Synonyms, Synonym{Name: row.Name, Value: &text, Source: SourceGroup})
		}
		e.Value = row.defaultValue().text()
		if beneath := groupSynonyms[row.Name]; beneath != "" {
			e.Value = l.value(beneath).text()
			e.Synonyms = append(e.Synonyms, l.chain(beneath, false)...)
		} else if text, ok := row.defaultText(); ok {
			e.Synonyms = append(e.Synonyms, Synonym{Name: row.Name, Value: &text, Source: SourceDefault})
		}
		if row.Name == "streams.assignor.name" && e.Value != nil {
			first, _, _ := strings.Cut(*e.Value, ",")
			e.Value = &first
		}
		if parsed, bad := row.parse(text); own && bad == nil {
			e.Value = parsed.text()
		}
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		entries = append(entries, e)
	}
	return entries
}

// The bounds of interval.ms.
const (
	minPushInterval = 100
	maxPushInterval = 3_600_000
)

// clientMatchers are what a client can be matched by (ClientMetricsConfigs).
var clientMatchers = []string{
	"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port",
}

// ValidateClientMetrics checks one subscription to clients' metrics as a whole
// (KIP-714). Nothing here receives such metrics, as in Apache Kafka without a
// plugin for them; subscriptions are kept for who does.
func ValidateClientMetrics(name string, settings map[string]string) error {
	if name == "" {
		return invalidRequest("Subscription name can't be empty")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		row := Find(ClientMetricsScope, key)
		if row == nil {
			return invalidRequest("Unknown client metrics configuration: %s", key)
		}
		parsed, bad := row.parse(settings[key])
		switch {
		case bad != nil:
			return invalidConfig("%s", row.kafkaSentence(settings[key], bad))
		case key == "interval.ms":
			if ms := as[int64](key, parsed); ms < minPushInterval || ms > maxPushInterval {
				return invalidRequest("Invalid value %d for interval.ms, interval must be between %d and %d (1 hour)", ms, minPushInterval, maxPushInterval)
			}
		case key == "match":
			if err := checkClientMatch(as[[]string](key, parsed)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkClientMatch(patterns []string) error {
	for _, pattern := range patterns {
		name, expression, ok := strings.Cut(pattern, "=")
		if !ok || !slices.Contains(clientMatchers, strings.TrimSpace(name)) || !isPattern(strings.TrimSpace(expression)) {
			return invalidConfig("Illegal client matching pattern: %s", pattern)
		}
	}
	return nil
}

// DescribeClientMetrics gives the entries of one subscription, sorted by name.
func DescribeClientMetrics(settings map[string]string, names []string) []Entry {
	var entries []Entry
	for _, row := range Rows(ClientMetricsScope) {
		if !wanted(names, row.Name) {
			continue
		}
		e := Entry{Name: row.Name, Type: row.Type, Doc: row.Doc, Source: SourceDefault, Value: row.defaultValue().text()}
		if text, own := settings[row.Name]; own {
			e.Source, e.Value = SourceClientMetrics, &text
			e.Synonyms = []Synonym{{Name: row.Name, Value: &text, Source: SourceClientMetrics}}
		}
		entries = append(entries, e)
	}
	return entries
}

// isPattern tells text that is a regular expression, as far as Java's and Go's
// agree: what Java alone knows (look-around, possessive quantifiers, back
// references) is let pass, for nothing here ever matches by it.
func isPattern(text string) bool {
	_, err := regexp.Compile(text)
	var bad *syntax.Error
	return !errors.As(err, &bad) || slices.Contains([]syntax.ErrorCode{
		syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidCharClass, syntax.ErrInvalidRepeatSize, syntax.ErrInvalidNamedCapture,
	}, bad.Code)
}
