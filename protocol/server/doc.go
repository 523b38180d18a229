// Package server is the socket side of a Kafka node: it accepts connections,
// cuts them into requests, hands each to a Handler and writes the replies in
// the order of the requests, record bytes by sendfile.
//
// It is not a broker: it knows frames and headers, no API's meaning and no
// body. node makes a Server, gives it listeners and the api package's Handler;
// two nodes' worth of one process speak through ServeConn over NewPipe.
//
// A connection has two goroutines. The reader takes a frame, charges it to the
// listener's memory budget, and calls Handler.Handle; it goes on with the next
// frame as soon as Handle returns, whether the reply is there or not. The writer
// sends what stands ready at the head of the queue. Between them is that queue:
// one Request an entry, at most Options.MaxOutstanding of them. A small reply that
// is there when Handle returns is sent by the reader itself (replyNow); one of the
// two sends at a time.
//
// The handler's duties: each Request gets exactly one of Reply, ReplyFetch,
// ReplyNothing and CloseConnection, from any goroutine, now or later. Body (and
// Frame) may be used until Handle returns; who keeps bytes of a Frame longer
// calls Frame.Retain, who keeps bytes of a Body without Frame just does.
//
// Invariants:
//   - Nothing is allocated on a declared length alone: the budget grants first,
//     and beyond 1 MiB the first 64 KiB must have come.
//   - Whatever a peer does or fails to do, its connection holds a bounded number
//     of bytes and requests, and ends after a bounded silence.
//   - Every region of a Fetch reply is released once, sent or not.
//   - The accept loop ends only by Close.
//
// Start reading at server.go, then conn.go, request.go and write.go.
package server
