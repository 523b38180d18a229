// Package protocol is the vocabulary that every other package shares: offsets,
// epochs and ids as types of their own, Kafka's error codes, and the table of
// APIs of Apache Kafka 4.4.0.
//
// It knows nothing of sockets, disks or clusters, and holds no state. Everyone
// may import it; it imports nobody. Start reading at ids.go.
package protocol
