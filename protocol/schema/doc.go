// Package schema knows the records that Kafka keeps in its own logs: those of
// the controller in __cluster_metadata, and those of the coordinators in
// __consumer_offsets, __transaction_state and __share_group_state. It gives a
// struct for each, reads and writes every version of Apache Kafka 4.4.0, and
// prints them as Kafka's dump tool does.
//
// It does not know batches (protocol/record), nor what the records mean
// (controller/…), nor the control records of KRaft (leader change, voters,
// snapshot header), which are messages of the protocol.
//
// controller/metadata, the controller core and the coordinators build and read
// records with it; the dump command prints them.
//
// Invariants:
//   - No bytes make a reader panic, and none make it allocate more than 64 times
//     their length and 64 KiB.
//   - What was read is written back byte for byte, if it was written by Kafka:
//     tagged fields that are not known are kept.
//   - A type or version that is not known is an *UnknownRecordError, never
//     skipped in silence.
//   - Nothing set is lost on writing: a version without room for a field that
//     Kafka does not call ignorable is a panic that names it.
//   - Make records with their New functions: the default of many a field is not
//     zero (PartitionChangeRecord.Leader is -2, "unchanged").
//
// The structs and codecs (*_gen.go) are made by "go generate" from the files in
// definitions/, whose form gen/main.go describes. Start reading at record.go.
package schema

//go:generate go run ./gen definitions .
