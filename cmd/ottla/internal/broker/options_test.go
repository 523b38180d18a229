package broker

import (
	"testing"
	"time"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol/schema"
)

// TestTopicOptionsFollow: what is set at run time is beneath every topic's own
// settings, and in the node's configuration.
func TestTopicOptionsFollow(t *testing.T) {
	given, err := config.FromOverrides([]string{"node.id=1", "producer.id.expiration.ms=1000", "max.connections=100"})
	if err != nil {
		t.Fatal(err)
	}
	node, _, err := config.Broker(config.Layer(config.Default(), given))
	if err != nil {
		t.Fatal(err)
	}
	delta := metadata.NewDelta(metadata.Empty())
	set := func(kind int8, name, key, value string) *metadata.Image {
		t.Helper()
		record := schema.NewConfigRecord()
		record.ResourceType, record.ResourceName, record.Name, record.Value = kind, name, key, &value
		if err := delta.Replay(0, 0, record); err != nil {
			t.Fatal(err)
		}
		return delta.Build(metadata.Provenance{})
	}
	options := NewTopicOptions(node, metadata.Empty())
	if o := options.Of("a"); o.ProducerIDExpiration != time.Second || o.RetentionAge != 7*24*time.Hour {
		t.Errorf("%+v", o)
	}
	set(metadata.BrokerConfig, "", "log.retention.ms", "5000")
	set(metadata.BrokerConfig, "1", "producer.id.expiration.ms", "2000")
	set(metadata.BrokerConfig, "1", "max.connections", "7")
	options.Follow(set(metadata.TopicConfig, "b", "max.decompressed.message.bytes", "10"), true)
	if o := options.Of("a"); o.ProducerIDExpiration != 2*time.Second || o.RetentionAge != 5*time.Second || o.MaxRecordBytes != 2147483639 {
		t.Errorf("%+v", o)
	}
	if o := options.Of("b"); o.MaxRecordBytes != 10 {
		t.Errorf("%+v", o)
	}
	if effective, err := options.Node(); err != nil || effective.Int("max.connections") != 7 {
		t.Errorf("%v %v", effective, err)
	}
	options.Follow(set(metadata.BrokerConfig, "1", "log.roll.ms", "0"), true)
	if effective, err := options.Node(); err == nil || effective.Int("max.connections") != 100 {
		t.Errorf("settings that do not go together: %v %v", effective, err)
	}
}
