package log

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// TestCutWithoutRoom cuts a follower's log where the file of its leader epochs finds no room: the log is cut wholly, its producers and
// epochs are those that a start finds in it, and a batch of the next epoch waits for room.
func TestCutWithoutRoom(t *testing.T) {
	for _, to := range []protocol.Offset{6, 3, 0} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			disk := newDisk(1)
			l := createLog(t, disk, smallOptions())
			follow := func(epoch protocol.LeaderEpoch, sequence int32) error {
				b := batchBy(7, 0, sequence, 3, true)
				b.SetPartitionLeaderEpoch(epoch)
				b.SetBaseOffset(l.View().LogEndOffset)
				return l.Append(testTime, epoch, []*Entry{{Batch: b, Origin: OriginFollower}})
			}
			for i, epoch := range []protocol.LeaderEpoch{1, 1, 2, 3} {
				check(t, follow(epoch, int32(3*i)))
			}
			full := func(op vfs.Operation) error {
				if strings.Contains(op.Name, epochFile) && (op.Kind == vfs.OpCreate || op.Kind == vfs.OpWrite || op.Kind == vfs.OpRename) {
					return syscall.ENOSPC
				}
				return nil
			}
			disk.OnOperation(full)
			check(t, l.TruncateTo(to))
			likeOpened(t, l, disk)
			if err := follow(4, int32(to)); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("a batch of an epoch that is in no file: %v", err)
			}
			likeOpened(t, l, disk)
			disk.OnOperation(nil)
			check(t, follow(4, int32(to)))
			likeOpened(t, l, disk)
			if epoch := l.EpochOf(to); epoch != 4 {
				t.Errorf("offset %d is of epoch %d", to, epoch)
			}
		})
	}
}

// TestAnewWithoutRoom begins a log anew where a file finds no room as long as what is dropped is there.
func TestAnewWithoutRoom(t *testing.T) {
	for _, suffix := range []string{".log", ".index", ".timeindex"} {
		disk := newDisk(1)
		l := createLog(t, disk, smallOptions())
		for i := range int32(10) {
			appendOne(t, l, OriginClient, batchBy(7, 0, 3*i, 3, false))
		}
		room := false
		disk.OnOperation(func(op vfs.Operation) error {
			room = room || op.Kind == vfs.OpRemove && strings.HasSuffix(op.Name, ".log.deleted")
			if op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, suffix) && !room {
				return syscall.EDQUOT
			}
			return nil
		})
		check(t, l.TruncateFullyAndStartAt(40))
		appendOne(t, l, OriginClient, batchBy(7, 0, 0, 3, false))
		if !room || l.View().LogStartOffset != 40 || l.View().LogEndOffset != 43 {
			t.Errorf("%s: %+v, asked for room: %v", suffix, l.View(), room)
		}
		likeOpened(t, l, disk)
	}
}

// likeOpened compares a log with what a start makes of its files.
func likeOpened(t *testing.T, l *Log, disk *vfs.Mem) {
	t.Helper()
	again, _, err := Open(testEnv(disk.Kill()), "log/t-0", testTP, smallOptions(), OpenState{Trust: SameBoot, Now: testTime})
	check(t, err)
	state := func(l *Log) string {
		return fmt.Sprintf("end %d, producers %+v, stable %d", l.View().LogEndOffset, l.ActiveProducers(), l.View().FirstUnstableOffset)
	}
	if state(l) != state(again) || !slices.Equal(l.Epochs(), again.Epochs()) {
		t.Fatalf("%s, epochs %v\na start finds\n%s, epochs %v", state(l), l.Epochs(), state(again), again.Epochs())
	}
}
