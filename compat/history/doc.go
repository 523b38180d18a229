// Package history judges what clients of a log saw: it takes a history of
// operations (transactions, plain sends and reads, commits of offsets, looks at the
// ends of partitions) and names every anomaly in it. The definitions are those of
// Jepsen's checker for Kafka, with what it does not look at: torn transactions,
// offsets that go back, a last stable offset that is stuck, zombies, values that
// vanish, copies that are not exact.
//
// It is pure: no clock, no I/O, no goroutine, and it knows no server and no client
// library. Package chaos feeds it with what real clients saw, the simulator with
// what simulated ones saw.
//
// Every value that is sent is unique in the whole history. The version order of a
// partition is the order of the offsets that acknowledgements and reads name; gaps
// are legal (markers occupy offsets). What nobody knows is never held against
// anybody: an operation whose outcome is Unknown counts as committed from the moment
// that a reader of committed data returns one of its values.
//
// What Kafka allows (writes in a circle, reads and writes in a circle, a reader that is behind) is told beside the anomalies and is
// none: allowed.go.
//
// Start reading at history.go (what an operation is), then check.go.
package history
