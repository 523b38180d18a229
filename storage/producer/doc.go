// Package producer is what one partition remembers of its idempotent and transactional producers: the last
// five batches of each, its epoch and sequence, the transactions that are open, and from these the first
// unstable offset, which bounds what read_committed consumers may see.
//
// It follows ProducerStateManager, ProducerAppendInfo and ProducerStateEntry of Apache Kafka 4.4.0, and its
// .snapshot files are theirs byte for byte (ProducerSnapshot.json).
//
// It is a core: no lock, file, clock or logger. The caller, storage/log, holds a lock around it, reads and
// writes the snapshot files, and tells the time.
//
// While transactions are verified (KIP-890), the first batch of one is only taken with the guard that
// BeginVerification gave before the coordinator was asked; verify.go tells why.
//
// Invariants:
//
//   - Check changes nothing; Apply is called for every batch of the log in offset order, whoever wrote it, so
//     state rebuilt from the log equals state kept while appending.
//
//   - What is applied before the bytes are written can be taken back (Mark, Rollback) until Commit.
//
//   - Beginning or ending a transaction and asking for the first unstable offset cost a binary search, however many
//     transactions are open, and a transaction that hangs does not make the lists grow.
//
// Start reading at state.go, then check.go, transactions.go, verify.go and snapshot.go.
package producer
