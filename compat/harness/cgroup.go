package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Cgroup is a control group of Linux that bounds the memory of what runs in it.
type Cgroup struct{ dir string }

// MemoryCgroup makes a control group with a memory limit, in version 1's or version 2's hierarchy, whichever has a memory controller.
// It takes root.
func MemoryCgroup(name string, limitBytes int64) (*Cgroup, error) {
	for _, version := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(version.root, name+"-"+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(version.root, "cgroup.procs")); err != nil {
			continue
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, version.limit), []byte(strconv.FormatInt(limitBytes, 10)), 0o644); err != nil {
			_ = os.Remove(dir)
			continue
		}
		return &Cgroup{dir: dir}, nil
	}
	return nil, fmt.Errorf("no memory controller under /sys/fs/cgroup, or no right to use it")
}

// Wrap is the start of a command line that runs the rest of it inside the group.
func (c *Cgroup) Wrap() []string {
	return []string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, c.dir}
}

// Remove removes the group, in which nothing may run any more.
func (c *Cgroup) Remove() error { return os.Remove(c.dir) }
