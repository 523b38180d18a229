// Package vfs is the file system that everything under storage/ and controller/ sees: the operating system's,
// or a deterministic disk in memory whose power can be cut.
//
// What it is: two small interfaces, FS and File, with three implementations. OS() passes calls on to the
// kernel (pread, pwritev, fdatasync and flock on Linux; portable calls elsewhere). NewMem() keeps a disk
// in memory and knows, for every byte and every directory entry, whether it was made durable; Crash gives
// a disk as a power cut might leave it, Kill one as the death of the process leaves it, and OnOperation
// sees every operation, to record it or to make it fail. CrashStates goes through the classes of what a
// power cut may leave, where Crash draws one. NewOverlay shows another file system and keeps every change in memory.
//
// What it is not: it does not retry, cache, or repair. A failed Sync is reported once and must never be
// retried over (DESIGN.md: an fsync error takes the log directory offline); Mem behaves like Linux there
// and drops the dirty state, so that code which tries again loses data in a test.
//
// Who calls it: storage/segment, log, clean, store, controller/quorum and cmd/ottla/internal/offline.
//
// Invariants:
//   - After File.Sync or SyncData returned nil, the bytes and the size of the file survive Crash.
//   - After FS.SyncDir returned nil, the entries of that directory (creations, renames, removals) survive
//     Crash; the content of the files behind them does so only after their own Sync.
//   - A rename is atomic under Crash: afterwards the new name leads to the old file or to the new one.
//   - Clones made by Crash and Kill share nothing that can change with the disk they were made from.
//   - Mem takes all randomness from the function it was given and asks for it in a fixed order.
//
// Start reading at vfs.go, then mem.go and crash.go.
package vfs
