package server

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// TestLocal drives a connection step by step: replies come out in the order of
// the requests, whatever the order in which they were made.
func TestLocal(t *testing.T) {
	var waiting []*Request
	ended := 0
	s := New(HandlerFunc(func(req *Request) { waiting = append(waiting, req) }), Options{
		MaxOutstanding: 2, Now: func() time.Time { return time.Unix(7, 0) }, ConnectionClosed: func(*Conn) { ended++ },
	})
	l := s.Local(Listener{Name: "PLAINTEXT", Scope: protocol.OnBroker})
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(12)
	for id := range int32(2) {
		header := wire.RequestHeader{Key: protocol.Metadata, Version: 12, CorrelationID: id}
		if err := l.Deliver(wire.AppendRequest(nil, header, request)[wire.LengthBytes:]); err != nil {
			t.Fatal(err)
		}
	}
	if !l.Blocked() || l.Ready() {
		t.Fatal("two requests are unanswered: reading is to wait, and nothing is to be written")
	}
	if got := waiting[1].Received; !got.Equal(time.Unix(7, 0)) {
		t.Fatalf("received at %v", got)
	}
	reply := kmsg.NewPtrMetadataResponse()
	reply.SetVersion(12)
	waiting[1].Reply(reply)
	if l.Ready() {
		t.Fatal("the second reply waits for the first")
	}
	waiting[0].Reply(reply)
	written, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	for want := range int32(2) {
		size := int(written[2])<<8 | int(written[3])
		id, _, err := wire.ReadResponse(written[wire.LengthBytes:wire.LengthBytes+size], request)
		if err != nil || id != want {
			t.Fatalf("reply %d, %v; want %d", id, err, want)
		}
		written = written[wire.LengthBytes+size:]
	}
	if len(written) != 0 || l.Blocked() {
		t.Fatal("all is written and answered")
	}
	if err := l.Deliver([]byte{0, 99, 0, 0, 0, 0, 0, 0, 0, 0}); !errors.Is(err, wire.ErrUnsupportedVersion) {
		t.Fatalf("an unknown API gave %v", err)
	}
	if _, err := l.Take(); !errors.Is(err, io.EOF) || ended != 1 {
		t.Fatalf("the connection ends after its last reply: %v, ended %d times", err, ended)
	}
}
