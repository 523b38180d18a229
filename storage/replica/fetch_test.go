package replica

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

// sizes gives the bytes and the first offset of each result, and releases them.
func sizes(t *testing.T, results []FetchResult) string {
	t.Helper()
	text := ""
	for i := range results {
		batches := batchesOf(t, &results[i])
		text += fmt.Sprintf("%d", len(batches))
		if len(batches) > 0 {
			text += fmt.Sprintf("@%d", batches[0].BaseOffset())
		}
		if results[i].Err != nil {
			text += "!" + code(results[i].Err).String()
		}
		text += " "
	}
	return text[:len(text)-1]
}

// TestKIP74 holds the sharing of the bytes against KIP-74 and Apache Kafka's
// ReplicaManager.readFromLog.
func TestKIP74(t *testing.T) {
	const size = 1000
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(orders1, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	one := batch(1, size)
	bytes := len(one)
	for range 4 {
		f.fill(orders, batch(1, size))
		f.fill(bills, batch(1, size))
	}
	limit := func(p FetchPartition, maxBytes int) FetchPartition { p.MaxBytes = maxBytes; return p }
	cases := []struct {
		name     string
		maxBytes int
		parts    []FetchPartition
		want     string
	}{
		{"all", 1 << 20, []FetchPartition{at(orders, 0), at(orders1, 0), at(bills, 0)}, "4@0 0 4@0"},
		{"the request's limit, first come first served", 3 * bytes, []FetchPartition{at(orders, 0), at(bills, 0)}, "3@0 0"},
		{"what the first leaves", 3 * bytes, []FetchPartition{limit(at(orders, 0), 2*bytes), at(bills, 0)}, "2@0 1@0"},
		{"no half batches", 3*bytes - 1, []FetchPartition{limit(at(orders, 0), 2*bytes), at(bills, 0)}, "2@0 0"},
		{"one batch, though too large", 1, []FetchPartition{at(orders, 0), at(bills, 0)}, "1@0 0"},
		{"though the partition's limit is smaller", 1 << 20, []FetchPartition{limit(at(orders, 0), 1), limit(at(bills, 0), 1)}, "1@0 0"},
		{"the first that has something", 1, []FetchPartition{at(orders1, 0), at(bills, 2), at(orders, 0)}, "0 1@2 0"},
		{"nothing allowed", 0, []FetchPartition{at(orders, 1)}, "1@1"},
		{"order of the request", 3 * bytes, []FetchPartition{at(bills, 3), at(orders, 0)}, "1@3 2@0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := consumer(c.parts...)
			req.MaxBytes = c.maxBytes
			if got := sizes(t, f.fetch(req)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFetchMidBatch(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(1, 1), batch(4, 1))
	if got := sizes(t, f.fetch(consumer(at(orders, 3)))); got != "1@1" {
		t.Errorf("got %s", got)
	}
}

func TestFetchErrors(t *testing.T) {
	cases := []struct {
		name   string
		change func(*FetchRequest)
		want   protocol.ErrorCode
	}{
		{"beyond the end", func(r *FetchRequest) { r.Partitions[0].Offset = 6 }, protocol.OffsetOutOfRange},
		{"before the start", func(r *FetchRequest) { r.Partitions[0].Offset = 1 }, protocol.OffsetOutOfRange},
		{"no offset", func(r *FetchRequest) { r.Partitions[0].Offset = -1 }, protocol.OffsetOutOfRange},
		{"unknown partition", func(r *FetchRequest) { r.Partitions[0].Partition.Partition = 7 }, protocol.UnknownTopicOrPartition},
		{"wrong topic id", func(r *FetchRequest) { r.Partitions[0].TopicID = billsID }, protocol.InconsistentTopicID},
		{"old epoch", func(r *FetchRequest) { r.Partitions[0].CurrentLeaderEpoch = 2 }, protocol.FencedLeaderEpoch},
		{"new epoch", func(r *FetchRequest) { r.Partitions[0].CurrentLeaderEpoch = 4 }, protocol.UnknownLeaderEpoch},
		{"absurd last epoch", func(r *FetchRequest) { r.Partitions[0].LastFetchedEpoch = 99 }, protocol.OffsetOutOfRange},
		{"not a replica", func(r *FetchRequest) { r.Replica = 8 }, protocol.NotLeaderOrFollower},
		{"the leader itself", func(r *FetchRequest) { r.Replica, r.Partitions[0].CurrentLeaderEpoch = 1, 3 }, protocol.UnknownLeaderEpoch},
		{"not yet a replica", func(r *FetchRequest) { r.Replica, r.Partitions[0].CurrentLeaderEpoch = 8, 3 }, protocol.UnknownLeaderEpoch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.lead(orders, alone(ordersID, 3))
			f.lead(bills, alone(billsID, 3))
			f.fill(orders, batch(5, 1))
			f.manager.DeleteRecords(f.now, orders, 2, 0, func(protocol.Offset, error) {})
			// A failure is answered at once, whatever the others have.
			req := consumer(at(orders, 5), at(bills, 0))
			c.change(&req)
			got := f.fetch(req)
			if code(got[0].Err) != c.want || got[1].Err != nil && req.Replica < 0 {
				t.Fatalf("got %v and %v, want %v", got[0].Err, got[1].Err, c.want)
			}
			if got[0].HighWatermark != -1 || got[0].LastStableOffset != -1 || got[0].LogStartOffset != -1 {
				t.Errorf("offsets %d %d %d", got[0].HighWatermark, got[0].LastStableOffset, got[0].LogStartOffset)
			}
		})
	}
}

func TestFetchFromFollower(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 5, ISR: []protocol.NodeID{1, 2}, Replicas: []protocol.NodeID{1, 2}})
	req := consumer(at(orders, 0))
	req.MaxWait = 0
	if got := f.fetch(req)[0]; got.Err != nil {
		t.Errorf("got %v", got.Err)
	}
	req.Version = 10
	got := f.fetch(req)[0]
	if code(got.Err) != protocol.NotLeaderOrFollower || got.CurrentLeader == nil || *got.CurrentLeader != (wire.LeaderIDAndEpoch{ID: 2, Epoch: 5}) {
		t.Errorf("got %+v", got)
	}
}

func TestDivergingEpoch(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(5, 1))
	f.lead(orders, alone(ordersID, 2))
	f.fill(orders, batch(5, 1))
	cases := []struct {
		offset protocol.Offset
		epoch  protocol.LeaderEpoch
		want   *wire.EpochEndOffset
	}{
		{5, 0, nil},
		{7, 0, &wire.EpochEndOffset{Epoch: 0, EndOffset: 5}},
		{7, 1, &wire.EpochEndOffset{Epoch: 0, EndOffset: 5}},
		{7, 2, nil},
	}
	for _, c := range cases {
		req := consumer(at(orders, c.offset))
		req.Partitions[0].LastFetchedEpoch = c.epoch
		got := f.fetch(req)[0]
		if (got.Diverging == nil) != (c.want == nil) || c.want != nil && *got.Diverging != *c.want {
			t.Errorf("offset %d epoch %d: %+v, want %+v", c.offset, c.epoch, got.Diverging, c.want)
		}
		if (got.Records.Len() > 0) != (c.want == nil) || got.Err != nil {
			t.Errorf("offset %d epoch %d: %d bytes, %v", c.offset, c.epoch, got.Records.Len(), got.Err)
		}
		got.Records.Release()
	}
}

