package broker

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"ottla/controller/config"
	"ottla/controller/metadata"
	"ottla/protocol/compress"
	"ottla/storage/log"
)

// TopicOptions gives what the logs of any topic need, by the last Image it
// follows. It may be read from anywhere while it follows.
type TopicOptions struct {
	node    *config.BrokerConfig
	current atomic.Pointer[optionsOf]
}

type optionsOf struct {
	image    *metadata.Image
	defaults *config.TopicDefaults
	node     *config.BrokerConfig // with the run-time settings
	problem  error                // why they are not applied
}

// NewTopicOptions begins with an Image.
func NewTopicOptions(node *config.BrokerConfig, image *metadata.Image) *TopicOptions {
	t := &TopicOptions{node: node}
	t.Follow(image, true)
	return t
}

// Follow takes the next Image. defaultsChanged says that what lies beneath the
// topics' own settings is another.
func (t *TopicOptions) Follow(image *metadata.Image, defaultsChanged bool) {
	next := &optionsOf{image: image}
	if defaultsChanged {
		clusterDefaults, own := image.Config(metadata.BrokerConfig, ""), image.Config(metadata.BrokerConfig, strconv.Itoa(int(t.node.NodeID)))
		next.defaults = t.node.TopicDefaults(clusterDefaults, own)
		next.node, next.problem = t.node.Effective(clusterDefaults, own)
	} else {
		last := t.current.Load()
		next.defaults, next.node, next.problem = last.defaults, last.node, last.problem
	}
	t.current.Store(next)
}

// Node is the node's configuration with the run-time settings applied. Where they
// do not go together the error says why, and the configuration is the file's.
func (t *TopicOptions) Node() (*config.BrokerConfig, error) {
	current := t.current.Load()
	return current.node, current.problem
}

// Of resolves the options of one topic.
func (t *TopicOptions) Of(topic string) log.Options {
	current := t.current.Load()
	return LogOptions(current.defaults.Topic(topic, current.image.Config(metadata.TopicConfig, topic)), current.node)
}

// LogOptions makes of a topic's configuration what its logs need.
func LogOptions(topic *config.TopicConfig, node *config.BrokerConfig) log.Options {
	options := log.Options{
		SegmentBytes:       int64(topic.SegmentBytes()),
		SegmentAge:         milliseconds(topic.Long("segment.ms")),
		SegmentJitter:      milliseconds(topic.Long("segment.jitter.ms")),
		SegmentIndexBytes:  int(topic.Int("segment.index.bytes")),
		IndexIntervalBytes: int(topic.Int("index.interval.bytes")),
		MaxMessageBytes:    int(topic.Int("max.message.bytes")),
		RetentionBytes:     topic.Long("retention.bytes"),
		RetentionAge:       milliseconds(topic.Long("retention.ms")),
		FileDeleteDelay:    milliseconds(topic.Long("file.delete.delay.ms")),
		FlushMessages:      unlessMax(topic.Long("flush.messages")),
		FlushAge:           milliseconds(unlessMax(topic.Long("flush.ms"))),
		MinCleanableRatio:  topic.Double("min.cleanable.dirty.ratio"),
		MinCompactionLag:   milliseconds(topic.Long("min.compaction.lag.ms")),
		MaxCompactionLag:   milliseconds(unlessMax(topic.Long("max.compaction.lag.ms"))),
		DeleteRetention:    milliseconds(topic.Long("delete.retention.ms")),

		LogAppendTime:         topic.String("message.timestamp.type") == "LogAppendTime",
		TimestampBeforeMax:    milliseconds(topic.Long("message.timestamp.before.max.ms")),
		TimestampAfterMax:     milliseconds(topic.Long("message.timestamp.after.max.ms")),
		MinInSyncReplicas:     int(topic.Int("min.insync.replicas")),
		UncleanLeaderElection: topic.Bool("unclean.leader.election.enable"),
		MaxRecordBytes:        int(topic.Int("max.decompressed.message.bytes")),
		ProducerIDExpiration:  milliseconds(int64(node.Int("producer.id.expiration.ms"))),
		VerifyTransactions:    node.Bool("transaction.partition.verification.enable"),
	}
	for _, policy := range topic.List("cleanup.policy") {
		options.Delete = options.Delete || policy == "delete"
		options.Compact = options.Compact || policy == "compact"
	}
	compression(&options, topic)
	return options
}

func compression(options *log.Options, topic *config.TopicConfig) {
	name := topic.String("compression.type")
	if name == "producer" {
		options.ProducerCompression = true
		return
	}
	if name == "uncompressed" {
		name = "none"
	}
	codec, err := compress.ParseCodec(name)
	if err != nil {
		options.ProducerCompression = true // a value of a later version: keep what producers chose
		return
	}
	options.Compression = codec
	switch codec {
	case compress.Gzip:
		options.CompressionLevel = int(topic.Int("compression.gzip.level"))
	case compress.LZ4:
		options.CompressionLevel = int(topic.Int("compression.lz4.level"))
	case compress.Zstd:
		options.CompressionLevel = int(topic.Int("compression.zstd.level"))
	}
}

// unlessMax gives 0, never, for Kafka's way to say never.
func unlessMax(value int64) int64 {
	if value == math.MaxInt64 {
		return 0
	}
	return value
}

// milliseconds converts without overflow: what a Duration cannot hold is as
// good as for ever (292 years). Negative numbers keep their sign.
func milliseconds(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}
