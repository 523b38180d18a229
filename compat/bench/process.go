package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a server used while something ran.
type usage struct {
	wall       time.Duration
	cpuSeconds float64
	peakMB     float64 // of resident memory
}

// during runs f and tells what the server's process used meanwhile.
func (s *server) during(f func() error) (usage, error) {
	pid := s.Process().Pid()
	// Resets the peak of resident memory (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return usage{}, err
	}
	before, err := s.ProcessorTime()
	if err != nil {
		return usage{}, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return usage{}, err
	}
	u := usage{wall: time.Since(begin)}
	after, err := s.ProcessorTime()
	if err != nil {
		return usage{}, err
	}
	u.cpuSeconds = (after - before).Seconds()
	u.peakMB, err = memoryMB(pid, "VmHWM:")
	return u, err
}

// memoryMB reads one line of /proc/PID/status, in MiB.
func memoryMB(pid int, key string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of process %d", key, pid)
}
