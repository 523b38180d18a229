package broker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// TestHasten: a failed directory is told at once, also when it fails while a heartbeat is under way that does not tell of it.
func TestHasten(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	var sent []kmsg.Request
	var answer func(kmsg.Response, error)
	var offline []protocol.DirectoryID
	l := NewLifecycle(LifecycleOptions{
		NodeID: 1, HeartbeatInterval: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Wake: func() {},
		Directories: func() []protocol.DirectoryID { return []protocol.DirectoryID{{1}, {2}} },
		Offline:     func() []protocol.DirectoryID { return offline }, MetadataOffset: func() protocol.Offset { return 5 },
		Send: func(req kmsg.Request, done func(kmsg.Response, error)) { sent, answer = append(sent, req), done },
	})
	step := func() {
		l.Tick(now)
		if due := l.NextDeadline(now); !due.IsZero() && !due.After(now) {
			l.Tick(now)
		}
	}
	last := func(requests int) *kmsg.BrokerHeartbeatRequest {
		t.Helper()
		if len(sent) != requests {
			t.Fatalf("%d requests were sent, not %d", len(sent), requests)
		}
		return sent[requests-1].(*kmsg.BrokerHeartbeatRequest)
	}
	step()
	answer(&kmsg.BrokerRegistrationResponse{BrokerEpoch: 9}, nil)
	step()
	last(2)
	offline = []protocol.DirectoryID{{2}}
	l.Hasten()
	step()
	last(2) // it waits for the answer
	answer(&kmsg.BrokerHeartbeatResponse{}, nil)
	step()
	if got := last(3).OfflineLogDirs; len(got) != 1 || got[0] != [16]byte{2} {
		t.Errorf("it tells of the directories %v", got)
	}
	answer(&kmsg.BrokerHeartbeatResponse{}, nil)
	step()
	last(3)
	if due := l.NextDeadline(now); !due.Equal(now.Add(2 * time.Second)) {
		t.Errorf("the next heartbeat is due after %v", due.Sub(now))
	}
	l.Hasten()
	step()
	last(4)
}
