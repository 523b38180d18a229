package sim

import (
	"fmt"

	"ottla/storage/vfs"
)

// NoSpace has some of the operations that may need room on the disk fail with ENOSPC: those from the At-th on, counted over
// the whole run, Times of them. There are no other faults then.
type NoSpace struct {
	At, Times int
}

// noSpace is how far a run with NoSpace is.
type noSpace struct {
	*NoSpace
	seen int // operations that may need room
}

// needsRoom tells the operations that find a disk full: what is written, and the entries of directories.
func needsRoom(kind vfs.Kind) bool {
	return kind == vfs.OpWrite || kind == vfs.OpCreate || kind == vfs.OpMkdir || kind == vfs.OpRename
}

// alone leaves out every other fault.
func (n *noSpace) alone(p *plan) {
	if n.NoSpace != nil {
		pause := p.faults.pause
		p.faults = faultPlan{pause: pause}
		p.network.cut = 0
	}
}

// strike fails one operation, if it is its turn; a write is cut short somewhere.
func (n *noSpace) strike(h *host, op vfs.Operation) error {
	if n.NoSpace == nil || h.s.phase != working || !needsRoom(op.Kind) {
		return nil
	}
	n.seen++
	if n.seen < n.At || n.seen >= n.At+n.Times {
		return nil
	}
	if op.Kind == vfs.OpWrite {
		return &vfs.PartialWriteError{Bytes: int64(n.seen*7919) % (op.Length + 1), Err: errFull}
	}
	return errFull
}

// check is the law: a disk without room ends no process and takes no directory out of service.
func (n *noSpace) check(h *host) error {
	if n.NoSpace == nil {
		return nil
	}
	if h.fatal != nil {
		return fmt.Errorf("%s ends because its disk was full: %w", h.name, h.fatal)
	}
	for _, d := range h.node.Store().Directories() {
		if d.Offline != nil {
			return fmt.Errorf("%s takes %s offline because it was full: %w", h.name, d.Path, d.Offline)
		}
	}
	return nil
}