// TestBounds: consumers see what is committed, followers everything.
func TestBounds(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, among(ordersID, 1, 0, []protocol.NodeID{1, 2}, 1, 2))
	f.fill(orders, batch(2, 1), batch(3, 1))
	p, cancel := f.poll(consumer(at(orders, 0)))
	if p.isDone() {
		t.Fatal("a consumer saw uncommitted records")
	}
	results := f.fetch(follower(2, at(orders, 0)))
	if results[0].Records.Source != nil {
		t.Error("uncommitted records are not copied")
	}
	if got := sizes(t, results); got != "2@0" {
		t.Errorf("the follower got %s", got)
	}
	f.poll(follower(2, at(orders, 2)))
	got := p.get()
	if got[0].HighWatermark != 2 || got[0].Records.Source == nil {
		t.Errorf("got %+v", got[0])
	}
	if got := sizes(t, got); got != "1@0" {
		t.Errorf("the consumer got %s", got)
	}
	cancel()
	// A tool that says it is replica -2 reads to the end, too.
	req := consumer(at(orders, 2))
	req.Replica = Debugging
	if got := sizes(t, f.fetch(req)); got != "1@2" {
		t.Errorf("got %s", got)
	}
}

func TestReadCommitted(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	append := func(b record.Batch, origin log.Origin) {
		t.Helper()
		req := request(orders, b, AcksAll)
		req.Origin = origin
		f.must(f.append(req).Err)
	}
	marker := func(id protocol.ProducerID, kind record.ControlType) record.Batch {
		return record.BuildEndTxnMarker(record.EndTxnMarker{Type: kind}, start.UnixMilli(), id, 0)
	}
	committed := func(offset protocol.Offset) FetchRequest {
		req := consumer(at(orders, offset))
		req.ReadCommitted = true
		req.MaxWait = 0
		return req
	}
	append(batch(2, 1), log.OriginClient)             // 0, 1
	append(transactional(20, 0, 2), log.OriginClient) // 2, 3
	append(transactional(10, 0, 1), log.OriginClient) // 4
	append(batch(1, 1), log.OriginClient)             // 5
	got := f.fetch(committed(0))
	if got[0].LastStableOffset != 2 || got[0].HighWatermark != 6 || got[0].Aborted == nil || len(got[0].Aborted) != 0 {
		t.Errorf("got %+v", got[0])
	}
	if got := sizes(t, got); got != "1@0" {
		t.Errorf("got %s", got)
	}
	req := committed(2)
	req.MaxWait = time.Second
	p, _ := f.poll(req)
	append(marker(10, record.ControlAbort), log.OriginMarker) // 6
	if p.isDone() {
		t.Fatal("an open transaction was passed")
	}
	append(marker(20, record.ControlAbort), log.OriginMarker) // 7
	results := p.get()
	want := []wire.AbortedTransaction{{ProducerID: 20, FirstOffset: 2}, {ProducerID: 10, FirstOffset: 4}}
	if !slices.Equal(results[0].Aborted, want) || results[0].LastStableOffset != 8 {
		t.Errorf("got %+v", results[0])
	}
	if got := sizes(t, results); got != "5@2" {
		t.Errorf("got %s", got)
	}
	plain := f.fetch(consumer(at(orders, 2)))
	if plain[0].Aborted != nil {
		t.Errorf("read_uncommitted got %+v", plain[0].Aborted)
	}
	release(plain)
}

