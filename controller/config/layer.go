package config

// Origin tells which layer a property of a node comes from.
type Origin uint8

// The origins, weakest first.
const (
	FromDefault Origin = iota // the table's default
	FromBuiltin               // Default(): no file was given
	FromFile
	FromEnv
	FromOverride
)

// Property is one setting of a node, as it was given.
type Property struct {
	Name, Value string
	Origin      Origin
	Where       string // "server.properties line 12", "OTTLA_NODE_ID"
}

// Layer merges the layers, weakest first, into one list sorted by name: for
// every name the property of the last layer that has it.
func Layer(layers ...[]Property) []Property { panic("todo") }

// FromEnvironment reads the properties among the environment's NAME=value
// strings: OTTLA_ and the name in capitals with "_" for ".", "__" for "_" and
// "___" for "-". The result is sorted by name.
func FromEnvironment(environ []string) []Property { panic("todo") }

// FromOverrides reads the values of --override: key=value.
func FromOverrides(overrides []string) ([]Property, error) { panic("todo") }

// Default gives the properties of a node that was given no file: broker and
// controller in one, PLAINTEXT on localhost:9092, the controller on
// localhost:9093, data in ./data, and the internal topics with one replica.
func Default() []Property { panic("todo") }
