package quorum

import (
	"slices"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// TestCrashStates starts on every class of what a power cut may leave (vfs.Mem.CrashStates) before each operation of a first
// start, submissions, rolls, snapshots, retention and a clean stop, and on what the death of the process leaves. All are tried
// with OTTLA_TORN=full, else a sample.
func TestCrashStates(t *testing.T) {
	every := 5
	if full() {
		every = 1
	}
	var moments []moment
	states, seen := 0, map[string]bool{}
	r := small(newRig(t))
	r.options.Machine = r.machine
	r.fs.OnOperation(func(op vfs.Operation) error {
		if !op.Kind.Changes() {
			return nil
		}
		epoch := protocol.LeaderEpoch(0)
		if r.q != nil && r.q.status.Load() != nil && r.q.Status().Leader == 1 {
			epoch = r.q.Status().Epoch
		}
		read := r.fs.Kill()
		take := func(disk *vfs.Mem, trust log.Trust) {
			states++
			key := treeOf(t, disk) + string(rune(len(r.acked))) + string(rune(trust))
			if states%every == 0 && !seen[key] {
				seen[key] = true
				moments = append(moments, moment{op, disk, trust, slices.Clone(r.acked), epoch, []*vfs.Mem{read}})
			}
		}
		take(r.fs.Kill(), log.SameBoot)
		r.fs.CrashStates(func(_ string, left *vfs.Mem) { take(left, log.OtherBoot) })
		return nil
	})
	r.mustStart()
	busy(r, 0, 30, func(_ string, err error) { must(t, err) })
	must(t, r.q.Close(r.now))
	r.fs.OnOperation(nil)
	for _, m := range moments {
		m.goesOn(t, r)
	}
	t.Logf("%d recoveries: crash states of the metadata log, of %d states in all", len(moments), states)
	if len(moments) < 300/every {
		t.Errorf("only %d", len(moments))
	}
}

// treeOf is the content of a disk.
func treeOf(t *testing.T, disk *vfs.Mem) string {
	text := ""
	all := files(t, disk)
	for _, name := range sortedNames(all) {
		text += name + "\x00" + all[name] + "\x00"
	}
	return text
}

func sortedNames(all map[string]string) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestObserverCrashStates: whatever a power cut leaves of an observer's log, also in the middle of a roll and of a snapshot, it starts
// on and follows again; what is not durable it can have from the leader.
func TestObserverCrashStates(t *testing.T) {
	every := 20
	if full() {
		every = 1
	}
	leader := leading(t)
	leader.mustSubmit(numbered(0, 60)...)
	w := watch(t, leader)
	small(w.rig)
	var left []*vfs.Mem
	states, seen := 0, map[string]bool{}
	w.fs.OnOperation(func(op vfs.Operation) error {
		if op.Kind.Changes() {
			w.fs.CrashStates(func(_ string, disk *vfs.Mem) {
				states++
				if key := treeOf(t, disk); states%every == 0 && !seen[key] {
					seen[key] = true
					left = append(left, disk)
				}
			})
		}
		return nil
	})
	must(t, w.start())
	for i := range 4 {
		w.follows()
		leader.mustSubmit(numbered(60+20*i, 20)...)
		w.tick(20 * time.Minute)
	}
	w.follows()
	must(t, w.q.Close(w.now))
	w.fs.OnOperation(nil)
	for _, disk := range left {
		next := w.reborn(disk, log.OtherBoot)
		must(t, next.start())
		next.follows()
		must(t, next.q.Close(next.now))
		recoveries++
	}
	t.Logf("%d recoveries: crash states of an observer's log, of %d states in all", len(left), states)
	if len(left) < 100 {
		t.Errorf("only %d", len(left))
	}
}
