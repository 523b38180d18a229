// Package config knows every configuration key: its name, type, default,
// allowed values, scope, and whether Ottla acts on it. From a node's
// properties it makes a checked BrokerConfig; from a topic's overrides and what
// lies beneath them a TopicConfig; from both the entries of DescribeConfigs.
//
// It reads no file and no environment itself (cmd/ottla does), stores nothing,
// and does not apply a setting: the packages that act are handed values by
// node. All functions are pure, their results immutable and safe to share.
//
// Callers: cmd/ottla (Default, the layers, Broker), node (the getters, and
// TopicDefaults and Effective whenever dynamic broker settings change), api
// (Describe…, AlterBroker, ValidateDynamic), controller/cluster (Alteration,
// ValidateTopic, ValidateGroup, ValidateClientMetrics, TopicDefaults.Topic).
//
// Invariants, held by tests against what Apache Kafka 4.4.0 said (testdata):
// names, types, defaults, update modes and synonyms equal Kafka's; values and
// rules between keys are taken and refused as Kafka does; what DescribeConfigs
// answers equals what Kafka answers, entry for entry. A setting that is known
// but not acted on is never passed over in silence: Harmless rows are
// reported, Refused rows are errors. Values of Password rows and of unknown
// keys are secret: no error and no entry shows them, and who logs a Report
// logs names only.
//
// Dynamic settings (clusterDefaults, brokerDynamic) are the config records of
// the broker resources "" and node.id, as the metadata Image holds them.
// alter.go says what alterations make of them, dynamic.go which are allowed on a
// broker and how the rest of a node sees them (Effective), group.go has the
// settings of groups and of subscriptions to clients' metrics.
//
// Start reading at row.go, then broker.go (with roles.go and rules.go) and
// topic.go; the table is in the files table_*.go, one row a key.
package config
