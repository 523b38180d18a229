package config

// Type is the type of a configuration value; the numbers are those of
// DescribeConfigs (KIP-569).
type Type int8

// The types of Kafka's ConfigDef.
const (
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

// Null is the Default of a row whose default value is Java's null.
const Null = "\x00null"

// Row is one configuration key.
type Row struct {
	Name    string
	Type    Type
	Default string // as text; Null where there is none
	Allowed Allowed
	Scope   Scope
	Mode    Mode // broker rows
	Support Support
	Reason  string // of a refusal: why, as a sentence
	Doc     string // one sentence
}

// Allowed describes the values a row takes, besides those its type forbids.
// The zero Allowed allows all.
type Allowed struct {
	Min, Max *float64
	OneOf    []string              // for lists: of every element
	Check    func(value any) error // what neither of the above can say
	Text     string                // describes Check
}

// Rows gives all rows of a scope, sorted by name.
func Rows(scope Scope) []*Row { panic("todo") }

// Find gives the row of a key, nil when there is none. Listener-scoped broker
// keys (listener.name.….ssl.keystore.location) give the row of the key after
// the prefix.
func Find(scope Scope, name string) *Row { panic("todo") }

// Sensitive tells the keys whose values are never shown.
func (r *Row) Sensitive() bool { return r.Type == Password }
