package config

import (
	"errors"
	"strings"
	"testing"

	"ottla/protocol"
)

func TestValidateTopic(t *testing.T) {
	for _, c := range []struct {
		overrides map[string]string
		message   string // "" is good
	}{
		{nil, ""},
		{map[string]string{"cleanup.policy": "compact", "retention.ms": "-1", "segment.bytes": "1048576"}, ""},
		{map[string]string{"no.such": "1"}, "Unknown topic config name: no.such"},
		{map[string]string{"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms: Value must be at least -1"},
		{map[string]string{"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"}, "conflict topic config setting min.compaction.lag.ms (20) > max.compaction.lag.ms (10)"},
		{map[string]string{"remote.storage.enable": "true"}, noRemote},
		{map[string]string{"remote.storage.enable": "false", "local.retention.ms": "5"}, ""},
	} {
		err := ValidateTopic(c.overrides)
		if c.message == "" {
			if err != nil {
				t.Errorf("%v: %v", c.overrides, err)
			}
			continue
		}
		if !errors.Is(err, protocol.InvalidConfig.Err()) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%v: %v", c.overrides, err)
		}
	}
	got := IgnoredTopicKeys(map[string]string{"preallocate": "true", "retention.ms": "5", "min.compaction.lag.ms": "0", "delete.retention.ms": "7"})
	if strings.Join(got, " ") != "preallocate" {
		t.Errorf("ignored are %v", got)
	}
}

// TestResolveTopicSkipsNonsense: what another implementation wrote and does
// not parse, or may not be set at run time, leaves the layer below.
func TestResolveTopicSkipsNonsense(t *testing.T) {
	broker, _, err := Broker(over("log.segment.bytes=2097152"))
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{"log.segment.bytes": "many", "log.retention.hours": "1", "log.roll.ms": "60000"}
	topic := ResolveTopic("t", map[string]string{"retention.ms": "soon", "max.message.bytes": "77"}, defaults, nil, broker)
	if topic.SegmentBytes() != 2097152 || topic.Long("retention.ms") != 604800000 || topic.Int("max.message.bytes") != 77 || topic.Long("segment.ms") != 60000 {
		t.Errorf("resolved %d %d %d %d", topic.SegmentBytes(), topic.Long("retention.ms"), topic.Int("max.message.bytes"), topic.Long("segment.ms"))
	}
}
