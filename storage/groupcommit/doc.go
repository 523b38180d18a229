// Package groupcommit makes durable together what was written to several logs of one log directory: who asks while others do is
// answered by one sync of the whole file system for all of them, where that is quicker than an fdatasync for each.
//
// Each fdatasync of a file that has grown is a commit of the file system's journal and a flush of the device, of which one does
// for any number of files.
//
// What it is not: it gathers nobody who writes to the same log; that is the replica's queue and Log.Flush. It waits for nobody:
// a round takes those who came while the one before it ran.
//
// Who calls it: storage/log, for each flush; storage/store makes one Directory for each log directory.
//
// Invariants:
//   - Sync returns nil only after a sync that began after the call, of the file or of the file system it is in.
//   - A failed sync is an error for everybody whom it was to answer, and is not tried again: the file system reports each failed
//     write once (RELIABILITY: fsync is not retried over). So one that failed for somebody else's file fails the directory too.
//   - Where the whole file system cannot be synced reliably (vfs.SyncWhole), each file is.
//
// Which way is quicker depends on the disk, and on what others have written there, which a sync of the file system writes too. So
// both are measured, by how long those who ask have waited, and the slower one is tried again when a thirtieth of the time spent
// waiting pays for it.
//
// Start reading at groupcommit.go.
package groupcommit
