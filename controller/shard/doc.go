// Package shard is the shell that runs coordinators: one replicated state
// machine (machine.Machine) on each partition of an internal topic that this
// node leads, groups on __consumer_offsets and transactions on
// __transaction_state. A Manager holds the shards of one topic.
//
// It does not know what a group or a transaction is (node hands in a func that
// makes machines), answers no wire request (api calls Submit) and decides
// nothing about leadership (broker calls Load and Unload as Images change).
//
// # A shard's life
//
//	idle → loading → loaded → active → idle
//	          ↑ ↓                ↓
//	        failed ←── loading ←─┘ an append failed, or the leadership is in doubt
//
// Loading replays the log from its start to its end, a bounded number of bytes
// a step, so that a large partition holds up no other. Requests meanwhile get
// COORDINATOR_LOAD_IN_PROGRESS, and where nothing is loaded NOT_COORDINATOR. The
// machine is activated by whoever brings the time after the last step.
//
// # A request's life
//
// Submit puts a request into the shard's bounded queue; whoever finds nobody at
// work drains it. What waits is decided request after request (Handle, then
// Apply) and shares one batch. One batch at a time is on its way into the log:
// only when the log has taken it, at the offset that the machine was promised,
// the next follows, so that a batch that was refused can never be followed by
// one that builds on it. Batches that are in the log do not wait for each
// other's high watermark. Replies and effects are held until the high watermark
// has passed what was pending when they were decided. This is what acks=all
// means, and what Apache Kafka's coordinators do (CoordinatorRuntime appends with
// acks=1 and listens to the high watermark): with too few in-sync replicas the
// high watermark stands still, and replies that wait longer than
// Options.ReplyTimeout become COORDINATOR_NOT_AVAILABLE, though the records may
// be committed later.
//
// If an append fails there is no rollback: everything pending and everyone
// parked is answered with the retriable code (CoordinatorError), and the log is
// replayed. The same happens when a machine decides more than one batch can
// hold.
//
// # Invariants
//
//   - Every done is called exactly once, whatever happens: reply, failure,
//     unload, timeout, close.
//   - Nothing is acknowledged that is not committed by this leader in this epoch:
//     the high watermark counts only if the replica still leads in the shard's
//     epoch after it was read.
//   - What the machine applied is what the log holds, in the same order, at the
//     same offsets, with the same timestamps; or the shard is being loaded anew.
//   - Callbacks of an earlier life (before a load, failure or unload) change
//     nothing: each carries the number of its life.
//
// # Locks
//
// A shard's state belongs to whoever drains its queue; queueMu guards only the
// queue. The deadline index and the load queue of the Manager have a mutex each.
// All three are leaves, and none is held during a callback. There is no
// goroutine, timer or clock: node calls Tick at NextDeadline, and Workers run
// load steps elsewhere.
//
// Start reading at manager.go, then shard.go; decide.go and write.go are a
// request's way down, load.go is the replay.
package shard
