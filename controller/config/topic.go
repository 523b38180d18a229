package config

import "maps"

// TopicDefaults is what topics have that set nothing: the dynamic settings of
// this broker over those of all brokers, over the broker's file, over the
// table. It is immutable and shared by many TopicConfigs.
type TopicDefaults struct {
	settings layered
	values   map[string]value // of every topic row
}

// TopicConfig is the configuration of one topic, resolved: the topic's own
// overrides over its TopicDefaults. It is immutable and small.
type TopicConfig struct {
	Name      string
	defaults  *TopicDefaults
	overrides map[string]string // as given, for DescribeConfigs
	values    map[string]value  // of the overrides
}

// TopicDefaults resolves what lies beneath the topics' own settings.
// clusterDefaults are the dynamic settings for all brokers, brokerDynamic
// those of this broker; either may be nil. The maps are kept: do not change
// them. Dynamic values that do not parse, as another implementation may have
// written, are passed over.
func (c *BrokerConfig) TopicDefaults(clusterDefaults, brokerDynamic map[string]string) *TopicDefaults {
	d := &TopicDefaults{settings: layered{c, clusterDefaults, brokerDynamic}, values: map[string]value{}}
	for _, row := range Rows(TopicScope) {
		d.values[row.Name] = d.resolve(row)
	}
	return d
}

// resolve finds a topic key's value beneath the topics.
func (d *TopicDefaults) resolve(row *Row) value {
	for _, link := range topicSynonyms[row.Name] {
		v := d.settings.value(link.name)
		switch parsed := v.parsed.(type) {
		case nil:
			continue
		case int64:
			if parsed = link.convert(parsed); row.Name == "retention.ms" && parsed < 0 {
				parsed = -1
			}
			return value{parsed}
		default:
			return v
		}
	}
	return row.defaultValue()
}

// Topic resolves the configuration of one topic. overrides may be nil, and is
// kept: do not change it. Overrides without row, or that do not parse, are
// passed over.
func (d *TopicDefaults) Topic(name string, overrides map[string]string) *TopicConfig {
	t := &TopicConfig{Name: name, defaults: d, overrides: overrides}
	for key, text := range overrides {
		row := Find(TopicScope, key)
		if row == nil {
			continue
		}
		if parsed, bad := row.parse(text); bad == nil {
			if t.values == nil {
				t.values = map[string]value{}
			}
			t.values[key] = parsed
		}
	}
	return t
}

// ResolveTopic resolves one topic from all its layers at once. Who resolves
// many topics calls TopicDefaults once, and Topic for each.
func ResolveTopic(name string, overrides, clusterDefaults, brokerDynamic map[string]string, broker *BrokerConfig) *TopicConfig {
	return broker.TopicDefaults(clusterDefaults, brokerDynamic).Topic(name, overrides)
}

func (t *TopicConfig) get(name string) value {
	if v, ok := t.values[name]; ok {
		return v
	}
	v, ok := t.defaults.values[name]
	if !ok {
		panic("config: no topic key is named " + name)
	}
	return v
}

// Bool, Int, Long, Double, String and List give the value of a topic key. They
// panic when the key is unknown or of another type, and give the zero value
// for null. Lists are shared: do not change them.
func (t *TopicConfig) Bool(name string) bool { return as[bool](name, t.get(name)) }

// Int gives an int key, such as max.message.bytes; see Bool.
func (t *TopicConfig) Int(name string) int32 { return int32(as[int64](name, t.get(name))) }

// Long gives a long or int key, such as retention.ms; see Bool.
func (t *TopicConfig) Long(name string) int64 { return as[int64](name, t.get(name)) }

// Double gives a double key, such as min.cleanable.dirty.ratio; see Bool.
func (t *TopicConfig) Double(name string) float64 { return as[float64](name, t.get(name)) }

// String gives a string key, such as compression.type; see Bool.
func (t *TopicConfig) String(name string) string { return as[string](name, t.get(name)) }

// List gives a list key, such as cleanup.policy; see Bool.
func (t *TopicConfig) List(name string) []string { return as[[]string](name, t.get(name)) }

// SegmentBytes gives the size of a segment: segment.bytes, unless a test set
// internal.segment.bytes, which knows no minimum.
func (t *TopicConfig) SegmentBytes() int32 {
	if small := t.get("internal.segment.bytes"); small.parsed != nil {
		return int32(as[int64]("internal.segment.bytes", small))
	}
	return t.Int("segment.bytes")
}

// Overrides gives a copy of the topic's own settings.
func (t *TopicConfig) Overrides() map[string]string { return maps.Clone(t.overrides) }

// Source tells where the value of a key comes from, as DescribeConfigs would.
func (t *TopicConfig) Source(name string) Source {
	if chain := t.chain(Find(TopicScope, name), name); len(chain) > 0 {
		return chain[0].Source
	}
	return SourceDefault
}
