package quorum

import (
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// moment is what a disk looked like when the node died, and what was promised
// until then.
type moment struct {
	at    vfs.Operation
	disk  *vfs.Mem
	trust log.Trust
	acked []string
	epoch protocol.LeaderEpoch // that may have been led, at most
	// seen is what anybody may have read until then: disks with their page cache.
	seen []*vfs.Mem
}

// watch takes a moment before every operation that changes the disk: as a power
// cut leaves it, twice, and as the death of the process leaves it.
func (r *rig) watch(into *[]moment, before ...*vfs.Mem) {
	r.fs.OnOperation(func(op vfs.Operation) error {
		if !op.Kind.Changes() {
			return nil
		}
		epoch := protocol.LeaderEpoch(0)
		if r.q != nil && r.q.status.Load() != nil && r.q.Status().Leader == 1 {
			epoch = r.q.Status().Epoch
		}
		killed := r.fs.Kill()
		take := func(disk *vfs.Mem, trust log.Trust) {
			*into = append(*into, moment{op, disk, trust, slices.Clone(r.acked), epoch, append(slices.Clone(before), r.fs.Kill())})
		}
		take(killed, log.SameBoot)
		take(r.fs.CrashWith(nil), log.OtherBoot)
		take(r.fs.Crash(), log.OtherBoot)
		return nil
	})
}

// written remembers what each (epoch, offset) named.
type written map[string]string

func (w written) note(t *testing.T, at fmt.Stringer, disk vfs.FS) {
	t.Helper()
	for _, batch := range batchesOf(t, disk) {
		for one, err := range record.Records(batch, nil, 0) {
			must(t, err)
			key := fmt.Sprintf("epoch %d offset %d", batch.PartitionLeaderEpoch(), one.Offset)
			content := fmt.Sprintf("%v %x %x %d", batch.IsControl(), one.Key, one.Value, one.Timestamp)
			if before, known := w[key]; known && before != content {
				t.Fatalf("%v: %s names two records:\n%s\n%s", at, key, before, content)
			}
			w[key] = content
		}
	}
}

// goesOn starts on what is left of a disk and checks every promise.
func (m moment) goesOn(t *testing.T, from *rig) *rig {
	t.Helper()
	before, known, err := readState(m.disk, partitionDir)
	must(t, err)
	next := from.again(m.disk, m.trust)
	next.acked = m.acked
	next.now = next.now.Add(time.Hour) // what it writes has other timestamps than before
	if err := next.start(); err != nil {
		t.Fatalf("%v, trust %d: %v", m.at, m.trust, err)
	}
	next.holds()
	if epoch := next.q.Status().Epoch; epoch <= m.epoch || known && epoch <= before.Epoch {
		t.Fatalf("%v: epoch %d is led, %d was, quorum-state said %d", m.at, epoch, m.epoch, before.Epoch)
	}
	next.mustSubmit("after the crash")
	next.holds()
	names := written{}
	for _, disk := range m.seen {
		names.note(t, m.at, disk)
	}
	names.note(t, m.at, next.fs)
	return next
}

// TestCrashAtEveryOperation of start, submissions, rolls, snapshots and
// retention, and again at every operation of some of the starts after it.
func TestCrashAtEveryOperation(t *testing.T) {
	var moments []moment
	r := small(newRig(t))
	r.options.Machine = r.machine
	r.watch(&moments)
	r.mustStart()
	busy(r, 0, 30, func(_ string, err error) { must(t, err) })
	must(t, r.q.Close(r.now))
	r.fs.OnOperation(nil)
	if ids, err := listSnapshots(r.fs, partitionDir); err != nil || ids[0].End == 0 {
		t.Fatalf("too little happens: snapshots %v, %v", ids, err)
	}
	for i, m := range moments {
		m.goesOn(t, r)
		if i%17 != 0 {
			continue
		}
		var second []moment
		again := r.again(m.disk.Kill(), m.trust)
		again.acked, again.now = m.acked, again.now.Add(time.Duration(i)*time.Second)
		again.watch(&second, m.seen...)
		again.mustStart()
		again.fs.OnOperation(nil)
		for _, s := range second {
			s.goesOn(t, again)
		}
	}
	t.Logf("%d moments of %d operations", len(moments), r.fs.Operations())
}

// TestCrashBetweenSnapshotAndLog: a replica that took a snapshot over may die
// before its log begins anew. The log holds nothing that the snapshot lacks.
func TestCrashBetweenSnapshotAndLog(t *testing.T) {
	r := started(t)
	r.mustSubmit("a", "b", "c")
	r.tick(2 * time.Hour)
	r.holds()
	must(t, r.q.Close(r.now))
	ids, err := listSnapshots(r.fs, partitionDir)
	must(t, err)
	latest := ids[len(ids)-1]
	later := snapshotID{End: latest.End + 10, Epoch: latest.Epoch}
	content, err := vfs.ReadFile(r.fs, path.Join(partitionDir, latest.file()))
	must(t, err)
	writeFile(t, r.fs, path.Join(partitionDir, later.file()), content)
	var moments []moment
	next := r.again(r.fs, log.OtherBoot)
	next.watch(&moments)
	next.mustStart()
	next.fs.OnOperation(nil)
	next.holds()
	if status := next.q.Status(); status.LogEnd != later.End+1 {
		t.Fatalf("%+v", status)
	}
	for _, m := range moments {
		m.acked = r.acked
		m.goesOn(t, next)
	}
	next.restart().holds()
}
