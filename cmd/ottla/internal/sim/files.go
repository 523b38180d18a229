package sim

import (
	"ottla/cmd/ottla/internal/check"
)

// checkFiles holds every file of the disk that a process has left against what must be true of it. What a crash may have left beyond
// what was synced is no fault there; a disk that failed may hold anything. A producer snapshot that a crash has torn may outlive the next
// clean stop, after which it would be a fault.
func (h *host) checkFiles(after end) {
	if h.failedOnce && h.s.noSpace.NoSpace == nil || !h.formatted || h.s.Failure != nil {
		return
	}
	if h.crashed = h.crashed || after != cleanStop; h.crashed && after == cleanStop {
		return
	}
	h.peeking = true
	defer func() { h.peeking = false }()
	dirs := append([]string{}, h.s.plan.dirs...)
	if h.s.plan.metaDir != dirs[0] {
		dirs = append(dirs, h.s.plan.metaDir)
	}
	report, err := check.Run(h.disk, dirs, check.Options{InUse: func(string) bool { return false }})
	if err != nil {
		h.s.Violate("%s: the files after a %s: %v", h.name, after, err)
		return
	}
	h.s.counts.Checked++
	if len(report.Faults) > 0 {
		h.s.Violate("%s: the files after a %s: %d faults, all: %v", h.name, after, len(report.Faults), report.Faults)
	}
}
