// Package chaos lets real clients work on a node that is killed, stopped, suspended
// and slowed down, writes down what each client saw, and has package history judge it.
//
// The workers: idempotent producers, transactional producers (several partitions,
// commits and aborts, some abandoned in the middle, some that go on as zombies after
// a new instance has taken their id), copy loops that consume, transform and produce
// in transactions (also those of other clients, whom only their output is judged by),
// readers of committed data and of all, committers of offsets, and a watcher of high
// watermarks and last stable offsets. The faults follow from a seed.
// After the faults every open transaction must end by itself, and everything is read
// once more.
//
// It knows servers only by their address and by package harness, so that the same run
// judges Apache Kafka. It is not a test of speed.
//
// Start reading at run.go, then transactions.go.
package chaos
