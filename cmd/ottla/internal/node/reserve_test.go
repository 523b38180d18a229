package node_test

import (
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// TestStartWithNoByteFree: a node that was killed on a disk that others have filled to the last byte starts, and serves reads and
// deletions, as it has kept a little room for that. With room it goes on by itself, and keeps some again.
func TestStartWithNoByteFree(t *testing.T) {
	s := newStepped(t)
	s.disk.SetCapacity(64 * mebibyte)
	s.boot()
	reserved := func() bool { _, err := s.disk.Stat("/data/ottla-reserve"); return err == nil }
	s.run(5*time.Second, reserved)
	for _, topic := range []string{"orders", "bills"} {
		s.topic(topic, 1)
		if code := s.append(topic, batchAt(s.now, 1000)); code != protocol.None {
			t.Fatal(code)
		}
	}
	give := s.occupy(0)
	s.again(s.disk.Kill())
	if reserved() || s.node.Space("/data").State() != space.Critical {
		t.Errorf("the reserve is there: %v, the disk is %v", reserved(), s.node.Space("/data").State())
	}
	if s.consume("orders", 0) == 0 {
		t.Error("nothing can be read")
	}
	if code := s.append("orders", batchAt(s.now, 1)); code != protocol.KafkaStorageError {
		t.Errorf("an append is answered by %s", code)
	}
	s.remove("bills")
	give()
	s.becomes(space.Roomy)
	if code := s.append("orders", batchAt(s.now, 1)); code != protocol.None {
		t.Errorf("with room: %s", code)
	}
	s.run(5*time.Second, reserved)
}

// again starts the node anew on what the other one has left.
func (s *stepped) again(disk *vfs.Mem) {
	s.Helper()
	s.disk, s.requests, s.now = disk, nil, s.now.Add(time.Minute)
	s.boot()
}
