package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// processorTick is the unit in which Linux counts processor time for programs (USER_HZ).
const processorTick = 10 * time.Millisecond

// ProcessorTime is that of the node's process.
func (n *Node) ProcessorTime() (time.Duration, error) { return n.process.ProcessorTime() }

// ProcessorTime is how long all threads of the running process were on a processor so far, in user and kernel mode.
func (p *Process) ProcessorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.Name, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var total time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of %s: %w", p.Name, err)
		}
		total += time.Duration(ticks) * processorTick
	}
	return total, nil
}
