package log

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/producer"
	"ottla/storage/vfs"
)

// TestStartAfterAKillReadsOnlyWhatCameAfterMaintain: producers are known from the snapshot within the active segment, of
// which there is never more than one.
func TestStartAfterAKillReadsOnlyWhatCameAfterMaintain(t *testing.T) {
	disk := newDisk(1)
	l, err := Create(testEnv(disk), "t-0", testTP, protocol.TopicID{1}, DefaultOptions())
	check(t, err)
	now, sequence := testTime, int32(0)
	add := func(batches int) {
		for range batches {
			check(t, l.Append(now, 0, []*Entry{{Batch: batchBy(7, 0, sequence, 10, false), Origin: OriginCoordinator}}))
			sequence += 10
		}
	}
	for range 3 {
		add(1500) // more than interimBytes
		now = now.Add(time.Minute)
		if m := l.Maintain(now); m.Err != nil {
			t.Fatal(m.Err)
		}
		if len(l.snapshots) != 1 {
			t.Errorf("there are snapshots at %v", l.snapshots)
		}
	}
	add(3)
	killed := disk.Kill()
	opened, report, err := Open(testEnv(killed), "t-0", testTP, DefaultOptions(), OpenState{Trust: SameBoot, Now: now})
	check(t, err)
	if report.BatchesScanned > 200 {
		t.Errorf("%d batches were read", report.BatchesScanned)
	}
	if got := opened.ActiveProducers(); len(got) != 1 || got[0].LastSequence != sequence-1 {
		t.Errorf("the producers are %+v; the last sequence is %d", got, sequence-1)
	}
	lost := disk.Crash()
	if _, _, err := Open(testEnv(lost), "t-0", testTP, DefaultOptions(), OpenState{Trust: OtherBoot, Now: now}); err != nil {
		t.Fatal(err)
	}
	_, err = l.Close(now, true)
	check(t, err)
	if len(l.snapshots) != 1 || l.snapshots[0] != l.View().LogEndOffset {
		t.Errorf("a clean stop leaves snapshots at %v", l.snapshots)
	}
}

// TestStartAfterAKillWritesNothing: starts after kills leave the files as they are, and Maintain writes the producers and the
// index entries down, so that what a start reads stays little; without it a start does so in the end.
func TestStartAfterAKillWritesNothing(t *testing.T) {
	disk := newDisk(1)
	l, err := Create(testEnv(disk), "t-0", testTP, protocol.TopicID{1}, DefaultOptions())
	check(t, err)
	sequence := int32(0)
	add := func(batches int) {
		for range batches {
			check(t, l.Append(testTime, 0, []*Entry{{Batch: batchBy(7, 0, sequence, 10, false), Origin: OriginCoordinator}}))
			sequence += 10
		}
	}
	add(1500)
	if m := l.Maintain(testTime); m.Err != nil {
		t.Fatal(m.Err)
	}
	listing := func() string {
		entries, err := disk.ReadDir("t-0")
		check(t, err)
		text := ""
		for _, e := range entries {
			text += fmt.Sprintln(e.Name, e.Size)
		}
		return text
	}
	written, most := 0, int64(0)
	for round := range 40 {
		maintained := round < 20
		add(map[bool]int{true: 400, false: 1500}[maintained])
		disk = disk.Kill()
		before := listing()
		var report Recovery
		l, report, err = Open(testEnv(disk), "t-0", testTP, DefaultOptions(), OpenState{Trust: SameBoot, Now: testTime})
		check(t, err)
		if wrote := listing() != before; wrote && maintained {
			t.Fatal("a start after a kill has written")
		} else if wrote {
			written++
		}
		if maintained {
			most = max(most, report.BatchesScanned)
		}
		if got := l.ActiveProducers(); len(got) != 1 || got[0].LastSequence != sequence-1 {
			t.Fatalf("the producers are %+v; the last sequence is %d", got, sequence-1)
		}
		if !l.Touched() {
			t.Fatal("a clean stop would leave the log as it is")
		}
		if !maintained {
			continue
		}
		if m := l.Maintain(testTime); m.Err != nil {
			t.Fatal(m.Err)
		}
		if len(l.snapshots) > 2 {
			t.Fatalf("there are snapshots at %v", l.snapshots)
		}
	}
	if most > 4000 || written == 0 || written > 3 {
		t.Errorf("a start read %d batches; without maintenance %d of 20 starts wrote", most, written)
	}
	_, err = l.Close(testTime, true)
	check(t, err)
	l, report, err := Open(testEnv(disk), "t-0", testTP, DefaultOptions(), OpenState{Trust: Clean, RecoveryPoint: protocol.Offset(sequence), Now: testTime})
	check(t, err)
	if report.BatchesScanned > 100 || report.NoteWorthy() || l.View().LogEndOffset != protocol.Offset(sequence) {
		t.Errorf("after a clean stop the log ends at %d: %+v", l.View().LogEndOffset, report)
	}
}

// TestTornSnapshotsAreRemoved: a process that died has left snapshots half-written that no replay comes to. After the next clean stop none
// is left.
func TestTornSnapshotsAreRemoved(t *testing.T) {
	disk, opts := newDisk(1), DefaultOptions()
	opts.SegmentBytes = 2000
	l, err := Create(testEnv(disk), "t-0", testTP, protocol.TopicID{1}, opts)
	check(t, err)
	for n := range int32(100) {
		check(t, l.Append(testTime, 0, []*Entry{{Batch: batchBy(7, 0, 10*n, 10, false), Origin: OriginCoordinator}}))
	}
	if len(l.snapshots) < 4 {
		t.Fatalf("there are snapshots at %v", l.snapshots)
	}
	killed := disk.Kill()
	for i, at := range l.snapshots[:len(l.snapshots)-1] {
		check(t, vfs.WriteFile(killed, l.snapshotName(at), make([]byte, 5*(i%2)), false))
	}
	opened, report, err := Open(testEnv(killed), "t-0", testTP, opts, OpenState{Trust: SameBoot, Now: testTime})
	check(t, err)
	if torn := len(l.snapshots) - 1; report.SnapshotsDropped != torn {
		t.Errorf("%d of %d torn snapshots were dropped", report.SnapshotsDropped, torn)
	}
	if got := opened.ActiveProducers(); len(got) != 1 || got[0].LastSequence != 999 {
		t.Errorf("the producers are %+v", got)
	}
	_, err = opened.Close(testTime, true)
	check(t, err)
	for name, content := range readDir(t, killed, "t-0") {
		if strings.HasSuffix(name, snapshotSuffix) {
			_, err := producer.ReadSnapshot([]byte(content))
			check(t, err)
		}
	}
}
