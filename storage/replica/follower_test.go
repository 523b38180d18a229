package replica

import (
	"slices"
	"testing"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/partition"
)

// following is the state of a partition that node 2 leads.
func following(epoch protocol.LeaderEpoch) partition.State {
	return partition.State{
		TopicID: ordersID, Leader: 2, LeaderEpoch: epoch, PartitionEpoch: int32(epoch),
		ISR: []protocol.NodeID{1, 2}, Replicas: []protocol.NodeID{1, 2},
	}
}

// stamped is a batch as a leader's log has it.
func stamped(base protocol.Offset, epoch protocol.LeaderEpoch, count int) record.Batch {
	b := record.Batch(batch(count, 1))
	b.SetBaseOffset(base)
	b.SetPartitionLeaderEpoch(epoch)
	return b
}

func join(batches ...record.Batch) (bytes []byte) {
	for _, b := range batches {
		bytes = append(bytes, b...)
	}
	return bytes
}

func (f *fixture) copied(epoch protocol.LeaderEpoch, offset, highWatermark, logStart protocol.Offset, batches ...record.Batch) (FollowerPosition, error) {
	return f.manager.AppendFromLeader(f.now, LeaderData{
		Partition: orders, LeaderEpoch: epoch, Offset: offset, Records: join(batches...), HighWatermark: highWatermark, LogStart: logStart,
	})
}

func (f *fixture) expect(got FollowerPosition, err error, want FollowerPosition) {
	f.t.Helper()
	f.must(err)
	if got != want {
		f.t.Errorf("the follower is at %+v, not %+v", got, want)
	}
}

// TestFollower: bytes as the leader sent them, its high watermark as far as the log goes, its log start.
func TestFollower(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, following(3))
	at, err := f.manager.BeginFollowing(f.now, orders, ordersID, 3)
	f.expect(at, err, FollowerPosition{LastEpoch: -1})
	waiting, _ := f.poll(reader(orders, 0))
	first, second := stamped(0, 1, 5), stamped(7, 3, 2) // what compaction left of a leader's log
	at, err = f.copied(3, 0, 5, 0, first, second, stamped(9, 3, 1)[:20])
	f.expect(at, err, FollowerPosition{Offset: 9, LastEpoch: 3, HighWatermark: 5})
	woken := waiting.get()
	if got, err := woken[0].Records.ReadAll(); err != nil || !slices.Equal(got, first) {
		t.Errorf("a consumer of a follower got %d bytes, %v; the first batch has %d", len(got), err, len(first))
	}
	woken[0].Records.Release()
	at, err = f.copied(3, 9, 9, 7)
	f.expect(at, err, FollowerPosition{Offset: 9, LastEpoch: 3, HighWatermark: 9, LogStart: 7})
	if code := protocol.CodeOf(f.append(request(orders, batch(1, 1), AcksAll)).Err); code != protocol.NotLeaderOrFollower {
		t.Errorf("a producer was answered %v", code)
	}
}

func reader(tp protocol.TopicPartition, from protocol.Offset) FetchRequest {
	req := consumer(at(tp, from))
	req.Version = 11
	return req
}

// TestFollowerRefuses: batches that are damaged or out of order, and what comes in another epoch.
func TestFollowerRefuses(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, following(3))
	damaged := slices.Clone(stamped(5, 3, 1))
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name    string
		batches []record.Batch
		end     protocol.Offset
	}{
		{"damaged", []record.Batch{stamped(0, 3, 5), damaged, stamped(6, 3, 1)}, 5},
		{"back", []record.Batch{stamped(5, 3, 2), stamped(6, 3, 1), stamped(7, 3, 1)}, 7},
		{"of a later epoch", []record.Batch{stamped(7, 4, 1)}, 7},
	} {
		at, err := f.manager.BeginFollowing(f.now, orders, ordersID, 3)
		f.must(err)
		at, err = f.copied(3, at.Offset, 0, 0, c.batches...)
		if protocol.CodeOf(err) != protocol.CorruptMessage || at.Offset != c.end {
			t.Errorf("%s: %v, and the log ends at %d, not %d", c.name, err, at.Offset, c.end)
		}
	}
	if _, err := f.copied(2, 7, 0, 0); protocol.CodeOf(err) != protocol.FencedLeaderEpoch {
		t.Errorf("an earlier epoch: %v", err)
	}
	if _, err := f.copied(3, 6, 0, 0); protocol.CodeOf(err) != protocol.InvalidRequest {
		t.Errorf("another offset: %v", err)
	}
	f.lead(orders, among(ordersID, 4, 4, []protocol.NodeID{1}, 1, 2))
	if _, err := f.copied(4, 7, 0, 0); protocol.CodeOf(err) != protocol.NotLeaderOrFollower {
		t.Errorf("to a leader: %v", err)
	}
}

