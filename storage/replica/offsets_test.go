package replica

import (
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/partition"
)

func (f *fixture) listOffset(q OffsetQuery) (OffsetResult, error) {
	return f.manager.ListOffset(f.now, q)
}

func query(tp protocol.TopicPartition, timestampMs int64) OffsetQuery {
	return OffsetQuery{Partition: tp, CurrentLeaderEpoch: protocol.NoLeaderEpoch, TimestampMs: timestampMs, Replica: Consumer}
}

func TestListOffset(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	b := record.NewBuilder(record.PlainOptions())
	for _, ms := range []int64{100, 300, 200} {
		b.Append(start.UnixMilli()+ms, []byte("k"), nil, nil)
	}
	f.fill(orders, b.Build(nil))
	f.lead(orders, alone(ordersID, 1))
	f.fill(orders, batch(2, 1)) // 3, 4 at 0 and 1 ms
	f.fill(orders, transactional(7, 0, 1))
	now := start.UnixMilli()
	cases := []struct {
		timestampMs int64
		want        OffsetResult
	}{
		{LatestTimestamp, OffsetResult{-1, 6, 1}},
		{EarliestTimestamp, OffsetResult{-1, 0, 0}},
		{EarliestLocalTimestamp, OffsetResult{-1, 0, 0}},
		{MaxTimestamp, OffsetResult{now + 300, 1, 0}},
		{LatestTieredTimestamp, nothingFound},
		{EarliestPendingUpload, nothingFound},
		{0, OffsetResult{now + 100, 0, 0}},
		{now + 101, OffsetResult{now + 300, 1, 0}},
		{now + 301, nothingFound},
	}
	for _, c := range cases {
		got, err := f.listOffset(query(orders, c.timestampMs))
		if err != nil || got != c.want {
			t.Errorf("%d: got %+v, %v, want %+v", c.timestampMs, got, err, c.want)
		}
	}
	q := query(orders, LatestTimestamp)
	q.ReadCommitted = true
	if got, err := f.listOffset(q); err != nil || got.Offset != 5 {
		t.Errorf("read_committed: %+v, %v", got, err)
	}
	if _, err := f.listOffset(query(orders, -7)); code(err) != protocol.UnsupportedVersion {
		t.Errorf("got %v", err)
	}
	q = query(orders, LatestTimestamp)
	q.CurrentLeaderEpoch = 0
	if _, err := f.listOffset(q); code(err) != protocol.FencedLeaderEpoch {
		t.Errorf("got %v", err)
	}
	if _, err := f.listOffset(query(bills, LatestTimestamp)); code(err) != protocol.UnknownTopicOrPartition {
		t.Errorf("got %v", err)
	}
}

// TestListOffsetBehind: a new leader does not know yet what is committed.
func TestListOffsetBehind(t *testing.T) {
	f := newFixture(t)
	isr := []protocol.NodeID{1, 2}
	f.lead(orders, among(ordersID, 1, 0, isr, 1, 2))
	f.fill(orders, batch(3, 1))
	f.lead(orders, among(ordersID, 2, 1, isr, 1, 2))
	for _, timestamp := range []int64{LatestTimestamp, MaxTimestamp, start.UnixMilli()} {
		if _, err := f.listOffset(query(orders, timestamp)); code(err) != protocol.OffsetNotAvailable {
			t.Errorf("%d: got %v", timestamp, err)
		}
	}
	if got, err := f.listOffset(query(orders, EarliestTimestamp)); err != nil || got.Offset != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	q := query(orders, LatestTimestamp)
	q.Replica = 2
	if got, err := f.listOffset(q); err != nil || got.Offset != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	f.poll(follower(2, at(orders, 3)))
	if got, err := f.listOffset(query(orders, LatestTimestamp)); err != nil || got.Offset != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 3, PartitionEpoch: 2, ISR: isr, Replicas: isr})
	if _, err := f.listOffset(query(orders, LatestTimestamp)); code(err) != protocol.NotLeaderOrFollower {
		t.Errorf("got %v", err)
	}
	q = query(orders, LatestTimestamp)
	q.Replica = Debugging
	if got, err := f.listOffset(q); err != nil || got.Offset != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEpochEnd(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(4, 1))
	f.lead(orders, alone(ordersID, 3))
	f.fill(orders, batch(2, 1))
	cases := []struct {
		epoch, want protocol.LeaderEpoch
		end         protocol.Offset
	}{{0, 0, 4}, {2, 0, 4}, {3, 3, 6}, {4, -1, -1}, {-1, -1, -1}, {-7, -7, 0}}
	for _, c := range cases {
		epoch, end, err := f.manager.EpochEnd(orders, 3, c.epoch)
		if err != nil || epoch != c.want || end != c.end {
			t.Errorf("epoch %d: %d, %d, %v", c.epoch, epoch, end, err)
		}
	}
	if _, _, err := f.manager.EpochEnd(orders, 4, 0); code(err) != protocol.UnknownLeaderEpoch {
		t.Errorf("got %v", err)
	}
}

