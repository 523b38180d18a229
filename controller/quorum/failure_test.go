package quorum

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// busy runs through requests, rolls, snapshots and retention.
func busy(r *rig, from, count int, each func(value string, err error)) {
	for i := from; i < from+count; i++ {
		value := fmt.Sprintf("v%03d-%s", i, strings.Repeat("x", 60))
		each(value, r.submit(value))
		if i%5 == 4 {
			r.tick(20 * time.Minute)
		}
	}
}

// small makes segments, snapshots and retention small, so that all happens soon.
func small(r *rig) *rig {
	r.options.SegmentBytes, r.options.SnapshotBytes, r.options.RetentionBytes = 1500, 900, 6000
	return r
}

func smallStarted(t *testing.T) *rig {
	r := small(newRig(t))
	r.options.Machine = r.machine
	return r.mustStart()
}

// operations counts what busy does to the disk.
func operations(t *testing.T, count int, kinds ...vfs.Kind) (first, last int64) {
	r := smallStarted(t)
	first = r.fs.Operations()
	busy(r, 0, count, func(string, error) {})
	return first, r.fs.Operations()
}

// TestNoSpaceAtEveryWrite: a write that finds no room is taken back, nobody is
// told that it was done, and the node goes on.
func TestNoSpaceAtEveryWrite(t *testing.T) {
	const count = 25
	for _, partial := range []int64{0, 1, 70} {
		first, last := operations(t, count)
		for at := first + 1; at <= last; at++ {
			r := smallStarted(t)
			hit, given := vfs.Kind(-1), ""
			r.fs.OnOperation(func(op vfs.Operation) error {
				if op.Number != at {
					return nil
				}
				given = op.NewName
				switch op.Kind {
				case vfs.OpWrite:
					hit = op.Kind
					return &vfs.PartialWriteError{Bytes: min(partial, op.Length), Err: syscall.ENOSPC}
				case vfs.OpCreate, vfs.OpRename, vfs.OpMkdir:
					hit = op.Kind
					return syscall.ENOSPC
				}
				return nil
			})
			refused := 0
			busy(r, 0, count, func(_ string, err error) {
				if err != nil {
					refused++
					if protocol.CodeOf(err) != protocol.NotController {
						t.Fatalf("operation %d: %v", at, err)
					}
				}
			})
			if strings.HasSuffix(given, segment.DeletedSuffix) && len(r.fatal) == 1 {
				continue // a removal that finds no space is more than a full disk
			}
			if len(r.fatal) > 0 {
				t.Fatalf("operation %d (%v): the node stopped: %v", at, hit, r.fatal)
			}
			if refused > 1 {
				t.Fatalf("operation %d (%v): %d requests were refused for one failure", at, hit, refused)
			}
			r.fs.OnOperation(nil)
			if err := r.submit("after"); err != nil {
				t.Fatalf("operation %d (%v, %d bytes written): refused after it: %v\n%s", at, hit, partial, err, r.log.String())
			}
			r.holds()
			next := r.again(r.fs.Crash(), log.OtherBoot).mustStart()
			next.holds()
		}
	}
}

// TestFullDiskHeals: as long as it is full everything is refused, then it goes on.
func TestFullDiskHeals(t *testing.T) {
	r := started(t)
	r.mustSubmit("a")
	r.fs.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpWrite}, Err: &vfs.PartialWriteError{Bytes: 20, Err: syscall.ENOSPC}}))
	for range 5 {
		if err := r.submit("b"); protocol.CodeOf(err) != protocol.NotController {
			t.Fatalf("%v", err)
		}
		r.tick(2 * time.Hour) // a snapshot finds no space either
	}
	if due := r.q.NextDeadline(); !due.After(r.now) {
		t.Fatalf("due at %v, now %v: the node would spin", due, r.now)
	}
	r.fs.OnOperation(nil)
	r.mustSubmit("c")
	r.tick(time.Hour)
	r.holds()
	if got := len(r.machine.(*toy).values); got != 2 || len(r.fatal) != 0 {
		t.Fatalf("%d values, fatal %v", got, r.fatal)
	}
	if ids, err := listSnapshots(r.fs, partitionDir); err != nil || len(ids) != 2 {
		t.Fatalf("snapshots %v, %v", ids, err)
	}
	r.restart().holds()
}

