package log

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// content is a log as the naive model sees it.
type content struct {
	start, end protocol.Offset
	batches    []record.Batch // some may lie below start
}

func (c content) clone() content {
	c.batches = slices.Clone(c.batches)
	return c
}

// upTo is the content cut at a batch boundary.
func (c content) upTo(end protocol.Offset) content {
	c = c.clone()
	c.batches = slices.DeleteFunc(c.batches, func(b record.Batch) bool { return b.NextOffset() > end })
	c.end = end
	return c
}

// model drives a log and a naive copy of it with the same operations.
type model struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	disk *vfs.Mem
	log  *Log
	opts Options
	now  time.Time

	is       content
	epoch    protocol.LeaderEpoch
	high     protocol.Offset
	sequence map[protocol.ProducerID]int32
	inTxn    map[protocol.ProducerID]bool
	trace    []string

	// What the node's checkpoints say, which are durable.
	recoveryPoint, logStart protocol.Offset

	// During an operation: what the log was, and what it will be at most.
	before, after content
	budget        int // clones to look at
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 7)), disk: newDisk(seed), now: testTime,
		sequence: map[protocol.ProducerID]int32{}, inTxn: map[protocol.ProducerID]bool{}, budget: 6,
	}
	m.opts = DefaultOptions()
	m.opts.VerifyTransactions = false
	m.opts.SegmentBytes = int64(1000 + m.rand.IntN(3000))
	m.opts.IndexIntervalBytes = m.rand.IntN(400)
	m.opts.SegmentIndexBytes = 1 << 10
	if m.rand.IntN(4) == 0 {
		m.opts.SegmentIndexBytes = 40
	}
	m.opts.RetentionBytes = int64(m.rand.IntN(20000)) - 1
	m.opts.RetentionAge = time.Duration(m.rand.IntN(100)) * time.Hour
	m.opts.ProducerIDExpiration = 1000000 * time.Hour
	m.opts.LogAppendTime = m.rand.IntN(5) == 0
	check(t, m.disk.MkdirAll("log"))
	check(t, m.disk.SyncDir("."))
	l, err := Create(m.env(m.disk), "log/t-0", testTP, protocol.TopicID{1}, m.opts)
	check(t, err)
	m.log = l
	return m
}

func (m *model) env(disk *vfs.Mem) Env {
	env := testEnv(disk)
	env.Random = m.rand.Uint64
	env.LowerRecoveryPoint = func(_ protocol.TopicPartition, offset protocol.Offset) error {
		m.recoveryPoint, m.logStart = min(m.recoveryPoint, offset), min(m.logStart, offset)
		return nil
	}
	return env
}

func (m *model) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s\n%s", m.seed, fmt.Sprintf(format, args...), strings.Join(m.trace[max(0, len(m.trace)-160):], "\n"))
}

