package api

import (
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// BEHAVIOUR 101, 103, 104: one member's way through a group, in every version of
// JoinGroup and with the others as far as they go.
func TestMembership(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.coordinate()
	versions(t, protocol.JoinGroup, func(t *testing.T, version int16) {
		p, id, group := f.connect(), "", "group-"+string(rune('0'+version))
		if version >= 4 {
			first := request[*kmsg.JoinGroupResponse](p, join(group, ""), version)
			if codeOf(first.ErrorCode) != protocol.MemberIDRequired || len(first.MemberID) != len("test-")+36 || first.MemberID[:5] != "test-" {
				t.Fatalf("without an id: %+v", first)
			}
			id = first.MemberID
		}
		req := join(group, id)
		p.send(req, version)
		f.pass(3 * time.Second)
		joined := p.receive(req).(*kmsg.JoinGroupResponse)
		if joined.ErrorCode != 0 || joined.Generation != 1 || joined.LeaderID != joined.MemberID || len(joined.Members) != 1 || *joined.Protocol != "range" {
			t.Fatalf("joined: %+v", joined)
		}
		id = joined.MemberID
		beats, syncs, leaves := min(version, 4), min(version, 5), min(version, 5)
		beat := func(id string, generation int32) codeOf {
			return codeOf(request[*kmsg.HeartbeatResponse](p, beating(group, id, generation), beats).ErrorCode)
		}
		if code := beat(id, 1); code != protocol.None {
			t.Errorf("heartbeat before SyncGroup: %v", code)
		}
		all := kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte("all")}
		synced := request[*kmsg.SyncGroupResponse](p, syncing(group, id, 1, all), syncs)
		if synced.ErrorCode != 0 || string(synced.MemberAssignment) != "all" {
			t.Fatalf("synced: %+v", synced)
		}
		if a, b, c := beat(id, 1), beat(id, 2), beat("nobody", 1); a != protocol.None || b != protocol.IllegalGeneration || c != protocol.UnknownMemberID {
			t.Errorf("heartbeats: %v, %v, %v", a, b, c)
		}
		leave := func(id string) codeOf {
			resp := request[*kmsg.LeaveGroupResponse](p, leaving(leaves, group, id), leaves)
			if leaves >= 3 && resp.ErrorCode == 0 {
				return codeOf(resp.Members[0].ErrorCode)
			}
			return codeOf(resp.ErrorCode)
		}
		if a, b, c := leave("nobody"), leave(id), leave(id); a != protocol.UnknownMemberID || b != protocol.None || c != protocol.UnknownMemberID {
			t.Errorf("left: %v, %v, %v", a, b, c)
		}
	})
}

// What is wrong with a request before any coordinator looks at it.
func TestMembershipRefused(t *testing.T) {
	authorizer := deny("secret")
	f := newFixture(t, func(n *Node) { n.Authorize = authorizer })
	f.coordinate()
	p := f.connect()
	noProtocol := syncing("g", "m", 1)
	noProtocol.Protocol = nil
	for _, test := range []struct {
		what    string
		req     kmsg.Request
		version int16
		want    codeOf
	}{
		{"join: no group", join("", "m"), 9, protocol.InvalidGroupID},
		{"join: no right", join("secret", "m"), 9, protocol.GroupAuthorizationFailed},
		{"sync: no group", syncing("", "m", 1), 5, protocol.InvalidGroupID},
		{"sync: no right", syncing("secret", "m", 1), 5, protocol.GroupAuthorizationFailed},
		{"sync: no protocol", noProtocol, 5, protocol.InconsistentGroupProtocol},
		{"beat: no group", beating("", "m", 1), 4, protocol.InvalidGroupID},
		{"beat: no right", beating("secret", "m", 1), 4, protocol.GroupAuthorizationFailed},
		{"leave: no group", leaving(5, "", "m"), 5, protocol.InvalidGroupID},
		{"leave: no right", leaving(5, "secret", "m"), 5, protocol.GroupAuthorizationFailed},
	} {
		if got := topCode(request[kmsg.Response](p, test.req, test.version)); got != test.want {
			t.Errorf("%s: %v, not %v", test.what, got, test.want)
		}
	}
	if resp := request[*kmsg.JoinGroupResponse](p, join("", "m"), 9); resp.MemberID != "m" {
		t.Errorf("the member is %q", resp.MemberID)
	}
	for _, asked := range authorizer.asked {
		if asked.kind != kmsg.ACLResourceTypeGroup || asked.operation != kmsg.ACLOperationRead {
			t.Errorf("asked for %v", asked)
		}
	}
}

