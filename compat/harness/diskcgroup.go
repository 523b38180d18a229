package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DiskCgroup is a control group of Linux that bounds how fast what runs in it writes to a disk. In version 1 that is felt by
// writes that are flushed, not by those that stay in the page cache.
type DiskCgroup struct {
	dir, file, device, limit, none string
}

// NewDiskCgroup makes a control group for the disk that a directory lies on. It takes root.
func NewDiskCgroup(name, directory string) (*DiskCgroup, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(directory, &stat); err != nil {
		return nil, fmt.Errorf("the disk of %s: %w", directory, err)
	}
	device := fmt.Sprintf("%d:%d", stat.Dev>>8&0xfff, stat.Dev&0xff|stat.Dev>>12&0xfff00)
	for _, version := range []DiskCgroup{
		{dir: "/sys/fs/cgroup/blkio", file: "blkio.throttle.write_bps_device", limit: "%s %d", none: "%s 0"},
		{dir: "/sys/fs/cgroup", file: "io.max", limit: "%s wbps=%d", none: "%s wbps=max"},
	} {
		if _, err := os.Stat(filepath.Join(version.dir, "cgroup.procs")); err != nil {
			continue
		}
		c := version
		c.device, c.dir = device, filepath.Join(version.dir, name+"-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(c.dir, 0o755); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
		if err := c.Lift(); err != nil { // shows whether the disk takes a limit
			_ = os.Remove(c.dir)
			return nil, err
		}
		return &c, nil
	}
	return nil, fmt.Errorf("no controller of disks under /sys/fs/cgroup, or no right to use it")
}

// Limit puts a process into the group and bounds how many bytes it writes in a second.
func (c *DiskCgroup) Limit(pid, bytesPerSecond int) error {
	if err := os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	return c.set(fmt.Sprintf(c.limit, c.device, bytesPerSecond))
}

// Lift takes the bound away.
func (c *DiskCgroup) Lift() error { return c.set(fmt.Sprintf(c.none, c.device)) }

func (c *DiskCgroup) set(rule string) error {
	if err := os.WriteFile(filepath.Join(c.dir, c.file), []byte(rule), 0o644); err != nil {
		return fmt.Errorf("control group: %s to %s: %w", rule, c.file, err)
	}
	return nil
}

// Remove removes the group, in which nothing may run any more.
func (c *DiskCgroup) Remove() error { return os.Remove(c.dir) }