func (m *model) check(err error) {
	m.t.Helper()
	if err != nil {
		m.fatal("%v", err)
	}
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

// someTimestamp is now and then hostile.
func (m *model) someTimestamp() int64 {
	switch m.rand.IntN(12) {
	case 0:
		return 0
	case 1:
		return -1
	case 2:
		return 1<<63 - 1
	case 3:
		return 32503680000000 // the year 3000
	}
	return m.now.UnixMilli() - int64(m.rand.IntN(100000))
}

func (m *model) someBatch() (record.Batch, Origin) {
	o := record.PlainOptions()
	id := protocol.ProducerID(m.rand.IntN(4))
	origin := OriginClient
	kind := m.rand.IntN(10)
	if kind < 6 {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = id, 0, m.sequence[id]
		if m.inTxn[id] || kind < 2 {
			o.Transactional, m.inTxn[id] = true, true
		}
	}
	if kind == 6 && m.inTxn[id] {
		m.inTxn[id] = false
		return markerOf(id, 0, m.rand.IntN(2) == 0, 0), OriginMarker
	}
	builder := record.NewBuilder(o)
	n := 1 + m.rand.IntN(4)
	for range n {
		builder.Append(m.someTimestamp(), nil, make([]byte, m.rand.IntN(200)), nil)
	}
	if o.ProducerID >= 0 {
		m.sequence[id] += int32(n)
	}
	return builder.Build(nil), origin
}

func (m *model) append() {
	var entries []*Entry
	m.after = m.is.clone()
	for range 1 + m.rand.IntN(4) {
		b, origin := m.someBatch()
		entries = append(entries, &Entry{Batch: b, Origin: origin, Info: record.Info{Count: b.Count(), MaxTimestamp: b.MaxTimestamp()}})
		// What it should look like is known before it is written.
		expected := record.Batch(slices.Clone(b))
		expected.SetBaseOffset(m.after.end)
		expected.SetPartitionLeaderEpoch(m.epoch)
		if m.opts.LogAppendTime {
			expected.SetLogAppendTime(m.now.UnixMilli())
		}
		m.after.batches = append(m.after.batches, expected)
		m.after.end = expected.NextOffset()
	}
	m.note("append %d batches, end %d", len(entries), m.after.end)
	m.check(m.log.Append(m.now, m.epoch, entries))
	for i, e := range entries {
		m.check(e.Err)
		want := m.after.batches[len(m.is.batches)+i]
		if e.FirstOffset != want.BaseOffset() || e.Duplicate {
			m.fatal("entry %+v, should be at %d", e, want.BaseOffset())
		}
		if e.Origin == OriginClient && want.HasProducerID() && m.rand.IntN(4) == 0 {
			again := &Entry{Batch: slices.Clone(want), Origin: OriginClient}
			m.check(m.log.Append(m.now, m.epoch, []*Entry{again}))
			if again.Err == nil && (!again.Duplicate || again.FirstOffset != want.BaseOffset()) {
				m.fatal("a repeated batch was taken: %+v", again)
			}
		}
	}
}

func (m *model) truncate() {
	offset := m.is.start + protocol.Offset(m.rand.Int64N(int64(m.is.end-m.is.start)+1))
	for _, b := range m.is.batches {
		if b.BaseOffset() <= offset && offset < b.NextOffset() {
			offset = b.BaseOffset()
		}
	}
	m.after = m.is.upTo(offset)
	m.after.start = min(m.is.start, offset)
	m.logStart = min(m.logStart, offset)
	m.note("truncate to %d", offset)
	m.check(m.log.TruncateTo(offset))
	m.high = min(m.high, offset)
	m.forgetProducers()
	m.epoch++
}

// forgetProducers learns the sequences from the log after it was cut.
func (m *model) forgetProducers() {
	clear(m.sequence)
	clear(m.inTxn)
	for _, p := range m.log.ActiveProducers() {
		m.sequence[p.ProducerID] = p.LastSequence + 1
		m.inTxn[p.ProducerID] = p.CurrentTxnFirstOffset != protocol.NoOffset
	}
}

func (m *model) startOver() {
	offset := m.is.end + protocol.Offset(m.rand.IntN(10))
	m.after = content{start: offset, end: offset}
	m.note("drop all and start at %d", offset)
	m.check(m.log.TruncateFullyAndStartAt(offset))
	m.high = offset
	m.logStart = offset
	m.forgetProducers()
}

func (m *model) maintain() {
	m.now = m.now.Add(time.Duration(m.rand.IntN(5)) * time.Hour)
	m.note("maintain")
	done := m.log.Maintain(m.now)
	m.check(done.Err)
	m.after = m.is.clone()
	m.after.start = done.LogStartOffset
	if done.LogStartOffset < m.is.start || done.LogStartOffset > max(m.high, m.is.start) {
		m.fatal("maintenance moved the start from %d to %d, high watermark %d", m.is.start, done.LogStartOffset, m.high)
	}
}

func (m *model) advance() {
	offset := m.is.start + protocol.Offset(m.rand.Int64N(int64(m.high-m.is.start)+1))
	m.after = m.is.clone()
	m.after.start = offset
	m.note("advance start to %d", offset)
	m.check(m.log.AdvanceLogStart(m.now, offset))
	m.logStart = offset
}

func (m *model) step() {
	m.before, m.after = m.is, m.is
	switch n := m.rand.IntN(100); {
	case n < 55:
		m.append()
	case n < 65:
		m.note("flush")
		m.check(m.log.Flush(m.now))
		if end := m.log.View().DurableEnd; end != m.is.end {
			m.fatal("durable up to %d after a flush", end)
		}
	case n < 75:
		m.high += protocol.Offset(m.rand.Int64N(int64(m.is.end-m.high) + 1))
		m.log.SetHighWatermark(m.high)
	case n < 80:
		m.maintain()
	case n < 83:
		m.advance()
	case n < 87:
		m.truncate()
	case n < 88:
		m.startOver()
	case n < 91:
		m.epoch++
		m.note("epoch %d", m.epoch)
		m.check(m.log.AssignEpoch(m.epoch, m.is.end))
	case n < 94:
		m.recoveryPoint = m.log.View().DurableEnd
		m.logStart = m.log.View().LogStartOffset
	case n < 96:
		m.reopenClean()
	case n < 98:
		m.reopen(m.disk.Kill(), SameBoot)
	default:
		m.reopen(m.disk.Crash(), OtherBoot)
	}
	m.is = m.after
	m.compare()
}

func (m *model) reopenClean() {
	m.note("close, open")
	point, err := m.log.Close(m.now, true)
	m.check(err)
	if point != m.is.end {
		m.fatal("a clean close at %d returned %d", m.is.end, point)
	}
	m.recoveryPoint, m.logStart = point, m.log.View().LogStartOffset
	m.open(m.disk.Crash(), Clean)
	if got := m.log.View().LogEndOffset; got != m.is.end {
		m.fatal("ends at %d after a clean stop", got)
	}
}

func (m *model) open(disk *vfs.Mem, trust Trust) Recovery {
	l, report, err := Open(m.env(disk), "log/t-0", testTP, m.opts,
		OpenState{RecoveryPoint: m.recoveryPoint, LogStartOffset: m.logStart, Trust: trust})
	if err != nil {
		m.fatal("open: %v", err)
	}
	m.disk, m.log = disk, l
	m.high = max(m.high, l.View().LogStartOffset)
	m.high = min(m.high, l.View().LogEndOffset)
	m.log.SetHighWatermark(m.high)
	return report
}

// reopen goes on with what a kill or a power cut left.
func (m *model) reopen(disk *vfs.Mem, trust Trust) {
	durable := m.log.View().DurableEnd
	m.note("crash, trust %d, recovery point %d, durable %d, log start %d", trust, m.recoveryPoint, durable, m.logStart)
	report := m.open(disk, trust)
	v := m.log.View()
	m.note("  %+v", report)
	if trust == SameBoot && (v.LogEndOffset != m.is.end || report.BytesCut > 0) {
		m.fatal("the death of the process lost records: ends at %d, not %d, %+v", v.LogEndOffset, m.is.end, report)
	}
	m.after = m.is.upTo(v.LogEndOffset)
	if v.LogEndOffset > m.is.end {
		m.after = m.is.clone()
	}
	if v.LogEndOffset < durable && m.logStart < durable {
		m.fatal("lost durable records: ends at %d, durable up to %d", v.LogEndOffset, durable)
	}
	if v.LogStartOffset > max(m.is.start, m.logStart) {
		m.fatal("begins at %d, not %d", v.LogStartOffset, m.is.start)
	}
	// A start that was not in the checkpoint may go back, as deleted segments may come back.
	m.after.start = v.LogStartOffset
	m.after.end = v.LogEndOffset
	m.forgetProducers()
	m.epoch++
}

// compare reads the whole log.
func (m *model) compare() {
	v := m.log.View()
	if v.LogEndOffset != m.is.end || v.LogStartOffset != m.is.start {
		m.fatal("log is [%d, %d), should be [%d, %d)", v.LogStartOffset, v.LogEndOffset, m.is.start, m.is.end)
	}
	m.sameBatches(m.log, m.is)
	m.sameAborted()
}

// sameAborted makes sure that each aborted transaction ends with a marker.
func (m *model) sameAborted() {
	for _, s := range m.log.segments {
		if s.Base() < m.is.start {
			continue // what was deleted may have come back
		}
		_, err := s.Aborted(0, func(a segment.AbortedTxn) bool {
			for _, b := range m.is.batches {
				if b.BaseOffset() == a.LastOffset && b.IsControl() && b.ProducerID() == a.ProducerID {
					return true
				}
			}
			m.fatal("segment %d says that a transaction was aborted: %+v", s.Base(), a)
			return false
		})
		m.check(err)
	}
}

func (m *model) sameBatches(l *Log, want content) {
	m.t.Helper()
	got := allBatches(m.t, l, m.rand.IntN(2000))
	expected := slices.DeleteFunc(slices.Clone(want.batches), func(b record.Batch) bool { return b.NextOffset() <= want.start })
	if !slices.EqualFunc(got, expected, func(a, b record.Batch) bool { return string(a) == string(b) }) {
		m.fatal("the log holds %d batches, should be %d in [%d, %d)", len(got), len(expected), want.start, want.end)
	}
}

// compareRebuilt opens a copy of the .log files alone: indexes, epochs and producers must come out the same.
func (m *model) compareRebuilt() {
	live := readDir(m.t, m.disk, "log/t-0")
	copied := newDisk(m.seed)
	m.check(copied.MkdirAll("log/t-0"))
	for name, data := range live {
		if strings.HasSuffix(name, segment.LogSuffix) {
			m.check(vfs.WriteFile(copied, path.Join("log/t-0", name), []byte(data), true))
		}
	}
	v := m.log.View()
	rebuilt, _, err := Open(testEnv(copied), "log/t-0", testTP, m.opts, OpenState{LogStartOffset: v.LogStartOffset, Trust: OtherBoot})
	m.check(err)
	// Snapshots, as Apache Kafka's, do not tell which decided transactions wait for the high watermark.
	rebuilt.SetHighWatermark(m.is.end)
	m.log.SetHighWatermark(m.is.end)
	v = m.log.View()
	if got, want := rebuilt.View().FirstUnstableOffset, v.FirstUnstableOffset; got != want && m.is.start == 0 {
		m.fatal("first unstable offset is %d, rebuilt %d, high watermark %d\n%+v\n%+v", want, got, m.high, m.log.ActiveProducers(), rebuilt.ActiveProducers())
	}
	if got, want := rebuilt.ActiveProducers(), m.log.ActiveProducers(); m.is.start == 0 && !slices.Equal(got, want) {
		m.fatal("producers are %+v, rebuilt %+v", want, got)
	}
	if got, want := checkpoint.EpochsUpTo(rebuilt.Epochs(), m.is.end), checkpoint.EpochsUpTo(m.log.Epochs(), m.is.end); !slices.Equal(got, want) {
		m.fatal("epochs are %v, rebuilt %v", want, got)
	}
	if _, err := m.log.Close(m.now, true); err != nil {
		m.fatal("%v", err)
	}
	_, err = rebuilt.Close(m.now, true)
	m.check(err)
	a, b := readDir(m.t, m.disk, "log/t-0"), readDir(m.t, copied, "log/t-0")
	for name := range maps.Keys(b) {
		_, suffix, _ := segment.ParseName(name)
		isIndex := suffix == segment.IndexSuffix || suffix == segment.TimeIndexSuffix || suffix == segment.TxnIndexSuffix && m.is.start == 0
		if isIndex && a[name] != b[name] {
			m.fatal("%s is\n%x, rebuilt\n%x", name, a[name], b[name])
		}
	}
	for name := range a {
		if b[name] == "" && a[name] != "" && strings.HasSuffix(name, segment.TxnIndexSuffix) && m.is.start == 0 {
			m.fatal("%s is not in the rebuilt log: %x, files %v", name, a[name], slices.Sorted(maps.Keys(a)))
		}
	}
}

// lookAtCrash recovers a clone taken within an operation: it must hold a prefix of what was or of what comes.
func (m *model) lookAtCrash(disk *vfs.Mem, trust Trust, recoveryPoint, durable protocol.Offset) {
	state := OpenState{RecoveryPoint: recoveryPoint, LogStartOffset: m.logStart, Trust: trust}
	env := testEnv(disk)
	l, _, err := Open(env, "log/t-0", testTP, m.opts, state)
	if err != nil {
		m.fatal("after a crash within the operation, trust %d, recovery point %d, log start %d: %v", trust, recoveryPoint, m.logStart, err)
	}
	v := l.View()
	got := allBatches(m.t, l, 1<<20)
	for _, c := range []content{m.before, m.after} {
		want := slices.DeleteFunc(slices.Clone(c.batches), func(b record.Batch) bool {
			return b.NextOffset() <= v.LogStartOffset || b.NextOffset() > v.LogEndOffset
		})
		if slices.EqualFunc(got, want, func(a, b record.Batch) bool { return string(a) == string(b) }) {
			return
		}
	}
	m.fatal("after a crash within the operation, trust %d: [%d, %d) with %d batches is neither what was [%d, %d) nor what comes [%d, %d)",
		trust, v.LogStartOffset, v.LogEndOffset, len(got), m.before.start, m.before.end, m.after.start, m.after.end)
}

// watch takes clones of the disk within operations, to be looked at when the operation is over.
func (m *model) watch(looks *[]func()) {
	disk := m.disk
	disk.OnOperation(func(op vfs.Operation) error {
		if op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen || op.Kind == vfs.OpStat || m.rand.IntN(60) != 0 || len(*looks) > 0 || m.disk != disk {
			return nil
		}
		clone, trust := disk.Kill(), SameBoot
		if m.rand.IntN(2) == 0 {
			clone, trust = disk.Crash(), OtherBoot
		}
		point, durable := m.recoveryPoint, m.log.View().DurableEnd
		*looks = append(*looks, func() {
			m.note("  crash at %v %s", op.Kind, op.Name)
			m.lookAtCrash(clone, trust, point, durable)
		})
		return nil
	})
}

func runModel(t *testing.T, seed uint64, steps int) {
	m := newModel(t, seed)
	for range steps {
		var looks []func()
		m.watch(&looks)
		disk := m.disk
		m.step()
		disk.OnOperation(nil)
		for _, look := range looks {
			look()
		}
	}
	m.compareRebuilt()
}

// TestModel drives logs with random operations, kills and power cuts.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		runModel(t, seed, 60)
	}
}

// FuzzModel goes on with other seeds for as long as one likes.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1000))
	f.Add(uint64(967)) // an empty log that begins above its recovery point, closed cleanly
	f.Fuzz(func(t *testing.T, seed uint64) { runModel(t, seed, 60) })
}
