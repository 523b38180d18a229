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

// ProcessorTime is how long all threads of the running process were on a processor so far, in user and kernel mode.
func (n *Node) ProcessorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Pid()))
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", n.opts.Name, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var total time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of %s: %w", n.opts.Name, err)
		}
		total += time.Duration(ticks) * processorTick
	}
	return total, nil
}
