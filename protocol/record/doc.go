// Package record reads, checks, changes and builds record batches of format 2
// (KIP-98), the one form in which records travel and lie on disk.
//
// A Batch is a view: a byte slice with methods that read its header in place.
// Nothing here copies the bytes of an uncompressed batch.
//
// It is not the log: offsets are stamped, sequences judged and batches kept
// elsewhere (storage/log, storage/producer). It knows no files and no
// requests. Formats 0 and 1 are recognised only to be refused.
//
// Callers are the produce path (OneBatch, Validate, the setters), the logs and
// the raft (Next, the getters), the cleaner and coordinators (Records,
// Builder), and the offline tools.
//
// Invariants:
//
//   - No function panics, loops or allocates at the word of a length or count
//     in foreign bytes; Batch methods may assume what Next and OneBatch have
//     checked: magic 2 and exactly one whole batch.
//   - Keys, values and headers of a Record alias the payload they came from.
//   - What Validate refuses, and with which code, is what the log validator
//     and the log of Apache Kafka 4.4.0 do (testdata/validate has its verdicts).
//
// Start reading at batch.go, then record.go and validate.go; control.go and
// controlkraft.go hold the control records.
package record
