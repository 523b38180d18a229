package sim

import (
	"ottla/cmd/ottla/internal/check"
)

// checkFiles holds every file of the disk that a process has left against what must be true of it. What a crash may have left beyond
// what was synced is no fault there; a disk that failed may hold anything.
func (h *host) checkFiles(after end) {
	if h.failedOnce && h.s.noSpace.NoSpace == nil || !h.formatted || h.s.Failure != nil {
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
