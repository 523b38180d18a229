package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tickSeconds is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every Linux.
const tickSeconds = 0.01

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
	before, err := cpuSeconds(pid)
	if err != nil {
		return usage{}, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return usage{}, err
	}
	u := usage{wall: time.Since(begin)}
	after, err := cpuSeconds(pid)
	if err != nil {
		return usage{}, err
	}
	u.cpuSeconds = after - before
	u.peakMB, err = memoryMB(pid, "VmHWM:")
	return u, err
}

// cpuSeconds is the time on a processor of all threads so far, in user and kernel mode.
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) * tickSeconds, err
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
