package replica

import (
	"errors"
	"math"
	"syscall"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/partition"
	"ottla/storage/vfs"
)

func TestAppendAnswers(t *testing.T) {
	two := append(append([]byte{}, batch(1, 1)...), batch(1, 1)...)
	control := func() []byte {
		return record.BuildEndTxnMarker(record.EndTxnMarker{Type: record.ControlCommit}, start.UnixMilli(), 7, 0)
	}
	zstd := func() []byte {
		b, err := record.Recompress(batch(2, 100), compress.Zstd, 0, compress.NewPool(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	corrupt := func() []byte { b := batch(1, 1); b[len(b)-1]++; return b }
	late := func() []byte {
		b := record.NewBuilder(record.PlainOptions())
		b.Append(start.Add(2*time.Hour).UnixMilli(), []byte("k"), nil, nil)
		return b.Build(nil)
	}
	wrongEpoch := protocol.LeaderEpoch(4)
	cases := []struct {
		name     string
		change   func(*AppendRequest)
		want     protocol.ErrorCode
		logStart protocol.Offset
	}{
		{"none", func(*AppendRequest) {}, 0, 0},
		{"acks 0", func(r *AppendRequest) { r.RequiredAcks = AcksNone }, 0, 0},
		{"acks all", func(r *AppendRequest) { r.RequiredAcks = AcksAll }, 0, 0},
		{"topic id", func(r *AppendRequest) { r.TopicID = ordersID }, 0, 0},
		{"wrong topic id", func(r *AppendRequest) { r.TopicID = billsID }, protocol.InconsistentTopicID, -1},
		{"unknown partition", func(r *AppendRequest) { r.Partition.Partition = 9 }, protocol.UnknownTopicOrPartition, -1},
		{"known elsewhere", func(r *AppendRequest) { r.Partition = bills }, protocol.NotLeaderOrFollower, -1},
		{"another epoch", func(r *AppendRequest) { r.LeaderEpoch = &wrongEpoch }, protocol.NotLeaderOrFollower, -1},
		{"no bytes", func(r *AppendRequest) { r.Records = nil }, protocol.InvalidRecord, -1},
		{"two batches", func(r *AppendRequest) { r.Records = two }, protocol.InvalidRecord, -1},
		{"control", func(r *AppendRequest) { r.Records = control() }, protocol.InvalidRecord, 0},
		{"checksum", func(r *AppendRequest) { r.Records = corrupt() }, protocol.CorruptMessage, -1},
		{"zstd", func(r *AppendRequest) { r.Records = zstd() }, 0, 0},
		{"zstd before v7", func(r *AppendRequest) { r.Records, r.AllowZstd = zstd(), false }, protocol.UnsupportedCompressionType, 0},
		{"too large", func(r *AppendRequest) { r.Records = batch(1, 3000) }, protocol.MessageTooLarge, -1},
		{"timestamp", func(r *AppendRequest) { r.Records = late() }, protocol.InvalidTimestamp, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, func(f *fixture, o *Options) {
				f.options.MaxMessageBytes = 2000
				o.Known = func(tp protocol.TopicPartition) bool { return tp == bills }
			})
			f.lead(orders, alone(ordersID, 0))
			released := 0
			req := request(orders, batch(3, 10), AcksLeader)
			req.Release = func() { released++ }
			c.change(&req)
			got := f.append(req)
			if code(got.Err) != c.want {
				t.Fatalf("error %v, want %v", got.Err, c.want)
			}
			if released != 1 {
				t.Errorf("released %d times", released)
			}
			if got.LogStartOffset != c.logStart || got.LogAppendTimeMs != -1 {
				t.Errorf("log start %d, want %d; append time %d", got.LogStartOffset, c.logStart, got.LogAppendTimeMs)
			}
			if want := protocol.Offset(0); c.want != 0 {
				want = -1
				if got.BaseOffset != want {
					t.Errorf("base offset %d, want %d", got.BaseOffset, want)
				}
			} else if got.BaseOffset != want {
				t.Errorf("base offset %d, want %d", got.BaseOffset, want)
			}
		})
	}
}

func TestAppendToFollowerNamesTheLeader(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 5, ISR: []protocol.NodeID{1, 2}, Replicas: []protocol.NodeID{1, 2}})
	got := f.append(request(orders, batch(1, 1), AcksLeader))
	if code(got.Err) != protocol.NotLeaderOrFollower || got.CurrentLeader == nil || got.CurrentLeader.ID != 2 || got.CurrentLeader.Epoch != 5 {
		t.Errorf("got %+v", got)
	}
}

