// Package client is one connection to another Kafka node, as brokers and
// controllers hold them: requests are pipelined, versions negotiated, and the
// connection is made again when it breaks.
//
// It is not a client library: it knows no cluster, no leader and no retry. Each
// request is sent once; if the connection breaks before its reply, its callback
// gets ErrDisconnected and the caller decides. replica, quorum, shard and broker
// call it.
//
// Invariants:
//   - Every callback is called exactly once: with the response, or with an
//     error after the request's timeout at the latest. Close calls the rest.
//   - Requests go out in the order of Send, on one connection.
//   - At most Options.MaxOutstanding requests wait at once.
//
// Callbacks run on the client's goroutines (or within Send, if the request is
// refused at once). They must not block; they may call Send and Close.
//
// Start reading at client.go, then session.go.
package client
