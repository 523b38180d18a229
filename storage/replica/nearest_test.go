package replica

import (
	"testing"
	"time"

	"ottla/protocol"
)

// TestNearest: a consumer in another rack is told of the replica there, and gets no records; who is in the leader's rack, or
// in none, or asks in a version that cannot be told, is served.
func TestNearest(t *testing.T) {
	racks := map[protocol.NodeID]string{1: "a", 2: "b", 3: "b"}
	f := newFixture(t, func(_ *fixture, o *Options) { o.Rack = func(id protocol.NodeID) string { return racks[id] } })
	f.lead(orders, among(ordersID, 1, 1, []protocol.NodeID{1, 2, 3}, 1, 2, 3))
	f.fill(orders, batch(3, 1), batch(2, 1))
	f.fetch(follower(2, at(orders, 3)))[0].Records.Release()
	f.fetch(follower(3, at(orders, 3)))[0].Records.Release()
	third := follower(3, at(orders, 5))
	third.MaxWait = 0
	f.fetch(third)
	for _, c := range []struct {
		rack    string
		offset  protocol.Offset
		version int16
		want    protocol.NodeID
	}{
		{"b", 0, 17, 3}, {"b", 5, 17, 3}, {"b", 0, 10, -1}, {"a", 0, 17, -1}, {"", 0, 17, -1}, {"c", 0, 17, -1},
	} {
		req := consumer(at(orders, c.offset))
		req.ClientRack, req.Version, req.MaxWait = c.rack, c.version, 0
		got := f.fetch(req)[0]
		if got.PreferredReadReplica != c.want || got.Err != nil || c.want > 0 && got.Records.Len() > 0 {
			t.Errorf("rack %q at %d: sent to %d with %d bytes, %v", c.rack, c.offset, got.PreferredReadReplica, got.Records.Len(), got.Err)
		}
		got.Records.Release()
	}
}

// TestReplicationLimit: a throttled follower that is not in sync gets its share, then nothing for a while; one that is in sync
// gets all.
func TestReplicationLimit(t *testing.T) {
	f := newFixture(t, func(_ *fixture, o *Options) {
		o.Throttled = func(_ protocol.TopicPartition, id protocol.NodeID) bool { return id > 1 }
	})
	f.lead(orders, among(ordersID, 1, 1, []protocol.NodeID{1, 2}, 1, 2, 3))
	f.fill(orders, batch(3, 1000))
	f.manager.SetReplicationLimit(3000)
	get := func(id protocol.NodeID) int64 {
		req := follower(id, at(orders, 0))
		req.MaxWait = 0
		result := f.fetch(req)[0]
		defer result.Records.Release()
		return result.Records.Len()
	}
	whole := get(2)
	if first, second := get(3), get(3); first != whole || second != 0 || whole == 0 {
		t.Errorf("it got %d bytes, then %d, of %d", first, second, whole)
	}
	if again := get(2); again != whole {
		t.Errorf("who is in sync got %d bytes of %d", again, whole)
	}
	f.now = f.now.Add(2 * time.Second)
	if later := get(3); later != whole {
		t.Errorf("later it got %d bytes of %d", later, whole)
	}
}
