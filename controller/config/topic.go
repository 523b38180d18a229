package config

// TopicConfig is the configuration of one topic, resolved: the topic's own
// overrides, over dynamic broker settings, over the broker's file, over the
// defaults. It is immutable.
type TopicConfig struct {
	Name   string
	values map[string]value
	source map[string]Source
	chain  map[string][]Synonym
}

// Synonym is one link of the chain that DescribeConfigs shows: a key, its
// value there, and where it stands. Value is nil for sensitive keys.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// ValidateTopic checks the overrides of one topic as a whole: names, values,
// the rules between them, and that Ottla acts on them. The error is a
// *protocol.Error with INVALID_CONFIG and a sentence.
func ValidateTopic(overrides map[string]string) error { panic("todo") }

// ResolveTopic resolves a topic's configuration. overrides are the topic's
// own; clusterDefaults are the dynamic settings for all brokers, brokerDynamic
// those of this broker; either may be nil. Values are expected to have passed
// validation; one that does not parse (written by another implementation) is
// passed over.
func ResolveTopic(name string, overrides, clusterDefaults, brokerDynamic map[string]string, broker *BrokerConfig) *TopicConfig {
	panic("todo")
}

// Bool gives a boolean topic key, such as preallocate. The getters panic when
// the key is unknown or of another type.
func (t *TopicConfig) Bool(name string) bool { panic("todo") }

// Int gives an int key, such as max.message.bytes; see Bool.
func (t *TopicConfig) Int(name string) int32 { panic("todo") }

// Long gives a long key, such as retention.ms; see Bool.
func (t *TopicConfig) Long(name string) int64 { panic("todo") }

// Double gives a double key, such as min.cleanable.dirty.ratio; see Bool.
func (t *TopicConfig) Double(name string) float64 { panic("todo") }

// String gives a string key, such as compression.type; see Bool.
func (t *TopicConfig) String(name string) string { panic("todo") }

// List gives a list key, such as cleanup.policy; see Bool.
func (t *TopicConfig) List(name string) []string { panic("todo") }

// Source tells where the value of a key comes from.
func (t *TopicConfig) Source(name string) Source { panic("todo") }
