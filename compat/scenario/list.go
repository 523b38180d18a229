package scenario

import "slices"

// The clients, by their names in the table.
const (
	Franz        = "franz-go"
	Kcat         = "kcat"
	Confluent    = "confluent-kafka"
	Java         = "java"
	Console      = "console"
	Sarama       = "sarama"
	KafkaGo      = "kafka-go"
	Rdkafka      = "rdkafka"
	KafkaPython  = "kafka-python"
	Aiokafka     = "aiokafka"
	KafkaJS      = "kafkajs"
	Platformatic = "platformatic-kafka" // @platformatic/kafka: a name in the table is part of names of topics
)

// Clients are all columns.
var Clients = []string{Franz, Kcat, Confluent, Java, Console, Sarama, KafkaGo, Rdkafka, KafkaPython, Aiokafka, KafkaJS, Platformatic}

// Scenario is one row. Every client takes part in it that cannot.go does not except.
type Scenario struct {
	Name string
	What string
	Run  func(*T)
}

// List is every scenario that runs while the node stays up.
func List() []Scenario {
	list := slices.Concat(codecs(), records(), producing(), reading(), topics(), groups(), churn(), Transactions())
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

// Rows are the names of all rows: those of List and of Restarts.
func Rows() []string {
	rows := append(Names(List()), Names(OldTransactions())...)
	for _, r := range Restarts() {
		rows = append(rows, r.Name)
	}
	return rows
}

// Partakes says whether a client takes part in a row.
func Partakes(client, row string) bool {
	_, cannot := Cannot(client, row)
	return slices.Contains(Clients, client) && !cannot
}
