// Package fetcher copies the records of other brokers' partitions to the replicas of this node that follow them: which
// partitions to ask which leader for, over which fetch session, what to do with the answers, and when to ask again.
//
// What it is not: it keeps no log and decides nothing about one: storage/replica appends, truncates and fences by epoch.
// It opens no connection: Options.Send reaches a broker. The metadata log has a fetcher of its own, in the raft core.
//
// Who calls it: broker assigns and unassigns partitions as the metadata gives and takes roles, always after the replica
// has taken its own (replica.Manager.Apply); node ticks it and hands in Send.
//
// No goroutine, timer or clock: a fetcher runs in steps on Options.Workers. One is started by Tick, or by the answer to
// a request, and ends by sending the next one.
//
// Invariants:
//   - A partition is with one fetcher at a time, in one leader epoch; what comes for another epoch has no effect.
//   - A fetcher has at most one request on its way, and handles its answer before it sends the next.
//   - The offset of a fetch is the end of the follower's log, where flush.messages is 1 the durable end: it is what the
//     leader takes for acknowledged.
//   - Each frame of an answer is released exactly once.
//
// The rules are those of AbstractFetcherThread, ReplicaFetcherThread and FetchSessionHandler of Apache Kafka 4.4.0
// (KIP-101, KIP-227, KIP-320, KIP-595, KIP-903). Start reading at fetchers.go, then step.go and handle.go.
package fetcher
