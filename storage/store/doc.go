// Package store keeps all logs of a node: it opens and locks the log directories, decides how far their content
// may be trusted, opens every partition, and keeps the files that speak of many partitions at once.
//
// What it is: when .lock, meta.properties, .kafka_cleanshutdown, the boot id and the four offset checkpoints are read
// and written (their formats are storage/logdir's); the choice of a directory for a new partition; the future log of a partition that moves, and the swap of the two; delayed
// deletion; directories and partitions that go offline; the schedule by which logs are maintained, flushed and
// checkpointed.
//
// What it is not: it knows no roles and no cluster. Which partitions belong here, and what their topics are
// configured to, is told to it. It does not load the metadata partition: it locks metadata.log.dir, checks it, and
// says where it is; controller/quorum opens what lies in it.
//
// Who calls it: cmd/ottla/internal/node opens, ticks and closes it; storage/replica creates, deletes and uses
// logs.
//
// The caller's duties, in order: Prepare (which changes nothing but .lock), open the metadata log (under
// MetadataTrust), Begin (from here on the directories count as in use), Load; SetExclusive before the first append;
// Tick at NextDeadline; Close last. Load vouches for the metadata log too when it writes the boot id, so whoever uses
// Open, which is Prepare, Begin and Load in one, opens no metadata log or trusts it no further than OtherBoot.
//
// Invariants:
//   - A clean-shutdown marker is removed, durably, before anything else in its directory changes, and written after
//     everything else is durable.
//   - The boot id of a directory is written only after every log in it was opened under the trust that the old one
//     allowed; a directory with a damaged partition has neither boot id nor marker, so nobody trusts it next time.
//   - The recovery point on disk is never above what is durable: a truncation below it lowers it first.
//   - A partition is created only after every checkpoint of its directory forgot a former one of the same name.
//   - One damaged partition, or one failed directory, does not keep the others from working.
//   - A partition's directory has the plain name in one place at most. A move renames the old one for deletion before
//     the future one gets the name, and a start puts a future log that is alone in its partition's place.
//   - No lock of this package is held over I/O on a log, and none while the replica's append lock is asked for.
//
// Start reading at store.go; then prepare.go and load.go (start), lifecycle.go (create, delete), schedule.go, future.go.
package store
