package config

import "ottla/protocol"

// Listener is one endpoint a node listens on or advertises.
type Listener struct {
	Name     string // upper case, as PLAINTEXT
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host     string // "" listens on all addresses
	Port     int32
}

// Voter is one voter of a static quorum.
type Voter struct {
	ID   protocol.NodeID
	Host string
	Port int32
}

// Address is a host and a port.
type Address struct {
	Host string
	Port int32
}

// BrokerConfig is the checked configuration of a node. It is immutable.
type BrokerConfig struct {
	NodeID     protocol.NodeID
	Broker     bool // process.roles has broker
	Controller bool // process.roles has controller

	Listeners               []Listener
	AdvertisedListeners     []Listener // of the broker's listeners
	AdvertisedControllers   []Listener // of the controller's own listeners
	ControllerListenerNames []string
	InterBrokerListener     string // a listener name; "" on a node that is no broker
	QuorumVoters            []Voter
	BootstrapServers        []Address

	LogDirs        []string
	MetadataLogDir string

	values   map[string]value
	given    map[string]Property
	listener map[string]Property // listener.name.… keys as given
}

type value struct {
	parsed any
	text   *string
}

// Report names what the node was told and does not do.
type Report struct {
	Unknown []Property // no such key
	Ignored []Property // Harmless rows with values other than the default
}

// Broker checks the properties of a node: every value against its row, and the
// rules between keys. The error names all faults at once, one sentence each
// (see Errors). The properties must have been merged by Layer.
func Broker(properties []Property) (*BrokerConfig, Report, error) { panic("todo") }

// Errors is what Broker returns: every fault, sorted by property.
type Errors []Fault

// Fault is one thing wrong with a configuration.
type Fault struct {
	Name string // the property
	Text string // a sentence: property, value, what is allowed
}

func (e Errors) Error() string { panic("todo") }

// Bool, Int, Long, Double, String and List give the value of a broker key by
// name: the node's own setting, or the default. They panic when the key is
// unknown or of another type: that is a fault of the program. Int serves short
// keys too; String serves class and password keys, and gives "" for null.
func (c *BrokerConfig) Bool(name string) bool { panic("todo") }

// Int gives an int or short key; see Bool.
func (c *BrokerConfig) Int(name string) int32 { panic("todo") }

// Long gives a long key; see Bool.
func (c *BrokerConfig) Long(name string) int64 { panic("todo") }

// Double gives a double key; see Bool.
func (c *BrokerConfig) Double(name string) float64 { panic("todo") }

// String gives a string, class or password key; see Bool.
func (c *BrokerConfig) String(name string) string { panic("todo") }

// List gives a list key; see Bool.
func (c *BrokerConfig) List(name string) []string { panic("todo") }

// IsNull tells a key without value.
func (c *BrokerConfig) IsNull(name string) bool { panic("todo") }

// Origin tells where the value of a key comes from.
func (c *BrokerConfig) Origin(name string) Origin { panic("todo") }

// ListenerValue gives the text of a key for one listener:
// listener.name.<listener>.<key> if set, else the key itself. ok is false when
// the value is null.
func (c *BrokerConfig) ListenerValue(listener, key string) (text string, ok bool) { panic("todo") }

// ListenerInt gives an int key for one listener; see ListenerValue.
func (c *BrokerConfig) ListenerInt(listener, key string) int32 { panic("todo") }
