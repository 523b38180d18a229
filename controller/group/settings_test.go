package group

import (
	"testing"
	"time"

	"ottla/controller/config"
)

// TestSettings reads Kafka's defaults, and what is given.
func TestSettings(t *testing.T) {
	broker, _, err := config.Broker(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := settings()
	want.MaxSize = 1<<31 - 1
	if got := SettingsOf(broker); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	given, err := config.FromOverrides([]string{
		"group.min.session.timeout.ms=1", "group.max.session.timeout.ms=2", "group.initial.rebalance.delay.ms=3", "group.max.size=4",
		"offset.metadata.max.bytes=5", "offsets.retention.minutes=6", "offsets.retention.check.interval.ms=7",
	})
	if err != nil {
		t.Fatal(err)
	}
	if broker, _, err = config.Broker(config.Layer(config.Default(), given)); err != nil {
		t.Fatal(err)
	}
	want = Settings{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4, 5, 6 * time.Minute, 7 * time.Millisecond}
	if got := SettingsOf(broker); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
