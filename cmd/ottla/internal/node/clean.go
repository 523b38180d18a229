package node

import (
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/storage/clean"
	"ottla/storage/log"
)

// clean makes the cleaner of the logs that the store has opened.
func (n *Node) clean(effective *config.BrokerConfig) {
	n.cleaner = clean.New(clean.Options{
		Logs: n.store.Logs, Offset: n.store.CleanerOffset,
		SetOffset: func(l *log.Log, offset protocol.Offset) error {
			tp := l.TopicPartition()
			if n.store.Log(tp) != l {
				return log.ErrSuperseded // another partition of the name
			}
			return n.store.SetCleanerOffsets(map[protocol.TopicPartition]protocol.Offset{tp: offset})
		},
		Exclusive: n.store.Exclusively, Failed: n.store.CleaningFailed,
		Pool: n.pool, Workers: n.options.Workers, Wake: n.wakes.of(partCleaner), Logger: n.options.Logger,
	}, cleanerSettings(effective))
}

// cleanerSettings are the log.cleaner.* of a configuration.
func cleanerSettings(c *config.BrokerConfig) clean.Settings {
	return clean.Settings{
		Enabled: c.Bool("log.cleaner.enable"), Threads: int(c.Int("log.cleaner.threads")),
		DedupeBytes: c.Long("log.cleaner.dedupe.buffer.size"), LoadFactor: c.Double("log.cleaner.io.buffer.load.factor"),
		BufferBytes: int(c.Int("log.cleaner.io.buffer.size")), BytesPerSecond: c.Double("log.cleaner.io.max.bytes.per.second"),
		Backoff: millis(c.Long("log.cleaner.backoff.ms")),
	}
}
