// Package harness runs servers of either kind for the compatibility suite: the built Ottla binary, and Apache Kafka
// itself. It makes a temporary directory and free ports for a node, writes its server.properties, starts it, waits until
// it answers, stops it (SIGTERM) or kills it (SIGKILL), always by the process id it started, and keeps its log. It can
// also look at what a node has written: the batches of a segment file, the memory of its process.
//
// It is not a client and holds no scenario: that is package suite and its clients. It knows nothing of Ottla's inside;
// everything here is done through the command line, sockets and files, so that the same test judges both servers.
//
// Called by the tests in compat/ (build tag compat) and by the clients for the paths of their programs.
//
// Invariants: two nodes never share a port or a directory; a Node that was started is ended by Close; no process is
// ended that this package did not start.
//
// Start reading at node.go.
package harness