// TestFollowerTruncates: by epochs, to the leader's end, and to begin anew; and the high watermark goes with it, in the file
// too.
func TestFollowerTruncates(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, following(5))
	_, err := f.copied(5, 0, 8, 0, stamped(0, 1, 4), stamped(4, 3, 4), stamped(8, 5, 2))
	f.must(err)
	f.must(f.manager.checkpoint())
	f.lead(orders, following(6))
	at, err := f.manager.TruncateToLeader(f.now, orders, ordersID, 6, wire.EpochEndOffset{Epoch: 3, EndOffset: 9})
	f.expect(at, err, FollowerPosition{Offset: 8, LastEpoch: 3, HighWatermark: 8})
	at, err = f.manager.TruncateToLeader(f.now, orders, ordersID, 6, wire.EpochEndOffset{Epoch: 2, EndOffset: 6})
	f.expect(at, err, FollowerPosition{Offset: 4, LastEpoch: 1, HighWatermark: 4})
	if kept := f.store.HighWatermark(orders); kept > 4 {
		t.Errorf("the file says that %d is committed", kept)
	}
	at, err = f.manager.FitToLeader(f.now, orders, ordersID, 6, 0, 4)
	f.expect(at, err, FollowerPosition{Offset: 4, LastEpoch: 1, HighWatermark: 4})
	at, err = f.manager.FitToLeader(f.now, orders, ordersID, 6, 30, 40)
	f.expect(at, err, FollowerPosition{Offset: 30, LastEpoch: -1, LogStart: 30, HighWatermark: 30})
	// The leader's log starts within a batch.
	at, err = f.copied(6, 30, 33, 30, stamped(28, 5, 4), stamped(32, 6, 1))
	f.expect(at, err, FollowerPosition{Offset: 33, LastEpoch: 6, LogStart: 30, HighWatermark: 33})
	at, err = f.manager.FitToLeader(f.now, orders, ordersID, 6, 10, 20)
	f.expect(at, err, FollowerPosition{Offset: 20, LastEpoch: -1, LogStart: 20, HighWatermark: 20})
}

// TestFollowerFlushes: where only durable records count, a fetch acknowledges only what is durable.
func TestFollowerFlushes(t *testing.T) {
	f := newFixture(t)
	f.options.FlushMessages = 1
	f.lead(orders, following(1))
	f.manager.SetOptions(f.now, "orders", f.options)
	_, err := f.copied(1, 0, 0, 0, stamped(0, 1, 5))
	f.must(err)
	if view := f.store.Log(orders).View(); view.DurableEnd != 5 {
		t.Errorf("only %d is durable", view.DurableEnd)
	}
}

// TestFollowerOfAnotherTopic: what was fetched of a topic that is gone is not for the one that has its name now, in the same
// epoch and at the same offset.
func TestFollowerOfAnotherTopic(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, following(0))
	gone := protocol.TopicID{0xee}
	_, err := f.manager.AppendFromLeader(f.now, LeaderData{
		Partition: orders, TopicID: gone, LeaderEpoch: 0, Offset: 0, Records: stamped(0, 0, 3), HighWatermark: 3,
	})
	if protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Errorf("records: %v", err)
	}
	_, err = f.manager.AppendFromLeader(f.now, LeaderData{Partition: orders, TopicID: ordersID, Records: stamped(0, 0, 5), HighWatermark: 5})
	f.must(err)
	if _, err := f.manager.TruncateToLeader(f.now, orders, gone, 0, wire.EpochEndOffset{Epoch: 0, EndOffset: 2}); protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Errorf("truncation: %v", err)
	}
	if _, err := f.manager.FitToLeader(f.now, orders, gone, 0, 0, 2); protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Errorf("the leader's end: %v", err)
	}
	at, err := f.manager.BeginFollowing(f.now, orders, ordersID, 0)
	f.expect(at, err, FollowerPosition{Offset: 5, HighWatermark: 5})
}
