package config

// synonym is one broker key that stands for a topic key, with the factor from
// its unit to that of the topic key.
type synonym struct {
	name   string
	factor int64
}

// convert brings a value to the unit of the topic key. Times below zero stay
// "for ever", as in Kafka.
func (s synonym) convert(v int64) int64 {
	if s.factor == 1 {
		return v
	}
	return v * s.factor
}

const (
	minute = 60_000
	hour   = 3_600_000
)

// The chains of broker keys with more than one link, first wins.
var (
	segmentMs   = []synonym{{"log.roll.ms", 1}, {"log.roll.hours", hour}}
	jitterMs    = []synonym{{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", hour}}
	retentionMs = []synonym{{"log.retention.ms", 1}, {"log.retention.minutes", minute}, {"log.retention.hours", hour}}
	flushMs     = []synonym{{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}}
)

// topicSynonyms maps topic keys to the broker keys that hold their default
// (org.apache.kafka.server.config.ServerTopicConfigSynonyms). Keys that are
// not here have no broker key.
var topicSynonyms = map[string][]synonym{
	"cleanup.policy":                  {{"log.cleanup.policy", 1}},
	"compression.gzip.level":          {{"compression.gzip.level", 1}},
	"compression.lz4.level":           {{"compression.lz4.level", 1}},
	"compression.type":                {{"compression.type", 1}},
	"compression.zstd.level":          {{"compression.zstd.level", 1}},
	"delete.retention.ms":             {{"log.cleaner.delete.retention.ms", 1}},
	"file.delete.delay.ms":            {{"log.segment.delete.delay.ms", 1}},
	"flush.messages":                  {{"log.flush.interval.messages", 1}},
	"flush.ms":                        flushMs,
	"index.interval.bytes":            {{"log.index.interval.bytes", 1}},
	"local.retention.bytes":           {{"log.local.retention.bytes", 1}},
	"local.retention.ms":              {{"log.local.retention.ms", 1}},
	"max.compaction.lag.ms":           {{"log.cleaner.max.compaction.lag.ms", 1}},
	"max.decompressed.message.bytes":  {{"max.decompressed.message.bytes", 1}},
	"max.message.bytes":               {{"message.max.bytes", 1}},
	"message.timestamp.after.max.ms":  {{"log.message.timestamp.after.max.ms", 1}},
	"message.timestamp.before.max.ms": {{"log.message.timestamp.before.max.ms", 1}},
	"message.timestamp.type":          {{"log.message.timestamp.type", 1}},
	"min.cleanable.dirty.ratio":       {{"log.cleaner.min.cleanable.ratio", 1}},
	"min.compaction.lag.ms":           {{"log.cleaner.min.compaction.lag.ms", 1}},
	"min.insync.replicas":             {{"min.insync.replicas", 1}},
	"preallocate":                     {{"log.preallocate", 1}},
	"remote.copy.lag.bytes":           {{"log.remote.copy.lag.bytes", 1}},
	"remote.copy.lag.ms":              {{"log.remote.copy.lag.ms", 1}},
	"retention.bytes":                 {{"log.retention.bytes", 1}},
	"retention.ms":                    retentionMs,
	"segment.bytes":                   {{"log.segment.bytes", 1}},
	"segment.index.bytes":             {{"log.index.size.max.bytes", 1}},
	"segment.jitter.ms":               jitterMs,
	"segment.ms":                      segmentMs,
	"unclean.leader.election.enable":  {{"unclean.leader.election.enable", 1}},
}

// brokerSynonyms gives the broker keys that a broker key's value may come
// from, itself included, first wins (DynamicBrokerConfig.brokerConfigSynonyms).
func brokerSynonyms(name string) []string {
	for _, chain := range [][]synonym{segmentMs, jitterMs, retentionMs} {
		for _, link := range chain {
			if link.name == name {
				return names(chain)
			}
		}
	}
	if name == flushMs[0].name {
		return names(flushMs)
	}
	if _, base, ok := splitListenerKey(name); ok {
		return []string{name, base}
	}
	return []string{name}
}

func names(chain []synonym) []string {
	all := make([]string, len(chain))
	for i, link := range chain {
		all[i] = link.name
	}
	return all
}
