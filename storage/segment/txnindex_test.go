package segment

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// TestDropAbortedOnFullDisk: what stays in a transaction index is there at every moment, also for readers who look while
// the rest is dropped, and also when the disk takes no byte more.
func TestDropAbortedOnFullDisk(t *testing.T) {
	s, disk := makeSegment(t, 0, 100)
	list := func() []protocol.Offset {
		var markers []protocol.Offset
		_, err := s.Aborted(0, func(a AbortedTxn) bool {
			markers = append(markers, a.LastOffset)
			return true
		})
		check(t, err)
		return markers
	}
	for _, marker := range []protocol.Offset{5, 9, 14} {
		check(t, s.AddAborted(AbortedTxn{ProducerID: 1, FirstOffset: marker - 3, LastOffset: marker, LastStableOffset: marker - 3}))
	}
	full := true
	disk.OnOperation(func(op vfs.Operation) error {
		if full && op.Kind != vfs.OpRead && strings.HasSuffix(op.Name, ".txnindex") {
			if kept := list(); len(kept) < 2 {
				t.Errorf("before %s a reader finds only %v", op, kept)
			}
			if op.Kind == vfs.OpWrite {
				return &vfs.PartialWriteError{Bytes: 13, Err: syscall.ENOSPC}
			}
		}
		return nil
	})
	if err := s.AddAborted(AbortedTxn{ProducerID: 1, FirstOffset: 15, LastOffset: 20, LastStableOffset: 15}); err == nil {
		t.Fatal("the disk was not full")
	}
	check(t, s.DropAborted(14))
	if got := list(); !slices.Equal(got, []protocol.Offset{5, 9}) {
		t.Errorf("dropped to %v", got)
	}
	full = false
	check(t, s.AddAborted(AbortedTxn{ProducerID: 1, FirstOffset: 10, LastOffset: 14, LastStableOffset: 10}))
	if got := list(); !slices.Equal(got, []protocol.Offset{5, 9, 14}) {
		t.Errorf("then there is %v", got)
	}
	onDisk, err := s.ReadTxnIndex(100)
	check(t, err)
	if len(onDisk) != 3 {
		t.Errorf("on the disk is %v", onDisk)
	}
}
