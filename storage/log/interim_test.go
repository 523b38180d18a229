package log

import (
	"testing"
	"time"

	"ottla/protocol"
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
