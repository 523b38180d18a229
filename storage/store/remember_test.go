package store

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// TestFailedDirectoryThatCannotBeWritten: its boot id stays, so another directory remembers that it failed. Mounted again
// under the same boot it is checked like after a power cut, once.
func TestFailedDirectoryThatCannotBeWritten(t *testing.T) {
	m := formatted(t, "a", "b")
	s := open(t, options(m, "a", "b"))
	m.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() && strings.HasPrefix(op.Name, "b/") {
			return syscall.EIO
		}
		return nil
	})
	s.FailDirectory(directoryID(1), errors.New("it failed"))
	m.OnOperation(nil)
	if got := read(m, "b/"+logdir.BootIDFile); got != m.BootID() {
		t.Fatalf("b has the boot id %q", got)
	}
	must(t, s.Close(start.Add(time.Minute), false, 1))
	for round, want := range []log.Trust{log.OtherBoot, log.SameBoot} {
		p, err := Prepare(options(m, "a", "b"))
		must(t, err)
		if got := p.all[1].trust; got != want || p.all[0].trust != log.SameBoot {
			t.Errorf("round %d: the trust in b is %d, not %d; in a it is %d", round, got, want, p.all[0].trust)
		}
		s, _, err := p.Load(start, nil)
		must(t, err)
		if got := read(m, "a/"+logdir.FailedFile); !strings.Contains(got, "no such file") {
			t.Errorf("round %d: a remembers %q", round, got)
		}
		must(t, s.Close(start, false, 1))
	}
}