type lowWatermark struct {
	offset protocol.Offset
	err    error
}

func (f *fixture) deleteRecords(tp protocol.TopicPartition, offset protocol.Offset) *pending[lowWatermark] {
	p := newPending[lowWatermark](f.t)
	f.manager.DeleteRecords(f.now, tp, offset, time.Second, func(low protocol.Offset, err error) { p.done(lowWatermark{low, err}) })
	return p
}

func TestDeleteRecords(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(4, 1), batch(4, 1))
	cases := []struct {
		offset, want protocol.Offset
		code         protocol.ErrorCode
	}{
		{5, 5, 0}, {3, 5, 0}, {9, -1, protocol.OffsetOutOfRange}, {-2, -1, protocol.OffsetOutOfRange}, {-1, 8, 0},
	}
	for _, c := range cases {
		got := f.deleteRecords(orders, c.offset).get()
		if got.offset != c.want || code(got.err) != c.code {
			t.Errorf("%d: got %+v", c.offset, got)
		}
		if c.offset == 5 {
			if got := sizes(t, f.fetch(consumer(at(orders, 5)))); got != "1@4" {
				t.Errorf("got %s", got)
			}
			if got := f.fetch(consumer(at(orders, 4)))[0]; code(got.Err) != protocol.OffsetOutOfRange {
				t.Errorf("got %+v", got)
			}
		}
	}
	if got := f.deleteRecords(bills, 0).get(); code(got.err) != protocol.UnknownTopicOrPartition {
		t.Errorf("got %+v", got)
	}
	f.idle()
}

func TestDeleteRecordsWaits(t *testing.T) {
	f := newFixture(t)
	isr := []protocol.NodeID{1, 2}
	f.lead(orders, among(ordersID, 1, 0, isr, 1, 2))
	f.fill(orders, batch(4, 1))
	f.poll(follower(2, at(orders, 4)))
	first, second := f.deleteRecords(orders, 3), f.deleteRecords(orders, 4)
	req := follower(2, at(orders, 4))
	req.Partitions[0].FollowerLogStart = 3
	f.poll(req)
	if got := first.get(); got.offset != 3 || got.err != nil {
		t.Errorf("got %+v", got)
	}
	f.manager.Tick(start.Add(time.Second))
	if got := second.get(); code(got.err) != protocol.RequestTimedOut {
		t.Errorf("got %+v", got)
	}
	third := f.deleteRecords(orders, 4)
	f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 3, PartitionEpoch: 2, ISR: isr, Replicas: isr})
	if got := third.get(); code(got.err) != protocol.NotLeaderOrFollower {
		t.Errorf("got %+v", got)
	}
}

func TestDeleteRecordsOfCompactedTopic(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) { f.options.Compact, f.options.Delete = true, false })
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(4, 1))
	if got := f.deleteRecords(orders, 1).get(); code(got.err) != protocol.PolicyViolation {
		t.Errorf("got %+v", got)
	}
}
