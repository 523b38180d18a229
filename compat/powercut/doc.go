// Package powercut cuts the power of a real file system under a broker, and knows what must be there afterwards.
//
// Disk is an ext4 or xfs on a loop device; Cut stops it as a power cut would (the file systems' own shutdown call:
// nothing that is not on the device gets there any more), Remount brings it back with what its journal has. Load is
// what runs before a cut: an idempotent producer, transactions, commits of groups, topics that come and go, each
// noting what was acknowledged. Judge reads everything after the restart and holds it against the notes.
//
// Needs root, for the loop device and the mount. Used by compat/powercut_test.go; start reading at disk.go.
package powercut
