package config

// Type is the type of a configuration value; the numbers are those of
// DescribeConfigs (KIP-569).
type Type int8

// The types of Kafka's ConfigDef.
const (
	UnknownType Type = 0 // of a key that no row has

	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// Scope tells what kind of resource a key belongs to.
type Scope uint8

// The scopes. A key such as compression.type exists once for brokers and once
// for topics, as two rows.
const (
	BrokerScope Scope = iota
	TopicScope
	GroupScope
	ClientMetricsScope
)

// Mode tells whether and where a broker key can be changed at run time
// (KIP-226).
type Mode uint8

// The update modes.
const (
	ReadOnly    Mode = iota // only in the file
	PerBroker               // for one broker
	ClusterWide             // for one broker or for all
)

// Support tells what Ottla does with a key.
type Support uint8

const (
	// Acted keys do what they say.
	Acted Support = iota
	// Harmless keys are accepted and not acted on: no safety, secrecy or
	// durability is lost. Values other than the default are reported.
	Harmless
	// Refused keys stop the start, or fail the topic, when they are given a
	// value other than the default and would be in use.
	Refused
)

// Source tells where the value of an entry comes from; the numbers are those
// of DescribeConfigs.
type Source int8

// The sources.
const (
	SourceUnknown              Source = 0
	SourceTopic                Source = 1
	SourceDynamicBroker        Source = 2
	SourceDynamicBrokerDefault Source = 3
	SourceStaticBroker         Source = 4
	SourceDefault              Source = 5
	SourceDynamicBrokerLogger  Source = 6
	SourceClientMetrics        Source = 7
	SourceGroup                Source = 8
)

// Use tells what must be in use before a Refused key has any effect. Where it
// is not in use, the key is merely reported. Where it is, the key that brings
// it into use (the listener, remote storage) is itself refused, once, so the
// keys that depend on it add nothing to the error.
type Use uint8

// The uses.
const (
	Always       Use = iota
	WithTLS          // a listener that speaks TLS
	WithSASL         // a listener that speaks SASL
	WithSecurity     // either
	WithRemote       // remote storage
)

// Defaults that are not a value: Null is Java's null, Required has none.
const (
	Null     = "\x00null"
	Required = "\x00required"
)

// Row is one configuration key.
type Row struct {
	Name     string
	Type     Type
	Default  string // as text; Null or Required where there is none
	Allowed  Allowed
	Scope    Scope
	Mode     Mode // broker rows
	Internal bool // accepted, but not described: for tests, as in Kafka
	Support  Support
	Use      Use    // Refused rows
	Reason   string // Refused rows: why, as half a sentence after a colon
	Doc      string // one sentence
}

// Sensitive tells the keys whose values are never shown.
func (r *Row) Sensitive() bool { return r.Type == Password }

// String gives Kafka's name of the type.
func (t Type) String() string {
	names := [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}
	if t < 0 || int(t) >= len(names) {
		return names[0]
	}
	return names[t]
}
