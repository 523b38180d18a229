// Package broker is this node as a member of its cluster: it registers with the
// active controller and sends heartbeats (Lifecycle), turns what changed between
// two Images into roles of replicas and settings of logs (Applier) and into loads
// and unloads of coordinators (Coordinators), reports in which directory a
// replica lies, and draws producer ids in blocks (ProducerIDs). For transactions
// it has their markers written (Markers) and asks their coordinators about what
// producers write to (Additions). Under controllers of other nodes it also has a
// Channel to the active one, forwards clients' requests in envelopes (Enveloped), and
// asks for the in-sync replicas that leaders here wish for (ISRChanges).
//
// It is not the controller and takes no request of a client. It reaches the
// controller and other brokers only by the functions Send and SendTo that node
// hands in, which are the same whether that is this process or another machine.
//
// No goroutine, timer or clock: each part has Tick(now) and NextDeadline, and
// takes replies to what it sent into a queue that the next Tick reads, after
// calling Wake.
//
// Invariants: a heartbeat is sent only with the epoch of the last registration;
// at most one registration, heartbeat or report is on its way at a time; Images
// are applied in the order in which they were published.
//
// Start reading at lifecycle.go and applier.go.
package broker