// TestTimestampsWithoutLimit takes any time where the configuration has Apache Kafka's largest value, which no Duration holds.
func TestTimestampsWithoutLimit(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) {
		const longest = math.MaxInt64 / int64(time.Millisecond) * int64(time.Millisecond) // what such a value is made
		f.options.TimestampBeforeMax, f.options.TimestampAfterMax = time.Duration(longest), time.Duration(longest)
	})
	f.lead(orders, alone(ordersID, 0))
	const year3000 = 32503680000000
	for _, ms := range []int64{year3000, -year3000, 0, -2, math.MaxInt64} {
		b := record.NewBuilder(record.PlainOptions())
		b.Append(ms, []byte("key"), []byte("v"), nil)
		if got := f.append(request(orders, b.Build(nil), AcksLeader)); got.Err != nil {
			t.Errorf("a record of %d: %v", ms, got.Err)
		}
	}
}

func TestSegmentBytes(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) { f.options.SegmentBytes = 1000 })
	f.lead(orders, alone(ordersID, 0))
	if got := f.append(request(orders, batch(1, 2000), AcksLeader)); code(got.Err) != protocol.RecordListTooLarge {
		t.Errorf("got %v", got.Err)
	}
}

func TestNullKeyInCompactedTopic(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) { f.options.Compact, f.options.Delete = true, false })
	f.lead(orders, alone(ordersID, 0))
	b := record.NewBuilder(record.PlainOptions())
	b.Append(start.UnixMilli(), []byte("key"), []byte("v"), nil)
	b.Append(start.UnixMilli(), nil, []byte("v"), nil)
	got := f.append(request(orders, b.Build(nil), AcksLeader))
	if code(got.Err) != protocol.InvalidRecord || len(got.RecordErrors) != 1 || got.RecordErrors[0].BatchIndex != 1 || got.LogStartOffset != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestLogAppendTimeAndCompression(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) {
		f.options.LogAppendTime = true
		f.options.ProducerCompression, f.options.Compression = false, compress.Gzip
	})
	f.lead(orders, alone(ordersID, 3))
	f.now = start.Add(time.Minute)
	got := f.append(request(orders, batch(4, 500), AcksLeader))
	f.must(got.Err)
	if got.LogAppendTimeMs != f.now.UnixMilli() {
		t.Errorf("append time %d", got.LogAppendTimeMs)
	}
	stored := batchesOf(t, &f.fetch(consumer(at(orders, 0)))[0])
	if len(stored) != 1 {
		t.Fatalf("%d batches", len(stored))
	}
	b := stored[0]
	if b.Codec() != compress.Gzip || !b.IsLogAppendTime() || b.MaxTimestamp() != f.now.UnixMilli() ||
		b.BaseTimestamp() != start.UnixMilli() || b.PartitionLeaderEpoch() != 3 {
		t.Errorf("stored: codec %v, append time %v, timestamps %d..%d, epoch %d", b.Codec(), b.IsLogAppendTime(), b.BaseTimestamp(), b.MaxTimestamp(), b.PartitionLeaderEpoch())
	}
	f.must(b.CheckCRC())
}

func TestAcksAllWaitsForFollowers(t *testing.T) {
	f := newFixture(t)
	isr := []protocol.NodeID{1, 2}
	f.lead(orders, among(ordersID, 1, 0, isr, 1, 2))
	first := f.start(request(orders, batch(2, 10), AcksAll))
	second := f.start(request(orders, batch(3, 10), AcksAll))
	if first.isDone() || second.isDone() {
		t.Fatal("answered before the follower has it")
	}
	if got := f.append(request(orders, batch(1, 1), AcksLeader)); got.BaseOffset != 5 {
		t.Errorf("acks=1 got %+v", got)
	}
	f.poll(follower(2, at(orders, 2)))
	if got := first.get(); got.Err != nil || got.BaseOffset != 0 || second.isDone() {
		t.Errorf("got %+v", got)
	}
	f.poll(follower(2, at(orders, 6)))
	if got := second.get(); got.Err != nil || got.BaseOffset != 2 {
		t.Errorf("got %+v", got)
	}
	if d := f.manager.timers.Next(); d.IsZero() {
		t.Error("the follower's poll has no deadline")
	}
}

