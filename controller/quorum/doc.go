// Package quorum is the shell that keeps the metadata log: it runs the raft
// core and the controller's state machine over __cluster_metadata-0, with its
// snapshots and its quorum-state file, and publishes an Image of the cluster
// for everything that is committed.
//
// It is not the controller: it does not know what a topic is (controller/cluster
// does; node plugs it in as a machine.Machine), and it answers no wire request.
//
// One caller at a time works in the shell: Submit puts a request into a bounded
// queue, and whoever finds nobody at work drains it. All requests that are
// found waiting are decided one after another and share one batch, one write
// and one fsync; replies and the published Image follow when the high watermark
// has passed them. A result that may be divided becomes several batches if it is
// large, each durable before the next. Duties of the shell that write by
// themselves (an election, a snapshot, the end) run alone, between batches.
//
// The Image is published before the replies are sent: who was told that a topic
// exists finds it in the Image.
//
// A start reads before it writes. The newest snapshot and the whole log are
// checked and replayed; only then is the log opened, and only after that an
// election is written. A directory that is refused (*DamagedError, records that
// are not known, records that do not apply) is left as it was. Since each batch
// was durable before the next was begun, only the last can be torn, and check.go
// tells that from damage. What no reader of such a log can tell, here as in
// Apache Kafka: that whole batches are missing at the end, or that from the
// beginning of a batch to the end of the file everything is garbled after a power
// cut. Producer snapshots (written at each roll and clean stop) and metadata
// snapshots narrow that. quorum-state has no checksum; where it is missing, the
// epoch comes from the log, as in Apache Kafka, which with one voter is safe: it
// leads a higher epoch than any in the log.
//
// A write that finds no space is taken back: the machine is restored from the
// log, whoever waited gets NOT_CONTROLLER, and it goes on. Any other failed write,
// and any failed fsync, ends the quorum at once (OnFatal) and is never retried.
//
// On a node that is no controller the quorum observes (Options.Observe): it follows
// the leader of other nodes into the same log, publishes what the leader says is
// committed, and decides nothing. What came over the network waits for the next Tick,
// so whoever does not tick it finds that nothing moves. It publishes no Image before
// it has had everything that was committed when it first heard of the leader: an older
// one would make a broker set aside what is its own. It does not flush the log: what
// is not valid at the start, and what is behind that, it takes off and fetches again;
// whoever votes must not.
//
// No goroutine, clock or randomness: node calls Tick at NextDeadline. OnImage
// and the callbacks of Submit run on the caller's goroutine without any lock of
// this package; they may call Submit.
//
// Start reading at quorum.go, then submit.go; replay.go and check.go are the
// start, snapshot.go the snapshots; observe.go, fetch.go and download.go are the
// observer.
package quorum
