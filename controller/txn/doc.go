// Package txn is the core of the transaction coordinator: it decides what
// requests of transactional producers and administrators turn into, as records
// of one partition of __transaction_state, which holds many transactional ids.
//
// It is a machine.Machine. Handle takes one of the requests of requests.go and
// answers at once: with the type that the request names, or with a
// *protocol.Error. A request that would need a producer id that nobody has drawn
// yet is answered NeedsProducerID; it is sent again with one. Nothing is parked.
// The effects are WriteMarkers, which node carries out and reports back by
// MarkersWritten, and DrawProducerID, reported by ProducerIDDrawn.
//
// It is not the authorizer and knows neither versions of requests nor which
// partition holds an id nor which topics exist: api has looked all that up. It
// writes no marker itself. It has no lock, goroutine, clock or I/O.
//
// # A transaction's life
//
//	          InitProducerID            AddPartitions           EndTxn             all markers written
//	(nothing) ──────────────→ Empty ──────────────→ Ongoing ──────────→ Prepare… ──────────→ Complete…
//	                            ↑ ↑                    │ InitProducerID      ↑                  │
//	                            │ └────────────────────┼─────────────────────┼── InitProducerID ┤
//	                            │                      └─ timeout ───────────┘    AddPartitions ┘→ Ongoing
//	                            └ transactional.id.expiration.ms after the last change: forgotten
//
// The record of Prepare… decides the outcome for all partitions. From there on
// there is one way only, over any number of failures: markers to every partition
// of the transaction, then the record of Complete…. What has no partition goes
// from one to the other in one batch.
//
// Epochs fence: InitProducerID bumps the epoch, and so does the coordinator's own
// abort (timeout, or InitProducerID while a transaction is Ongoing); with
// transactions v2 (KIP-890) so does every end. An epoch of 32766 is the last that
// a producer is given; then it gets another producer id at epoch 0.
//
// # What is durable
//
// Only Apply changes what is durable: the fields of TransactionLogValue. The rest
// may vanish at any moment:
//
//	the epoch before the last bump (KIP-360)    a retry of InitProducerID over a failover is
//	                                            fenced, as with Apache Kafka; but after an end
//	                                            that bumped the epoch the record tells of it
//	which partitions have their marker          Activate asks for all markers anew; a marker
//	                                            that is written twice changes nothing
//	a producer id drawn in advance              another is drawn
//	when to look for timeouts and old ids       a whole interval from Activate
//
// A state that Apache Kafka calls pending is no state here: a decision is applied
// at once, and the shell holds its reply until it is committed. So requests that
// come while a record is being written are decided, where Apache Kafka has them
// try again.
//
// # What only the present coordinator may say
//
// A broker that was paused or cut off believes for a moment that it still is the
// coordinator, and knows less than its client. What it would write is not
// committed; but a refusal writes nothing, and a producer that is told that it is
// fenced, not known or in the wrong state ends. So where a later coordinator could
// say otherwise, the record is written once more as it is, for an id without one a
// tombstone, and the reply is held until that is committed (confirm, decision.go).
// The same goes for what transactions v1 has without a record, of an epoch that
// several transactions share: an outcome, or a partition, that is there already.
// Apache Kafka answers at once. An epoch below that of now needs no proof.
//
// # What has its place here and is not built
//
// Two-phase commit over several systems (KIP-939): a timeout of MaxInt32 already
// never ends a transaction; keeping a prepared one over InitProducerID is a case
// in initproducerid.go, and its second epoch has its field in the record
// (nextProducerEpoch). No version of InitProducerId that is served asks for it.
//
// # Invariants
//
//   - All partitions of a transaction get the same marker: the outcome, the
//     partitions, the producer and the epoch of WriteMarkers are those of the
//     Prepare… record and of no other moment.
//   - Complete… is written only after every partition has reported.
//   - No producer is told by a former coordinator that it is not the one of now, but
//     for one whose epoch was given away.
//   - Of one producer id the epoch only rises, and a request with a lower one
//     changes nothing.
//   - A transaction that is Ongoing past its timeout is aborted at the next look.
//   - What reaches a record, reply or effect never depends on the order of a map.
//
// Start reading at coordinator.go, then transaction.go (the state) and end.go.
package txn