func TestAcksAllEnds(t *testing.T) {
	isr := []protocol.NodeID{1, 2}
	cases := []struct {
		name string
		end  func(f *fixture)
		want protocol.ErrorCode
	}{
		{"time is up", func(f *fixture) { f.manager.Tick(start.Add(time.Second)) }, protocol.RequestTimedOut},
		{"leadership lost", func(f *fixture) {
			f.lead(orders, partition.State{TopicID: ordersID, Leader: 2, LeaderEpoch: 2, PartitionEpoch: 1, ISR: isr, Replicas: isr})
		}, protocol.NotLeaderOrFollower},
		{"led again", func(f *fixture) { f.lead(orders, among(ordersID, 2, 1, isr, 1, 2)) }, protocol.NotLeaderOrFollower},
		{"deleted", func(f *fixture) { f.must(f.manager.Remove(f.now, orders, true)) }, protocol.UnknownTopicOrPartition},
		{"ISR shrank to the leader", func(f *fixture) {
			f.now = f.now.Add(31 * time.Second) // else the leader expects the other back soon
			f.lead(orders, among(ordersID, 1, 1, isr[:1], 1, 2))
		}, protocol.None},
		{"directory failed", func(f *fixture) {
			id, _ := f.store.DirectoryOf(orders)
			f.store.FailDirectory(id, errors.New("broken"))
		}, protocol.KafkaStorageError},
		{"stop", func(f *fixture) { f.must(f.manager.Close(f.now)) }, protocol.NotLeaderOrFollower},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.lead(orders, among(ordersID, 1, 0, isr, 1, 2))
			p := f.start(request(orders, batch(2, 10), AcksAll))
			if p.isDone() {
				t.Fatal("answered too early")
			}
			f.manager.Tick(start.Add(time.Second - 1))
			c.end(f)
			got := p.get()
			if code(got.Err) != c.want || got.BaseOffset != 0 {
				t.Errorf("got %v at %d, want %v at 0", got.Err, got.BaseOffset, c.want)
			}
			if next := f.manager.timers.Next(); !next.IsZero() {
				t.Errorf("a deadline is left: %v", next)
			}
			if c.want == protocol.RequestTimedOut && f.replica(orders).log().View().LogEndOffset != 2 {
				t.Error("the data is gone")
			}
		})
	}
}

func TestMinInSyncReplicas(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) { f.options.MinInSyncReplicas = 2 })
	f.lead(orders, among(ordersID, 1, 0, []protocol.NodeID{1}, 1, 2))
	if got := f.append(request(orders, batch(1, 1), AcksAll)); code(got.Err) != protocol.NotEnoughReplicas || got.LogStartOffset != 0 {
		t.Errorf("got %+v", got)
	}
	if got := f.append(request(orders, batch(1, 1), AcksLeader)); got.Err != nil {
		t.Errorf("got %+v", got)
	}
	// With a replication factor of one the minimum is one.
	f.lead(bills, alone(billsID, 0))
	if got := f.append(request(bills, batch(1, 1), AcksAll)); got.Err != nil {
		t.Errorf("got %+v", got)
	}
	f.lead(orders1, among(ordersID, 1, 0, []protocol.NodeID{1, 2}, 1, 2))
	f.poll(follower(2, at(orders1, 0)))
	p := f.start(request(orders1, batch(1, 1), AcksAll))
	f.poll(follower(2, at(orders1, 1)))
	f.must(p.get().Err)
	// A repeat of a committed batch after the ISR shrank.
	f.fill(orders1, idempotent(5, 0, 1))
	f.poll(follower(2, at(orders1, 2)))
	f.lead(orders1, among(ordersID, 1, 1, []protocol.NodeID{1}, 1, 2))
	if got := f.append(request(orders1, idempotent(5, 0, 1), AcksAll)); code(got.Err) != protocol.NotEnoughReplicas {
		t.Errorf("got %+v", got)
	}
}

