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
// A request whose answer must wait for other requests (a member that joins a
// group waits for the others) is parked: its Reply is Parked with a token, and
// a later Result, of another request or of a Tick, has the effect Respond with
// that token. The shell keeps token → callback from the moment Handle returns
// Parked, whether or not that Result's records are committed yet; it holds a
// Respond as it holds the Reply of the Result that it came with. Each token is
// answered exactly once: by one Respond, never in the Result that parked it, or
// by the shell, with a retriable code, when it calls Restore or Resign, after
// which the machine knows the token no more. Tokens are never used twice by one
// machine. A client that went away is not told to the machine: its answer has
// nowhere to go, that is all.
//
// A machine has no lock, goroutine, clock or I/O. It must be right if its
// volatile state vanishes at any moment.
package machine
