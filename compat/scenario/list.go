package scenario

import "slices"

// The clients, by their names in the table.
const (
	Franz     = "franz-go"
	Kcat      = "kcat"
	Confluent = "confluent-kafka"
	Java      = "java"
	Console   = "console"
)

// Clients are all columns.
var Clients = []string{Franz, Kcat, Confluent, Java, Console}

// Scenario is one row.
type Scenario struct {
	Name    string
	What    string
	Clients []string
	Run     func(*T)
}

// Streaming are the clients that can produce and consume at the same time; the console tools run one after the other.
var Streaming = []string{Franz, Kcat, Confluent, Java}

var (
	everyone  = Clients
	libraries = []string{Franz, Confluent, Java}
)

// List is every scenario that runs while the node stays up.
func List() []Scenario {
	list := slices.Concat(codecs(), records(), producing(), reading(), topics(), groups())
	for i, s := range list { // a second scenario of the same name would use the first one's topics
		for _, earlier := range list[:i] {
			if earlier.Name == s.Name {
				panic("two scenarios are called " + s.Name)
			}
		}
	}
	return list
}

// Names are the names of scenarios, in order.
func Names(list []Scenario) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return names
}
