package powercut

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ottla/compat/suite"
)

// Both file systems have the call under the same number (EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN), with the same flags.
const (
	shutdownCall = 0x8004587d
	logFlushed   = 1 // the journal reaches the device first: what a write barrier lets through just before the cut
	logLost      = 2
)

// imageBytes is enough for xfs, which wants 300 MiB.
const imageBytes = 640 << 20

// Disk is a file system of its own in a file.
type Disk struct {
	Kind   string // ext4 or xfs
	image  string
	device string
	Mount  string // where it is mounted
}

// NewDisk makes a file system in a file below dir and mounts it.
func NewDisk(kind, dir string) (*Disk, error) { return NewDiskOf(kind, dir, imageBytes) }

// NewDiskOf is NewDisk with a size.
func NewDiskOf(kind, dir string, sizeBytes int64) (*Disk, error) {
	d := &Disk{Kind: kind, image: filepath.Join(dir, kind+".img"), Mount: filepath.Join(dir, kind)}
	if err := os.MkdirAll(d.Mount, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(d.image)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(sizeBytes); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	format := []string{"mkfs." + kind, "-q"}
	if kind == "xfs" {
		format = append(format, "-f")
	}
	if _, err := run(append(format, d.image)...); err != nil {
		return nil, err
	}
	if d.device, err = run("losetup", "-f", "--show", d.image); err != nil {
		return nil, fmt.Errorf("loop devices do not work here, or not for this user: %w", err)
	}
	if err := d.mount(); err != nil {
		_, _ = run("losetup", "-d", d.device) // the mount is what has failed
		return nil, fmt.Errorf("a loop device cannot be mounted here, or not by this user: %w", err)
	}
	return d, nil
}

func (d *Disk) mount() error {
	_, err := run("mount", "-t", d.Kind, d.device, d.Mount)
	return err
}

// Cut takes the power. Every later write, sync and open fails with EIO. With flushed the journal is written first, though
// not the content of files.
func (d *Disk) Cut(flushed bool) error {
	f, err := os.Open(d.Mount)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	flag := logLost
	if flushed {
		flag = logFlushed
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdownCall, flag); err != nil {
		return fmt.Errorf("%s cannot be shut down: %w", d.Kind, err)
	}
	return nil
}

// Remount brings the file system back as the journal leaves it. Nobody may have a file of it open.
func (d *Disk) Remount() error {
	if err := d.unmount(); err != nil {
		return err
	}
	return d.mount()
}

// OtherBoot makes a data directory of Ottla one of another boot. After a power cut the machine has another boot id; here it has the
// same, by which the node would believe that the page cache is whole.
func OtherBoot(dataDir string) error {
	return os.WriteFile(filepath.Join(dataDir, "ottla-boot-id"), []byte("00000000-0000-4000-8000-000000000000"), 0o644)
}

// unmount also waits until the file system is gone. A mount namespace that some program made meanwhile (ip netns exec does) has a mount
// of it too, and as long as there is one, the next mount would be the same file system without power.
func (d *Disk) unmount() error {
	err := eventually(func() error { // the kernel closes the files of a killed process a little later
		_, err := run("umount", d.Mount)
		return err
	})
	if err != nil {
		return err
	}
	return eventually(func() error {
		fd, err := unix.Open(d.device, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0) // busy while it is mounted anywhere
		if err != nil {
			return fmt.Errorf("%s is still in use: %w", d.device, err)
		}
		return unix.Close(fd)
	})
}

// eventually tries for half a minute.
func eventually(try func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return suite.Eventually(ctx, try)
}

// Close unmounts the file system and gives the device back.
func (d *Disk) Close() error {
	err := d.unmount()
	if err != nil {
		_, _ = run("umount", "-l", d.Mount) // err is the answer
	}
	if _, detach := run("losetup", "-d", d.device); err == nil {
		err = detach
	}
	return err
}

func run(command ...string) (string, error) {
	out, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		text := ""
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as Output gives it
			text = string(failed.Stderr)
		}
		return "", fmt.Errorf("%v: %w %s", command, err, text)
	}
	for len(out) > 0 && out[len(out)-1] == '\n' {
		out = out[:len(out)-1]
	}
	return string(out), nil
}
