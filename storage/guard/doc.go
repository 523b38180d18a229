// Package guard keeps a disk that hangs from keeping everybody: whoever waits for one of its operations comes back.
//
// What it is: a vfs.FS over another one. Operations in guarded directories go through a Runner, which may give one up:
// the caller gets vfs.ErrStalled, which is EIO to whoever knows only broken disks, and so does everybody after him at
// once. The locks that he holds are let go as after any other error.
//
// What it is not: it has no clock and no goroutine. How long an operation may take, and where a system call hangs on, is
// the business of the Runner. It does not take a directory offline: storage/store does, when it meets the error.
//
// Who calls it: cmd/ottla/internal/node puts it between the operating system and everything else.
//
// Invariants:
//   - After ErrStalled no operation of a directory reaches the disk but those that were under way. They may still happen,
//     each or not, in any order, as if the process had been killed at that moment: a log has one writer, which waits for
//     each operation. So a start that does not trust the page cache finds nothing that it does not know.
//   - What an operation that was given up reads, and what it writes to, is not its caller's memory; but for the bytes of
//     a WriteVectorAt, which must never change then: they are records, which are not copied.
//   - A file that is opened, or a lock that is taken, when nobody waits for it any more is closed again.
//   - The lock of a directory that was given up is held as long as the process lives.
//
// Start reading at guard.go, then file.go.
package guard
