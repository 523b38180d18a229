// Package machine is the contract between a replicated state machine (a core:
// controller/cluster now; groups and transactions later) and the shell that
// runs it on a log (controller/quorum; controller/shard later).
//
// The contract, in the order of a request's life:
//
//  1. Handle decides a request against the state as it is, pending writes
//     included, and changes nothing durable: it returns records, a reply and
//     effects. Volatile state (sessions, heartbeats) it may change at once.
//  2. The shell calls Apply with those records, at the offsets they will have.
//     Apply is the only way that durable state changes, now and by replay.
//  3. The shell appends the records and, once they are committed, calls
//     Committed; then it sends the reply and carries out the effects. A request
//     without records is answered when what was pending at its time is committed.
//  4. If the append fails after Apply, there is no rollback: the shell calls
//     Restore with what the log holds, replays, and answers everything that
//     was pending with a retriable code.
//
// A machine has no lock, goroutine, clock or I/O. It must be right if its
// volatile state vanishes at any moment.
package machine
