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

// during runs f and tells what the server's processes used meanwhile.
func (s *server) during(f func() error) (usage, error) {
	for _, one := range s.brokers {
		// Resets the peak of resident memory (proc_pid_clear_refs(5)).
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", one.Process().Pid()), []byte("5"), 0); err != nil {
			return usage{}, err
		}
	}
	before, err := s.processorTime()
	if err != nil {
		return usage{}, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return usage{}, err
	}
	u := usage{wall: time.Since(begin)}
	after, err := s.processorTime()
	if err != nil {
		return usage{}, err
	}
	u.cpuSeconds = (after - before).Seconds()
	for _, one := range s.brokers {
		peak, err := memoryMB(one.Process().Pid(), "VmHWM:")
		if err != nil {
			return usage{}, err
		}
		u.peakMB += peak
	}
	return u, nil
}

// processorTime is that of all brokers.
func (s *server) processorTime() (total time.Duration, err error) {
	for _, one := range s.brokers {
		used, err := one.Process().ProcessorTime()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
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
