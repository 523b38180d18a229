// Package config knows every configuration key: its name, type, default,
// allowed values, scope, and whether Ottla acts on it. From a node's
// properties it makes a checked BrokerConfig; from a topic's overrides and what
// lies beneath them a TopicConfig; from both the entries of DescribeConfigs.
//
// It reads no file and no environment itself (cmd/ottla does), stores nothing,
// and does not apply a setting: the packages that act are handed values by
// node. All functions are pure, their results immutable and safe to share.
//
// Callers: cmd/ottla and node (Broker, Default, the layers), api (Describe…,
// ValidateTopic), controller/cluster (ValidateTopic, ResolveTopic), quorum and
// shard through node.
//
// Invariants, held by tests against Apache Kafka 4.4.0: names, types, defaults
// and allowed ranges equal Kafka's; what DescribeConfigs answers equals what
// Kafka answers. A setting that is known but not acted on is never ignored
// silently: Harmless rows are reported, Refused rows are errors.
//
// Start reading at row.go, then broker.go and topic.go; the table is in the
// files table_*.go.
package config
