package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/replica"
)

// panicking is an Authorizer that fails as a handler might.
type panicking struct{ Permissive }

func (*panicking) Allowed(Requester, kmsg.ACLOperation, kmsg.ACLResourceType, string) bool {
	panic("a fault in a handler")
}

// A fault in a handler costs the client its connection, and is logged.
func TestGuardClosesTheConnection(t *testing.T) {
	f := newFixture(t, func(n *Node) { n.Authorize = &panicking{} })
	f.topic("orders", topicSpec{})
	p := f.connect()
	p.send(listOne("orders", -1), 9)
	p.expectClosed()
	if resp := request[*kmsg.ApiVersionsResponse](f.connect(), apiVersionsRequest(), 3); resp.ErrorCode != 0 {
		t.Errorf("error %d", resp.ErrorCode)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errors) != 1 || f.errors[0] != "a handler failed" {
		t.Errorf("logged: %q", f.errors)
	}
}

// passesGuard tells whether a panic in run passes through guard, which ends the
// process.
func passesGuard(f *fixture, run func(c *call)) (passed bool) {
	f.t.Helper()
	p := f.connect()
	req := apiVersionsRequest()
	req.SetVersion(3)
	p.sendFrame(wire.AppendRequest(nil, wire.RequestHeader{}, req))
	c := &call{Node: f.handler.node, handler: f.handler, request: <-f.handled}
	c.answered.Store(true)
	defer func() { passed = recover() != nil }()
	c.guard(func() { run(c) })
	return false
}

// What comes out of storage is a broken invariant; what comes out of a handler, an
// immutable value or a client's bytes is not.
func TestGuardTellsPanicsApart(t *testing.T) {
	f := newFixture(t)
	var gone *replica.Manager
	var nothing *metadata.Image
	nowhere := protocol.TopicPartition{Topic: "nothing"}
	for _, test := range []struct {
		what string
		run  func(c *call)
		want bool
	}{
		{"a handler", func(*call) { panic("handler") }, false},
		{"storage", func(*call) { _, _ = gone.ListOffset(f.now(), replica.OffsetQuery{}) }, true},
		{"the image", func(*call) { nothing.Topic("x") }, false},
		{"a guarded callback of storage", func(c *call) {
			f.replicas.DeleteRecords(f.now(), nowhere, 0, 0, func(protocol.Offset, error) { c.guard(func() { panic("callback") }) })
		}, false},
		{"storage below a guarded callback of storage", func(c *call) {
			f.replicas.DeleteRecords(f.now(), nowhere, 0, 0, func(protocol.Offset, error) {
				c.guard(func() { _, _ = gone.ListOffset(f.now(), replica.OffsetQuery{}) })
			})
		}, true},
	} {
		if got := passesGuard(f, test.run); got != test.want {
			t.Errorf("a panic of %s passes: %v", test.what, got)
		}
	}
}