// A JoinGroup or SyncGroup waits for the others, and so does what its client sends
// after it; a client that hangs up leaves nothing behind but its member, which
// times out (BEHAVIOUR 102, 103).
func TestMembersWaitForEachOther(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	f.coordinate()
	first := f.alone("g")
	second := f.connect()
	id := request[*kmsg.JoinGroupResponse](second, join("g", ""), 9).MemberID
	joining := join("g", id)
	second.send(joining, 9)
	if code := first.beat(); code != protocol.RebalanceInProgress {
		t.Fatalf("heartbeat of the first: %v", code)
	}
	again := request[*kmsg.JoinGroupResponse](first.peer, join("g", first.id), 9)
	other := second.receive(joining).(*kmsg.JoinGroupResponse)
	if again.Generation != 2 || other.Generation != 2 || len(again.Members) != 2 || len(other.Members) != 0 || other.LeaderID != first.id {
		t.Fatalf("the first %+v, the second %+v", again, other)
	}
	first.generation = 2
	waiting := syncing("g", id, 2)
	second.send(waiting, 5)
	both := []kmsg.SyncGroupRequestGroupAssignment{{MemberID: first.id, MemberAssignment: []byte("a")}, {MemberID: id, MemberAssignment: []byte("b")}}
	mine := request[*kmsg.SyncGroupResponse](first.peer, syncing("g", first.id, 2, both...), 5)
	theirs := second.receive(waiting).(*kmsg.SyncGroupResponse)
	if string(mine.MemberAssignment) != "a" || string(theirs.MemberAssignment) != "b" {
		t.Errorf("assigned %q and %q", mine.MemberAssignment, theirs.MemberAssignment)
	}
	// The second goes away while it waits for a third generation.
	third := join("g", id)
	third.Protocols[0].Metadata = subscription("orders", "refunds")
	second.send(third, 9)
	_ = second.conn.Close()
	if code := first.beat(); code != protocol.RebalanceInProgress {
		t.Fatalf("heartbeat of the first: %v", code)
	}
	alone := join("g", first.id)
	first.send(alone, 9)
	joined := first.receive(alone).(*kmsg.JoinGroupResponse)
	if joined.Generation != 3 || len(joined.Members) != 2 {
		t.Fatalf("third generation: %+v", joined)
	}
	first.generation = 3
	both[1].MemberAssignment = nil
	_ = request[*kmsg.SyncGroupResponse](first.peer, syncing("g", first.id, 3, both...), 5)
	for range 5 { // 10 s is its session
		f.pass(2500 * time.Millisecond)
		if code := first.beat(); code == protocol.RebalanceInProgress {
			return
		}
	}
	t.Error("a member that hung up is still in the group after its session")
}

// BEHAVIOUR 110: a partition that is being loaded, and one that another node leads.
func TestMembershipWithoutCoordinator(t *testing.T) {
	f := newFixture(t)
	f.topic("orders", topicSpec{})
	p := f.connect()
	codes := func() (joined, synced, beaten, left codeOf) {
		return topCode(request[kmsg.Response](p, join("g", "m"), 9)), topCode(request[kmsg.Response](p, syncing("g", "m", 1), 5)),
			topCode(request[kmsg.Response](p, beating("g", "m", 1), 4)), topCode(request[kmsg.Response](p, leaving(5, "g", "m"), 5))
	}
	if a, b, c, d := codes(); a != protocol.NotCoordinator || b != a || c != a || d != a {
		t.Errorf("without the topic: %v, %v, %v, %v", a, b, c, d)
	}
	f.createOffsetsTopic(offsetsPartitions)
	if a, b, c, d := codes(); a != protocol.CoordinatorLoadInProgress || b != a || c != protocol.None || d != a {
		t.Errorf("while loading: %v, %v, %v, %v", a, b, c, d)
	}
	f.settle()
	m := f.alone("g")
	other := f.connect()
	id := request[*kmsg.JoinGroupResponse](other, join("g", ""), 9).MemberID
	waiting := join("g", id)
	other.send(waiting, 9)
	f.lead("g", 2)
	if code := topCode(other.receive(waiting)); code != protocol.NotCoordinator {
		t.Errorf("a JoinGroup that waits when the leader changes: %v", code)
	}
	if a, b, c, d := codes(); a != protocol.NotCoordinator || b != a || c != a || d != a {
		t.Errorf("led by another node: %v, %v, %v, %v", a, b, c, d)
	}
	f.lead("g", 1)
	f.settle()
	if code := m.beat(); code != protocol.None {
		t.Errorf("generation %d after two failovers: %v", m.generation, code)
	}
}

func TestJavaAddress(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1":        "/127.0.0.1",
		"::1":              "/0:0:0:0:0:0:0:1",
		"2001:db8::8:800c": "/2001:db8:0:0:0:0:8:800c",
		"::ffff:10.1.2.3":  "/10.1.2.3",
	} {
		if got := javaAddress(&net.TCPAddr{IP: net.ParseIP(given), Port: 5}); got != want {
			t.Errorf("%s is shown as %s, not %s", given, got, want)
		}
	}
	if got := javaAddress(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 5}); got != "/fe80:0:0:0:0:0:0:1%eth0" {
		t.Errorf("a scoped address is shown as %s", got)
	}
}
