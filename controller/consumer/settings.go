package consumer

import (
	"strconv"
	"strings"

	"ottla/controller/config"
	"ottla/controller/metadata"
)

// Settings are a broker's properties about consumer groups, by Kafka's names.
type Settings struct {
	SessionTimeout     Bounded  // group.consumer.(min., max.)session.timeout.ms
	HeartbeatInterval  Bounded  // group.consumer.(min., max.)heartbeat.interval.ms
	AssignmentInterval Bounded  // group.consumer.(min., max.)assignment.interval.ms
	MaxSize            int      // group.consumer.max.size: members of one group
	ClassicMaxSize     int      // group.max.size, which a group must keep to that goes back
	Assignors          []string // group.consumer.assignors; the first is the default
	RegexRefreshMs     int64    // group.consumer.regex.refresh.interval.ms
	Upgrade, Downgrade bool     // group.consumer.migration.policy
}

// Bounded is a number of milliseconds that a group may have its own of, within
// bounds.
type Bounded struct{ Ms, Min, Max int32 }

// SettingsOf reads the settings of a node's configuration.
func SettingsOf(c *config.BrokerConfig) Settings {
	bounded := func(name string) Bounded {
		return Bounded{c.Int("group.consumer." + name), c.Int("group.consumer.min." + name), c.Int("group.consumer.max." + name)}
	}
	policy := strings.ToLower(c.String("group.consumer.migration.policy"))
	return Settings{
		SessionTimeout: bounded("session.timeout.ms"), HeartbeatInterval: bounded("heartbeat.interval.ms"),
		AssignmentInterval: bounded("assignment.interval.ms"),
		MaxSize:            int(c.Int("group.consumer.max.size")), ClassicMaxSize: int(c.Int("group.max.size")),
		Assignors:      c.List("group.consumer.assignors"),
		RegexRefreshMs: int64(c.Int("group.consumer.regex.refresh.interval.ms")),
		Upgrade:        policy == "upgrade" || policy == "bidirectional",
		Downgrade:      policy == "downgrade" || policy == "bidirectional",
	}
}

// of is what holds for one group: its own setting within the bounds, the
// cluster's, or the broker's.
func (b Bounded) of(image *metadata.Image, group, name string) int32 {
	if own, set := number(image.Config(metadata.GroupConfig, group), "consumer."+name); set {
		return min(max(own, b.Min), b.Max)
	}
	return b.Ms
}

func number(settings map[string]string, key string) (int32, bool) {
	text, set := settings[key]
	if !set {
		return 0, false
	}
	ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	return int32(ms), err == nil
}

func (t *Turn) sessionTimeoutMs(group string) int32 {
	return t.Settings.SessionTimeout.of(t.Topics.image, group, "session.timeout.ms")
}

func (t *Turn) heartbeatIntervalMs(group string) int32 {
	return t.Settings.HeartbeatInterval.of(t.Topics.image, group, "heartbeat.interval.ms")
}

// assignmentIntervalMs is the only one of these that can be changed for all
// brokers while they run.
func (t *Turn) assignmentIntervalMs(group string) int32 {
	interval := t.Settings.AssignmentInterval
	if all, set := number(t.Topics.image.Config(metadata.BrokerConfig, ""), "group.consumer.assignment.interval.ms"); set {
		interval.Ms = all
	}
	return interval.of(t.Topics.image, group, "assignment.interval.ms")
}
