// Package many shows what a node with many partitions costs, idle and after a kill, as a test of the built binary or of
// Apache Kafka: memory and open files of an idle partition, how long a start and a stop take, and how soon everything is
// served after kill -9.
//
// It asserts what does not depend on how busy the machine is; times it prints. CI runs a small form; the sizes are taken from
// the environment (compat/run.sh many).
//
// Start reading at many_test.go.
package many
