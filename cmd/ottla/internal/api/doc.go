// Package api answers requests: one file an API, each a page that reads straight
// down from the decoded message to the call into storage or controller and back
// to the response. registry.go is the one table of what this build serves; nothing
// is advertised that is not in it, and nothing else is answered.
//
// It is not the wire (protocol/wire decodes, protocol/server owns connections and
// the order of replies) and keeps no state of the cluster: what it knows it reads
// from the metadata Image of the moment, from the replicas, or from the active
// controller. The only state here is the cache of fetch sessions. node makes a
// Node and a Handler and gives the Handler to protocol/server, for the broker's
// and the controller's listeners alike.
//
// No goroutine, no clock: the time of a request is when it was received. What
// cannot be answered at once is answered by the callback of whoever was asked,
// from whatever goroutine that runs on.
//
// Invariants:
//   - Every request gets exactly one reply, or its connection is closed.
//   - A response has the version of its request.
//   - What a caller may not see and what does not exist are answered alike.
//   - Bytes of a Produce frame are held until the replica has them in its log, and
//     every region of a fetch is released once.
//   - A panic in a handler ends the connection and not the process, unless it came
//     out of storage or controller, whose state may then be half changed: see
//     guard.go.
//
// Start reading at registry.go and handler.go, then produce.go.
package api
