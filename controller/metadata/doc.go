// Package metadata is the state that the records of __cluster_metadata add up
// to: brokers, controllers, topics, partitions, configs, features, and what is
// kept for others (quotas, ACLs, SCRAM credentials, delegation tokens).
//
// An Image is immutable and made of persistent maps: a change costs O(log n)
// and shares everything else with the Image before it, so an old Image stays
// valid for whoever holds it, for nothing but its memory. A Delta is an Image
// in the making: records are replayed into it, Build gives the new Image, and
// Diff tells what two Images do not have in common. A Loader makes Images out
// of committed batches, or of a snapshot. Image.Records is the way back, from
// an Image to the records of a snapshot.
//
// It decides nothing: which records to write is the controller core's affair
// (controller/cluster), and no log, file, clock or lock is in sight. The
// quorum's shell feeds it, and everyone who asks about the cluster reads it:
// the controller core, the broker, every API.
//
// Invariants:
//   - Replaying the records of a snapshot of an Image gives an equal Image.
//   - Images are published at the ends of committed batches and never inside a
//     metadata transaction (KIP-868); of an aborted transaction nothing is left.
//   - A record that is not known, or that does not fit the Image, is an error
//     that names it; nothing is skipped.
//   - What is in an Image is never written to again: callers treat every slice,
//     map and pointer they get as read-only.
//
// Start reading at image.go, then delta.go and loader.go. version.go and
// features.go have the tables of metadata.version and the other features.
package metadata