func TestLongPollEnds(t *testing.T) {
	cases := []struct {
		name string
		end  func(f *fixture, cancel func())
		want string
	}{
		{"append", func(f *fixture, _ func()) { f.fill(bills, batch(1, 1)) }, "0 1@0"},
		{"time is up", func(f *fixture, _ func()) { f.manager.Tick(start.Add(500 * time.Millisecond)) }, "0 0"},
		{"cancel", func(f *fixture, cancel func()) { cancel(); cancel() }, "0 0"},
		{"deleted", func(f *fixture, _ func()) { f.must(f.manager.Remove(f.now, orders, true)) }, "0!UNKNOWN_TOPIC_OR_PARTITION 0"},
		{"new epoch", func(f *fixture, _ func()) { f.lead(orders, alone(ordersID, 9)) }, "0!FENCED_LEADER_EPOCH 0"},
		{"stop", func(f *fixture, _ func()) { f.must(f.manager.Close(f.now)) }, "0 0!NOT_LEADER_OR_FOLLOWER"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.lead(orders, alone(ordersID, 0))
			f.lead(bills, alone(billsID, 0))
			req := consumer(at(orders, 0), at(bills, 0))
			req.Partitions[0].CurrentLeaderEpoch = 0
			p, cancel := f.poll(req)
			f.manager.Tick(start.Add(500*time.Millisecond - 1))
			if p.isDone() {
				t.Fatal("answered too early")
			}
			if got := f.manager.NextDeadline(); !got.Equal(start.Add(500 * time.Millisecond)) {
				t.Errorf("the deadline is %v", got)
			}
			c.end(f, cancel)
			if got := sizes(t, p.get()); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			f.idle()
		})
	}
}

// idle checks that nobody is registered anywhere.
func (f *fixture) idle() {
	f.t.Helper()
	if at := f.manager.timers.Next(); !at.IsZero() {
		f.t.Errorf("a deadline is left: %v", at)
	}
	if n := f.manager.polling.Load(); n != 0 {
		f.t.Errorf("%d polls are counted", n)
	}
	for _, r := range f.manager.sorted() {
		if len(r.polls)+len(r.acks)+len(r.deletions) > 0 {
			f.t.Errorf("%s: %d polls, %d acks, %d deletions are left", r.tp, len(r.polls), len(r.acks), len(r.deletions))
		}
	}
}

