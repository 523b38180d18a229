package sim

import (
	"slices"
	"syscall"
	"time"

	"ottla/storage/vfs"

	"ottla/cmd/ottla/internal/seeded"
)

var (
	errFull error = syscall.ENOSPC
	errIO   error = syscall.EIO
)

// diskFault is a directory that does not work for a while.
type diskFault struct {
	dir      string
	err      error
	kinds    []vfs.Kind
	perMille int
	until    time.Time
}

// strike gives the error of an operation, if it is hit.
func (f *diskFault) strike(h *host, op vfs.Operation) error {
	if h.s.Now.After(f.until) || !slices.Contains(f.kinds, op.Kind) {
		return nil
	}
	dirs := append([]string{h.s.plan.metaDir}, h.s.plan.dirs...)
	if directoryOf(dirs, op.Name) != f.dir || !h.random.Chance(f.perMille) {
		return nil
	}
	if op.Kind == vfs.OpWrite && f.err == errFull {
		return &vfs.PartialWriteError{Bytes: int64(h.random.Below(int(op.Length) + 1)), Err: f.err}
	}
	return f.err
}

// planFaults makes faults follow one another until the faults end.
func (s *Simulation) planFaults() {
	f := s.plan.faults
	var kinds []func(h *host)
	for _, k := range []struct {
		on     bool
		strike func(h *host)
	}{
		{f.kills, func(h *host) { h.strikeDown(kill) }},
		{f.cuts, func(h *host) { h.strikeDown(powerCut) }},
		{f.stops, (*host).stop},
		{f.full, (*host).fillDisk},
		{f.failing, (*host).breakDisk},
		{f.slowWorkers, func(h *host) { h.slowTasks = s.Now.Add(s.random.Between(0, 5*time.Second)) }},
		{s.plan.network.cut > 0, (*host).cutAll},
	} {
		if k.on {
			kinds = append(kinds, k.strike)
		}
	}
	if len(kinds) == 0 {
		return
	}
	s.NowAndThen("a fault", s.random.Between(f.pause/4, 2*f.pause), func() (time.Duration, bool) {
		if s.phase != working {
			return 0, true
		}
		h := s.hosts[s.random.Below(len(s.hosts))]
		kinds[s.random.Below(len(kinds))](h)
		return s.random.Between(f.pause/4, 2*f.pause), false
	})
}

// strikeDown ends the process, at once or within one of its next operations.
func (h *host) strikeDown(how end) {
	if !h.up || h.stopping {
		return
	}
	if h.s.plan.faults.midOperation && h.random.Chance(700) {
		h.armCrash(60)
		h.crashAs = how
		if h.mustCut {
			h.crashAs = powerCut
		}
		return
	}
	h.die(how)
}

// fillDisk lets a directory run out of space for a while.
func (h *host) fillDisk() {
	f := &diskFault{
		dir: h.someDirectory(), err: errFull, kinds: []vfs.Kind{vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir},
		perMille: seeded.Pick(h.random, 1000, 300, 50), until: h.s.Now.Add(h.random.Between(0, 5*time.Second)),
	}
	h.faults = append(h.faults, f)
	h.s.Linef("%s: %s is full until %v (%d)", h.name, f.dir, h.s.Elapsed(f.until), f.perMille)
}

// breakDisk lets a directory fail until it is repaired by a restart.
func (h *host) breakDisk() {
	f := &diskFault{
		dir: h.someDirectory(), err: errIO,
		kinds: seeded.Pick(h.random, []vfs.Kind{vfs.OpSync}, []vfs.Kind{vfs.OpRead}, []vfs.Kind{vfs.OpWrite}, []vfs.Kind{vfs.OpRename, vfs.OpRemove},
			[]vfs.Kind{vfs.OpRead, vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir, vfs.OpCreate, vfs.OpOpen, vfs.OpRename}),
		perMille: seeded.Pick(h.random, 1000, 100), until: h.s.Now.Add(h.random.Between(0, 10*time.Second)),
	}
	h.faults = append(h.faults, f)
	h.s.Linef("%s: %s fails until %v: %v (%d)", h.name, f.dir, h.s.Elapsed(f.until), f.kinds, f.perMille)
	h.s.At(f.until.Add(time.Millisecond), h.name+" is repaired", func() {
		h.faults = deleteOne(h.faults, f)
		if h.up && h.sawFault && !h.stopping {
			h.die(kill)
		}
	})
}

// someDirectory is mostly one that holds no metadata, if there is one: the node does
// not survive the loss of the other.
func (h *host) someDirectory() string {
	dir := seeded.Pick(h.random, append([]string{h.s.plan.metaDir}, h.s.plan.dirs...)...)
	if dir == h.s.plan.metaDir && h.random.Chance(700) {
		dir = h.s.plan.dirs[len(h.s.plan.dirs)-1]
	}
	return dir
}

// cutAll cuts every connection of clients at once.
func (h *host) cutAll() {
	for _, c := range slices.Clone(h.conns) {
		if !c.internal {
			c.cut()
		}
	}
}
