package store

import (
	"testing"
	"time"

	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// TestCheckpointOfIdleLogs: logs that nobody writes to cost a checkpoint no memory and no write, however many they are; one that
// was written to is in the next one.
func TestCheckpointOfIdleLogs(t *testing.T) {
	m := formatted(t, "a")
	s := open(t, options(m, "a"))
	for i := range int32(300) {
		create(t, s, tp("idle", i))
	}
	d := s.dirs[0]
	must(t, s.writeCheckpoints(d))
	var changes int
	m.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			changes++
		}
		return nil
	})
	if allocations := testing.AllocsPerRun(10, func() { must(t, s.writeCheckpoints(d)) }); allocations > 20 || changes > 0 {
		t.Errorf("an idle checkpoint makes %.0f allocations and %d changes", allocations, changes)
	}
	l := s.Log(tp("idle", 7))
	appendTo(t, l, 3)
	must(t, l.Flush(time.Now()), s.writeCheckpoints(d))
	if got := d.checkpoints.Get(logdir.RecoveryPointFile, tp("idle", 7)); got != 3 {
		t.Errorf("the recovery point is %d, want 3", got)
	}
	again, _, err := logdir.ReadCheckpoints(m, "a")
	if err != nil || again.Get(logdir.RecoveryPointFile, tp("idle", 7)) != 3 {
		t.Errorf("on the disk it is %d, %v", again.Get(logdir.RecoveryPointFile, tp("idle", 7)), err)
	}
	must(t, s.Close(time.Now(), true, 1))
}
