package group

import (
	"time"

	"ottla/controller/config"
	"ottla/controller/consumer"
)

// Settings are the coordinator's properties, by Kafka's names. They
// hold as long as a broker runs; what groups and the cluster set besides is in the
// Image.
type Settings struct {
	MinSessionTimeout     time.Duration // group.min.session.timeout.ms
	MaxSessionTimeout     time.Duration // group.max.session.timeout.ms
	InitialRebalanceDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize               int           // group.max.size: members of one group
	OffsetMetadataBytes   int           // offset.metadata.max.bytes; Kafka counts UTF-16 units
	OffsetsRetention      time.Duration // offsets.retention.minutes
	OffsetsCheckInterval  time.Duration // offsets.retention.check.interval.ms
	Consumer              consumer.Settings
}

// SettingsOf reads the settings of a node's configuration.
func SettingsOf(c *config.BrokerConfig) Settings {
	ms := func(name string) time.Duration { return time.Duration(c.Int(name)) * time.Millisecond }
	return Settings{
		MinSessionTimeout:     ms("group.min.session.timeout.ms"),
		MaxSessionTimeout:     ms("group.max.session.timeout.ms"),
		InitialRebalanceDelay: ms("group.initial.rebalance.delay.ms"),
		MaxSize:               int(c.Int("group.max.size")),
		OffsetMetadataBytes:   int(c.Int("offset.metadata.max.bytes")),
		OffsetsRetention:      time.Duration(c.Int("offsets.retention.minutes")) * time.Minute,
		OffsetsCheckInterval:  time.Duration(c.Long("offsets.retention.check.interval.ms")) * time.Millisecond,
		Consumer:              consumer.SettingsOf(c),
	}
}
