package api

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol/wire"
)

// FuzzRequests gives arbitrary bodies to every API of the registry: each is
// answered once or ends its connection, and no handler fails.
func FuzzRequests(f *testing.F) {
	fix := newFixture(f)
	fix.topic("orders", topicSpec{partitions: 2})
	fix.coordinate()
	for at, a := range registry {
		for version := a.MinVersion; version <= a.MaxVersion; version++ {
			req := kmsg.RequestForKey(int16(a.Key))
			req.SetVersion(version)
			f.Add(byte(at), byte(version-a.MinVersion), req.AppendTo(nil))
		}
	}
	for _, seed := range []struct {
		req     kmsg.Request
		version int16
	}{
		{produceTo(fix, 9, 1, "orders", batchOf("a"), batchOf("b")), 9},
		{produceTo(fix, 13, 0, "orders", batchOf("a")), 13},
		{fetchFrom(12, "orders", 0), 12},
		{fetchFrom(17, "orders", 0), 17},
		{listOne("orders", -1), 9},
		{epochEndOf("orders", -1, 0), 4},
		{deleteTo("orders", 0, -1), 2},
		{coordinator(4, groupCoordinator, "g", "h"), 4},
		{join("g", ""), 3},
		{join("g", ""), 9},
		{syncing("g", "m", 1), 5},
		{beating("g", "m", 1), 4},
		{leaving(5, "g", "m"), 5},
		{committing(9, "g", "orders", 1, 2), 9},
		{committing(10, "g", "orders", 1), 10},
		{askingFor(7, "g", "orders", 0), 7},
		{askingFor(9, "g", "orders", 0), 9},
		{askingFor(10, "g", ""), 10},
		{describing("g", "h"), 6},
	} {
		for at, a := range registry {
			if int16(a.Key) == seed.req.Key() {
				seed.req.SetVersion(seed.version)
				f.Add(byte(at), byte(seed.version-a.MinVersion), seed.req.AppendTo(nil))
			}
		}
	}
	f.Fuzz(func(t *testing.T, at, above byte, body []byte) {
		a := registry[int(at)%len(registry)]
		version := a.MinVersion + int16(above)%(a.MaxVersion-a.MinVersion+1)
		p := fix.connectAs(a.Scope)
		_ = p.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		_, _ = p.conn.Write(frameOf(int16(a.Key), version, body))
		handled := <-fix.handled
		for handled.Header.CorrelationID != 1 { // the second of a connection that its first had ended
			handled = <-fix.handled
		}
		fix.handler.ConnectionClosed(handled.Conn) // ends a long poll
		fix.pass(31 * time.Minute)                 // longer than a member of a group may wait for the others
		next := apiVersionsRequest()
		next.SetVersion(3)
		_, _ = p.conn.Write(wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: 2}, next))
		for range 2 {
			answer, err := p.receiveFrame()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%s %d: neither an answer nor an end", a.Key, version)
			}
			if err != nil {
				break // closed
			}
			if binary.BigEndian.Uint32(answer) == 2 {
				break
			}
		}
		_ = p.conn.Close()
		fix.mu.Lock()
		defer fix.mu.Unlock()
		if len(fix.errors) > 0 {
			t.Fatalf("%s %d: %q", a.Key, version, fix.errors)
		}
	})
}

// frameOf makes a request out of any body.
func frameOf(key, version int16, body []byte) []byte {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	frame := wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: 1}, req)
	header, _, err := headerAndBody(frame)
	if err != nil {
		panic(err)
	}
	frame = append(frame[:len(header)], body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-wire.LengthBytes))
	return frame
}

func headerAndBody(frame []byte) (header, body []byte, err error) {
	_, body, err = wire.ReadRequestHeader(frame[wire.LengthBytes:])
	return frame[:len(frame)-len(body)], body, err
}
