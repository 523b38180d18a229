package txn

import (
	"time"

	"ottla/controller/config"
)

// Settings are the coordinator's properties, by Kafka's names. None of them can
// be changed while a broker runs.
type Settings struct {
	MaxTimeout           time.Duration // transaction.max.timeout.ms
	Expiration           time.Duration // transactional.id.expiration.ms
	TimeoutCheckInterval time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	ExpiryCheckInterval  time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
}

// SettingsOf reads the settings of a node's configuration.
func SettingsOf(c *config.BrokerConfig) Settings {
	ms := func(name string) time.Duration { return time.Duration(c.Int(name)) * time.Millisecond }
	return Settings{
		MaxTimeout:           ms("transaction.max.timeout.ms"),
		Expiration:           ms("transactional.id.expiration.ms"),
		TimeoutCheckInterval: ms("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		ExpiryCheckInterval:  ms("transaction.remove.expired.transaction.cleanup.interval.ms"),
	}
}
