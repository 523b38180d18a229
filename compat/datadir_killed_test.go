//go:build compat

package compat

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"ottla/compat/datadir"
	"ottla/compat/harness"
)

// prepareCommit is a state of a transaction as __transaction_state has it: it is decided and not all of its markers are written.
const prepareCommit = "2"

// stateOf finds in what ottla dump prints what became of the transactions of datadir.Leaving.
var stateOf = regexp.MustCompile(`"transactionalId":"` + datadir.Leaving + `".*"transactionStatus":(\d+)`)

// killDecided kills Ottla while transactions are written, at a moment when one is decided and not complete. That moment is short: the
// process is halted again and again, and killed where its log says so. If it never does, it is killed all the same.
func (h *handedOver) killDecided(ottla *harness.Node) {
	h.Helper()
	signal := func(s syscall.Signal) {
		if err := ottla.Process().Signal(s); err != nil {
			h.Fatal(err)
		}
	}
	state, tries := "", 0
	for ctx := limited(h.T, 20*time.Second); ctx.Err() == nil; tries++ {
		signal(syscall.SIGSTOP)
		if state = h.stateOnDisk(); state == prepareCommit {
			break
		}
		signal(syscall.SIGCONT)
		select { // not in step with the transactions
		case <-ctx.Done():
		case <-time.After(time.Duration(1+tries%13) * time.Millisecond):
		}
	}
	if err := ottla.Kill(); err != nil {
		h.Fatal(err)
	}
	harness.Progress("Ottla was killed when the transaction under way had state %s (%s is decided), after %d looks", state, prepareCommit, tries+1)
}

// stateOnDisk is the last state of the transactions of datadir.Leaving, as the log has it, if it can be read.
func (h *handedOver) stateOnDisk() string {
	h.Helper()
	var files []string
	for _, dir := range h.dirs {
		found, err := filepath.Glob(filepath.Join(dir, "__transaction_state-*", "*.log"))
		if err != nil {
			h.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	out, err := exec.Command(harness.OttlaBinary(), append([]string{"dump", "--deep"}, files...)...).Output()
	states := stateOf.FindAllSubmatch(out, -1)
	if err != nil || len(states) == 0 {
		return "unknown" // a write that was under way when the process was halted
	}
	return string(states[len(states)-1][1])
}
