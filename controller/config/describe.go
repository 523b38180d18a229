package config

// Entry is one configuration of a DescribeConfigs response.
type Entry struct {
	Name      string
	Value     *string // nil for null and for sensitive values
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Synonyms  []Synonym // the whole chain; the caller leaves it out if not asked
	Doc       string    // likewise
}

// DescribeTopic gives the entries of one topic, sorted by name: the 37 of
// Apache Kafka 4.4.0.
func DescribeTopic(topic *TopicConfig) []Entry { panic("todo") }

// DescribeBroker gives the entries of this node's own broker resource, sorted
// by name: the 340 of Apache Kafka 4.4.0 and the unknown ones that were given.
// Keys of Ottla's own are described only when names asks for them, so that a
// comparison of two brokers finds no difference. names nil means all.
func DescribeBroker(broker *BrokerConfig, clusterDefaults, brokerDynamic map[string]string, names []string) []Entry {
	panic("todo")
}

// DescribeClusterDefaults gives the entries of the broker resource with the
// empty name: the dynamic settings of all brokers, and no others.
func DescribeClusterDefaults(clusterDefaults map[string]string, names []string) []Entry {
	panic("todo")
}