func TestNoSpaceAndBrokenDisk(t *testing.T) {
	cases := []struct {
		name    string
		failure error
		resumes bool
	}{
		{"no space", syscall.ENOSPC, true}, {"quota", syscall.EDQUOT, true}, {"broken", syscall.EIO, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.lead(orders, alone(ordersID, 0))
			f.lead(bills, alone(billsID, 0))
			f.fill(orders, batch(1, 1))
			p, _ := f.poll(consumer(at(bills, 0)))
			f.mem.OnOperation(func(op vfs.Operation) error {
				if op.Kind == vfs.OpWrite {
					return c.failure
				}
				return nil
			})
			got := f.append(request(orders, batch(1, 1), AcksLeader))
			if code(got.Err) != protocol.KafkaStorageError || got.BaseOffset != -1 {
				t.Fatalf("got %+v", got)
			}
			f.mem.OnOperation(nil)
			got = f.append(request(orders, batch(1, 1), AcksLeader))
			if c.resumes && (got.Err != nil || got.BaseOffset != 1) {
				t.Errorf("it does not resume: %+v", got)
			}
			if p.isDone() == c.resumes {
				t.Errorf("the fetch of the neighbour was answered: %v", p.isDone())
			}
			if !c.resumes {
				if code(got.Err) != protocol.KafkaStorageError {
					t.Errorf("got %+v", got)
				}
				if r := p.get()[0]; code(r.Err) != protocol.KafkaStorageError {
					t.Errorf("the neighbour's fetch got %v", r.Err)
				}
			}
		})
	}
}

func TestFlushBeforeAck(t *testing.T) {
	f := newFixture(t, func(f *fixture, _ *Options) { f.options.FlushMessages = 1 })
	f.lead(orders, alone(ordersID, 0))
	syncs := 0
	f.mem.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpSync {
			syncs++
		}
		return nil
	})
	f.must(f.append(request(orders, batch(2, 10), AcksAll)).Err)
	if syncs == 0 {
		t.Error("acknowledged without fsync")
	}
	// A failed fsync takes the directory offline, even for want of space.
	f.mem.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpSync {
			return syscall.ENOSPC
		}
		return nil
	})
	for range 2 {
		if got := f.append(request(orders, batch(2, 10), AcksAll)); code(got.Err) != protocol.KafkaStorageError {
			t.Errorf("got %+v", got)
		}
	}
	if d := f.store.Directories()[0]; d.Offline == nil {
		t.Error("the directory is not offline")
	}
}

func TestIdempotentDuplicates(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 0))
	f.fill(orders, batch(2, 1))
	for range 2 {
		got := f.append(request(orders, idempotent(9, 0, 3), AcksAll))
		if got.Err != nil || got.BaseOffset != 2 || got.LastOffset != 4 {
			t.Errorf("got %+v", got)
		}
	}
	if got := f.append(request(orders, idempotent(9, 7, 3), AcksAll)); code(got.Err) != protocol.OutOfOrderSequenceNumber || got.LogStartOffset != 0 {
		t.Errorf("got %+v", got)
	}
	if end := f.replica(orders).log().View().LogEndOffset; end != 5 {
		t.Errorf("the log ends at %d", end)
	}
}

func TestCoordinatorOrigin(t *testing.T) {
	f := newFixture(t)
	f.lead(orders, alone(ordersID, 2))
	epoch := protocol.LeaderEpoch(2)
	req := request(orders, batch(2, 1), AcksAll)
	req.Origin, req.LeaderEpoch = log.OriginCoordinator, &epoch
	if got := f.append(req); got.Err != nil || got.LastOffset != 1 {
		t.Errorf("got %+v", got)
	}
	f.lead(orders, alone(ordersID, 3))
	req.Records = batch(2, 1)
	if got := f.append(req); code(got.Err) != protocol.NotLeaderOrFollower {
		t.Errorf("got %+v", got)
	}
}
