package group

import (
	"reflect"
	"testing"
	"time"

	"ottla/controller/config"
	"ottla/controller/consumer"
)

// TestSettings reads Kafka's defaults, and what is given.
func TestSettings(t *testing.T) {
	broker, _, err := config.Broker(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := settings()
	want.MaxSize, want.Consumer.MaxSize, want.Consumer.ClassicMaxSize = 1<<31-1, 1<<31-1, 1<<31-1
	want.Consumer.AssignmentInterval.Ms = 1000
	if got := SettingsOf(broker); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	given, err := config.FromOverrides([]string{
		"group.min.session.timeout.ms=1", "group.max.session.timeout.ms=2", "group.initial.rebalance.delay.ms=3", "group.max.size=4",
		"offset.metadata.max.bytes=5", "offsets.retention.minutes=6", "offsets.retention.check.interval.ms=7",
		"group.consumer.migration.policy=Upgrade", "group.consumer.max.size=8",
	})
	if err != nil {
		t.Fatal(err)
	}
	if broker, _, err = config.Broker(config.Layer(config.Default(), given)); err != nil {
		t.Fatal(err)
	}
	consumers := consumer.SettingsOf(broker)
	if consumers.ClassicMaxSize != 4 || !consumers.Upgrade || consumers.Downgrade || consumers.MaxSize != 8 {
		t.Errorf("%+v", consumers)
	}
	want = Settings{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4, 5, 6 * time.Minute, 7 * time.Millisecond, consumers}
	if got := SettingsOf(broker); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