// TestDeadDiskAtEveryOperation: any other error of a write, or any of an fsync,
// stops the node at once and for good, and loses nothing acknowledged.
func TestDeadDiskAtEveryOperation(t *testing.T) {
	const count = 25
	first, last := operations(t, count)
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC} {
		for at := first + 1; at <= last; at++ {
			r := smallStarted(t)
			hit := false
			r.fs.OnOperation(func(op vfs.Operation) error {
				switch {
				case op.Number != at:
				case op.Kind == vfs.OpSync, failure == syscall.EIO && op.Kind.Changes():
					hit = true
					return failure
				}
				return nil
			})
			busy(r, 0, count, func(_ string, err error) {
				if err != nil && protocol.CodeOf(err) != protocol.NotController {
					t.Fatalf("operation %d: %v", at, err)
				}
				if err == nil && len(r.fatal) > 0 {
					t.Fatalf("operation %d: a request was carried out though the node stopped", at)
				}
			})
			dead := len(r.fatal) > 0
			if len(r.fatal) > 1 {
				t.Fatalf("operation %d: OnFatal %d times", at, len(r.fatal))
			}
			if dead && !errors.Is(r.fatal[0], failure) {
				t.Fatalf("operation %d: %v", at, r.fatal)
			}
			if dead && !hit {
				t.Fatalf("operation %d: dead %v, hit %v, fatal %v\n%s", at, dead, hit, r.fatal, r.log.String())
			}
			_ = r.q.Close(r.now)
			r.again(r.fs.Crash(), log.OtherBoot).mustStart().holds()
		}
	}
}

// TestFatalAnswersEverythingPending with NOT_CONTROLLER, once.
func TestFatalAnswersEverythingPending(t *testing.T) {
	r := started(t)
	r.mustSubmit("a")
	answers := map[string]int{}
	r.q.Submit(r.now, "first", func(any, error) {
		r.fs.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpSync}, Err: syscall.EIO}))
		for i := range 5 {
			r.q.Submit(r.now, fmt.Sprint("pending", i), func(_ any, err error) {
				answers[fmt.Sprint(i, protocol.CodeOf(err))]++
			})
		}
	})
	for i := range 5 {
		if answers[fmt.Sprint(i, protocol.NotController)] != 1 {
			t.Fatalf("%v", answers)
		}
	}
	if len(r.fatal) != 1 || !r.q.NextDeadline().IsZero() {
		t.Fatalf("fatal %v, deadline %v", r.fatal, r.q.NextDeadline())
	}
	r.fs.OnOperation(nil)
	if err := r.submit("late"); protocol.CodeOf(err) != protocol.NotController {
		t.Fatalf("%v", err)
	}
	r.tick(time.Hour)
	if err := r.q.Close(r.now); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Close: %v", err)
	}
}

// TestStartFailsOnADeadDisk and says so, and the next one succeeds.
func TestStartFailsOnADeadDisk(t *testing.T) {
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC} {
		fresh := newRig(t)
		fresh.options.Machine = fresh.machine
		first := fresh.fs.Operations()
		fresh.mustStart()
		last := fresh.fs.Operations()
		for at := first + 1; at <= last; at++ {
			r := newRig(t)
			r.options.Machine = r.machine
			r.fs.OnOperation(func(op vfs.Operation) error {
				if op.Number == at && op.Kind.Changes() {
					return failure
				}
				return nil
			})
			err := r.start()
			r.fs.OnOperation(nil)
			if err == nil {
				r.mustSubmit("a")
			} else if !errors.Is(err, failure) {
				t.Fatalf("operation %d: %v", at, err)
			}
			next := r.again(r.fs.Crash(), log.OtherBoot).mustStart()
			next.mustSubmit("b")
			next.holds()
		}
	}
}

// TestRestartThatCannotSync: a process dies before a record is durable, the next
// one finds the record and fails to make it durable, and then the machine stops.
// The record is lost, and nothing that the failed start left says that it was not.
func TestRestartThatCannotSync(t *testing.T) {
	for seed := range uint64(40) {
		r := rigOn(t, vfs.NewMem(seeded(seed)))
		r.format(1)
		r.options.Machine = r.machine
		r.mustStart().mustSubmit("a", "b")
		var dead *vfs.Mem
		r.fs.OnOperation(func(op vfs.Operation) error {
			if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") && dead == nil {
				dead = r.fs.Kill()
			}
			return nil
		})
		before := len(r.acked)
		r.mustSubmit("c")
		r.acked = r.acked[:before] // it died before it could say so
		next := r.again(dead, log.SameBoot)
		next.fs.OnOperation(vfs.Script(vfs.Fault{Kinds: []vfs.Kind{vfs.OpSync}, Pattern: "*.log", Err: syscall.EIO}))
		if err := next.start(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("seed %d: started on a disk that does not sync: %v", seed, err)
		}
		next.again(next.fs.Crash(), log.OtherBoot).mustStart().holds()
	}
}