func TestMinBytes(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	size := len(batch(1, 100))
	req := consumer(at(orders, 0), at(bills, 0))
	req.MinBytes = 3 * size
	p, _ := f.poll(req)
	f.fill(orders, batch(1, 100))
	f.fill(bills, batch(1, 100))
	if p.isDone() {
		t.Fatal("answered with too little")
	}
	f.fill(orders, batch(1, 100))
	if got := sizes(t, p.get()); got != "2@0 1@0" {
		t.Errorf("got %s", got)
	}
	f.idle()
	// At the deadline what there is, is given.
	req.MinBytes = 100 * size
	p, _ = f.poll(req)
	f.manager.Tick(start.Add(time.Second))
	if got := sizes(t, p.get()); got != "2@0 1@0" {
		t.Errorf("got %s", got)
	}
	f.idle()
}

// TestWake: node learns of each deadline that is earlier than what it knew.
func TestWake(t *testing.T) {
	f := newFixture(t)
	wakes := 0
	f.manager.Wake = func() { wakes++ }
	f.lead(orders, among(ordersID, 0, 0, []protocol.NodeID{1, 2}, 1, 2))
	f.poll(consumer(at(orders, 0)))
	f.poll(consumer(at(orders, 0)))
	if wakes != 1 {
		t.Errorf("%d wakes, want 1", wakes)
	}
	req := request(orders, batch(1, 1), AcksAll)
	req.Timeout = time.Millisecond
	p := f.start(req)
	if at := f.manager.NextDeadline(); wakes != 2 || !at.Equal(start.Add(time.Millisecond)) {
		t.Errorf("%d wakes, deadline %v", wakes, at)
	}
	f.manager.Tick(f.manager.NextDeadline())
	if got := p.get(); code(got.Err) != protocol.RequestTimedOut {
		t.Errorf("got %+v", got)
	}
	f.manager.DeleteRecords(f.now, orders, 0, time.Microsecond, func(protocol.Offset, error) {})
	if wakes != 3 {
		t.Errorf("%d wakes, want 3", wakes)
	}
}

func TestUnreadableDisk(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.lead(bills, alone(billsID, 0))
	f.fill(orders, batch(1, 1))
	p, _ := f.poll(consumer(at(bills, 0)))
	f.mem.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpRead {
			return syscall.EIO
		}
		return nil
	})
	if _, err := f.listOffset(query(orders, start.UnixMilli())); code(err) != protocol.KafkaStorageError {
		t.Errorf("got %v", err)
	}
	if got := p.get()[0]; code(got.Err) != protocol.KafkaStorageError {
		t.Errorf("got %+v", got)
	}
	if d := f.store.Directories()[0]; d.Offline == nil {
		t.Error("the directory is not offline")
	}
}

func TestFetchWithoutPartitions(t *testing.T) {
	f := newFixture(t)
	if got := f.fetch(consumer()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestMaxFetchWaiters(t *testing.T) {
	f := newFixture(t, func(_ *fixture, o *Options) { o.MaxFetchWaiters = 1 })
	f.lead(orders, alone(ordersID, 0))
	p, _ := f.poll(consumer(at(orders, 0)))
	if got := sizes(t, f.fetch(consumer(at(orders, 0)))); got != "0" || p.isDone() {
		t.Errorf("got %s", got)
	}
	f.fill(orders, batch(1, 1))
	release(p.get())
	f.idle()
}

func TestFollowerJoinsISR(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, among(ordersID, 1, 0, []protocol.NodeID{1}, 1, 2))
	f.fill(orders, batch(2, 1))
	f.poll(follower(2, at(orders, 2)))
	if len(f.wishes) != 1 || len(f.wishes[0].alter.ISR) != 2 {
		t.Fatalf("wishes %+v", f.wishes)
	}
	p := f.start(request(orders, batch(1, 1), AcksAll))
	if p.isDone() {
		t.Fatal("the pending member was not waited for")
	}
	f.wishes[0].answer(f.now, partition.AlterResult{LeaderEpoch: 1, PartitionEpoch: 1, ISR: []protocol.NodeID{1, 2}})
	f.poll(follower(2, at(orders, 3)))
	f.must(p.get().Err)
	// It stops fetching: after the lag time it is to leave, and then writes go on.
	p = f.start(AppendRequest{Partition: orders, Records: batch(1, 1), RequiredAcks: AcksAll, Timeout: time.Hour})
	f.now = f.now.Add(31 * time.Second)
	f.manager.Tick(f.now)
	if len(f.wishes) != 2 || p.isDone() {
		t.Fatalf("wishes %+v", f.wishes)
	}
	f.wishes[1].answer(f.now, partition.AlterResult{LeaderEpoch: 1, PartitionEpoch: 2, ISR: []protocol.NodeID{1}})
	f.must(p.get().Err)
}
