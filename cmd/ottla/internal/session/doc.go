// Package session keeps incremental fetch sessions (KIP-227): what a consumer or
// follower fetches, so that a request need only name what changed, and a
// response only what is new.
//
// It is a core: no lock, no clock, no I/O. It reads no log and resolves no
// topic; the api package holds a lock around it, asks Decide what a Fetch is to
// read, reads it, and lets Update pick what the response carries:
//
//	context, err := cache.Decide(now, req, topicName) // err: the top-level code
//	results := …read context.Partitions()…
//	reply := context.Update(now, results)             // reply.Dropped: release their records
//
// Reading happens without the lock: Decide and Update may lie far apart, and the
// session may be evicted, closed or used by a duplicate request in between.
//
// Invariants:
//   - At most Options.Slots sessions, and Options.MaxPartitions partitions in
//     all of them. A Fetch that finds no room is served without a session.
//   - A session id is never 0 and never given to two sessions at a time; an
//     epoch is never 0, and wraps to 1.
//   - A partition with records or an error is in every response; the ones with
//     records then go to the end of the session's order, so that a small
//     response does not always serve the same.
//
// The rules are those of FetchManager, FetchSession and FetchSessionCacheShard
// of Apache Kafka 4.4.0; a test replays what they decided. Start reading at
// context.go.
package session
