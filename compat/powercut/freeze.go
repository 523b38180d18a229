package powercut

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// The calls behind fsfreeze.
const (
	freezeCall = 0xc0045877
	thawCall   = 0xc0045878
)

// Freeze makes every change of the file system wait until it is thawed, as if the device hung. It is thawed by itself after two
// minutes, also if this process has ended by then: nothing can be unmounted or killed before. Thaw may be called more than once.
func (d *Disk) Freeze() (thaw func() error, err error) {
	f, err := os.Open(d.Mount)
	if err != nil {
		return nil, err
	}
	rescue := exec.Command("sh", "-c", `sleep 120; fsfreeze -u "$0"`, d.Mount)
	rescue.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not ended with the tests
	if err := rescue.Start(); err != nil {
		return nil, err
	}
	thawed := false
	thaw = func() error {
		if thawed {
			return nil
		}
		thawed = true
		err := unix.IoctlSetInt(int(f.Fd()), thawCall, 0)
		_ = syscall.Kill(-rescue.Process.Pid, syscall.SIGKILL) // it sleeps
		_ = rescue.Wait()                                      // killed
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s cannot be thawed: %w", d.Kind, err)
		}
		return nil
	}
	if err := unix.IoctlSetInt(int(f.Fd()), freezeCall, 0); err != nil {
		_ = thaw() // what has failed is told
		return nil, fmt.Errorf("%s cannot be frozen: %w", d.Kind, err)
	}
	return thaw, nil
}
