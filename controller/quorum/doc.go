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
// has passed them. So the metadata log always consists of batches each of which
// was durable before the next was begun, which is what lets a start tell a torn
// tail (cut) from damage (refused by name, see check.go).
//
// The Image is published before the replies are sent: who was told that a topic
// exists finds it in the Image.
//
// No goroutine, clock or randomness: node calls Tick at NextDeadline. OnImage
// and the callbacks of Submit run on the caller's goroutine without any lock of
// this package; they may call Submit.
//
// Start reading at quorum.go, then submit.go; replay.go is the start.
package quorum
