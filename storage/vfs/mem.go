package vfs

// Mem is a disk in memory whose power can be cut. It is an FS; all methods may be called concurrently.
type Mem struct{ FS }

// NewMem returns an empty disk. random decides what Crash leaves; nil means that Crash loses everything
// that was not synced.
func NewMem(random func() uint64) *Mem { panic("vfs: being written") }

// Crash returns the disk as a power cut at this moment may leave it: all that was synced, and of the rest
// what random chooses: pages, sizes and directory entries, each kept or lost. The boot id is a new one.
func (m *Mem) Crash() *Mem { panic("vfs: being written") }

// Kill returns the disk as the death of the process at this moment leaves it: the page cache whole, locks
// released, the same boot id; what was not synced is still not durable.
func (m *Mem) Kill() *Mem { panic("vfs: being written") }

// OnOperation sets a hook that sees each operation before it happens. An error from the hook makes the
// operation fail with it; see Operation for how much of a write happens then. nil removes the hook.
func (m *Mem) OnOperation(hook func(op Operation) error) { panic("vfs: being written") }

// Kind is the kind of an operation.
type Kind int8

// The kinds of operations that a hook sees.
const (
	OpOpen Kind = iota
	OpCreate
	OpRead
	OpWrite
	OpTruncate
	OpSync
	OpSyncDir
	OpRename
	OpRemove
	OpMkdir
	OpReadDir
	OpStat
	OpLock
	OpClose
)

// Operation is one call that reached the disk.
type Operation struct {
	Number  int64 // counts from 1 over the life of the disk, clones go on from their origin
	Kind    Kind
	Name    string // the file or directory; for OpRename the old name
	NewName string // OpRename only
	Offset  int64  // OpRead, OpWrite; OpTruncate: the new size
	Length  int64  // OpRead, OpWrite: bytes
}
