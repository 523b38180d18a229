package server

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// TestReplyOrderWithLateReplies: replies that are there at once, and those that come from elsewhere, go out in the order of the
// requests, whoever sends them.
func TestReplyOrderWithLateReplies(t *testing.T) {
	const requests = 3000
	late := make(chan *Request, requests)
	answer := func(r *Request) {
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.Version = r.Header.Version
		resp.ThrottleMillis = r.Header.CorrelationID
		r.Reply(resp)
	}
	handled := HandlerFunc(func(r *Request) {
		if r.Header.CorrelationID%3 == 1 {
			late <- r
			return
		}
		answer(r)
	})
	go func() {
		for r := range late {
			answer(r)
		}
	}()
	s := New(handled, Options{})
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(on, Listener{Name: "TEST", Scope: protocol.OnBroker}) }()
	defer func() { _ = s.Close(t.Context()); close(late) }()
	conn, err := net.Dial("tcp", on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		format := kmsg.NewRequestFormatter()
		for n := range requests {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Version = 3
			if _, err := conn.Write(format.AppendRequest(nil, req, int32(n))); err != nil {
				return
			}
		}
	}()
	for n := range int32(requests) {
		var prefix [wire.LengthBytes]byte
		_, err := io.ReadFull(conn, prefix[:])
		frame := make([]byte, binary.BigEndian.Uint32(prefix[:])&0xffff)
		if _, more := io.ReadFull(conn, frame); err != nil || more != nil {
			t.Fatalf("reply %d: %v, %v", n, err, more)
		}
		got := kmsg.NewPtrHeartbeatResponse()
		got.Version = 3
		if err := got.ReadFrom(frame[4:]); err != nil || got.ThrottleMillis != n {
			t.Fatalf("reply %d is that of request %d (%v)", n, got.ThrottleMillis, err)
		}
	}
}

// TestNothingIsHandledAfterAClose: what came in one write behind a request that ends the connection is not handled.
func TestNothingIsHandledAfterAClose(t *testing.T) {
	handled := make(chan int32, 10)
	s := New(HandlerFunc(func(r *Request) {
		handled <- r.Header.CorrelationID
		r.CloseConnection(nil)
	}), Options{})
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(on, Listener{Name: "TEST", Scope: protocol.OnBroker}) }()
	conn, err := net.Dial("tcp", on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	var all []byte
	for n := range int32(5) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version = 3
		all = kmsg.NewRequestFormatter().AppendRequest(all, req, n)
	}
	if _, err := conn.Write(all); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes of a reply", n)
	}
	_ = s.Close(t.Context()) // waits for the reader
	if close(handled); len(handled) != 1 {
		t.Errorf("%d requests were handled", len(handled))
	}
}
