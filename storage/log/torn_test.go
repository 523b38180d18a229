package log

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// tornLog is a small log and all that is known about it.
type tornLog struct {
	opts     Options
	files    map[string]string // after a clean stop
	batches  []record.Batch
	end      protocol.Offset
	recovery protocol.Offset // recovery point of the unclean trusts
	bases    []protocol.Offset
	epochs   []checkpoint.EpochStart
	actives  []ActiveProducer
	aborted  int
}

// makeTornLog makes one with idempotent and transactional producers, of epochs that change. With entangled transactions of
// three producers lie across the segments, some batches are compressed, two transactions stay open.
func makeTornLog(t *testing.T, entangled bool) *tornLog {
	disk := newDisk(5)
	check(t, disk.MkdirAll("log"))
	o := DefaultOptions()
	o.VerifyTransactions = false
	o.SegmentBytes, o.IndexIntervalBytes, o.ProducerIDExpiration = 620, 120, 1<<62
	l, err := Create(testEnv(disk), "log/t-0", testTP, protocol.TopicID{1}, o)
	check(t, err)
	sequence := int32(0)
	for i := range 7 {
		if entangled && i == 0 {
			addEntangled(t, l)
		}
		if entangled && i >= 2 {
			break
		}
		epoch := protocol.LeaderEpoch(i / 2)
		add := func(b record.Batch, origin Origin) {
			e := &Entry{Batch: b, Origin: origin}
			check(t, l.Append(testTime, epoch, []*Entry{e}))
			check(t, e.Err)
		}
		later := int64(i * i * 100 % 700)
		if entangled { // whose last byte, spoiled, is not the time of another batch: that would be as good an entry
			later += 301
		}
		add(batchOf(2, i, testTime.UnixMilli()+later), OriginClient)
		add(batchBy(7, 0, sequence, 1, false), OriginClient)
		add(batchBy(9, 0, sequence, 1, true), OriginClient)
		sequence++
		if i < 6 {
			add(markerOf(9, 0, i%2 == 0, 1), OriginMarker)
		}
	}
	tl := &tornLog{opts: o, end: l.View().LogEndOffset, epochs: l.Epochs(), actives: l.ActiveProducers()}
	tl.batches = allBatches(t, l, 1<<20)
	for _, s := range l.Segments() {
		tl.bases = append(tl.bases, s.Base)
	}
	n := len(tl.bases)
	if n < 4 {
		t.Fatalf("only %d segments", n)
	}
	for _, b := range tl.batches { // in the middle of the last segment but one
		if b.BaseOffset() > tl.bases[n-2] {
			tl.recovery = b.NextOffset()
			break
		}
	}
	aborted, err := l.AbortedIn(0, tl.end)
	check(t, err)
	tl.aborted = len(aborted)
	_, err = l.Close(testTime, true)
	check(t, err)
	tl.files = readDir(t, disk, "log/t-0")
	return tl
}

func addEntangled(t *testing.T, l *Log) {
	sequences := map[protocol.ProducerID]int32{}
	for i := range 12 {
		id := protocol.ProducerID(20 + i%3)
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, 1, sequences[id], true
		o.Codec = compress.Codec(i % 5)
		builder := record.NewBuilder(o)
		for range 3 {
			builder.Append(testTime.UnixMilli(), []byte("key"), []byte(strings.Repeat("value", 4)), nil)
			sequences[id]++
		}
		e := &Entry{Batch: builder.Build(compress.NewPool()), Origin: OriginClient}
		check(t, l.Append(testTime, 0, []*Entry{e}))
		check(t, e.Err)
		if i == 7 || i == 9 || i == 11 { // of 20, 21 and 22; 21 and 22 stay open after the next round
			e := &Entry{Batch: markerOf(protocol.ProducerID(20+i%3), 1, i == 9, 2), Origin: OriginMarker}
			check(t, l.Append(testTime, 0, []*Entry{e}))
			check(t, e.Err)
		}
	}
	for _, id := range []protocol.ProducerID{20, 21} {
		e := &Entry{Batch: batchBy(id, 1, sequences[id], 2, true), Origin: OriginClient}
		check(t, l.Append(testTime, 0, []*Entry{e}))
		check(t, e.Err)
	}
}

func (tl *tornLog) open(t *testing.T, files map[string]string, trust Trust) (*Log, *vfs.Mem, Recovery, error) {
	disk := newDisk(6)
	check(t, disk.MkdirAll("log/t-0"))
	for name, data := range files {
		check(t, vfs.WriteFile(disk, path.Join("log/t-0", name), []byte(data), false))
	}
	state := OpenState{RecoveryPoint: tl.recovery, Trust: trust}
	if trust == Clean {
		state.RecoveryPoint = tl.end
	}
	l, report, err := Open(testEnv(disk), "log/t-0", testTP, tl.opts, state)
	return l, disk, report, err
}

// masked hides the leader epoch, which no checksum covers.
func masked(b record.Batch) string {
	c := record.Batch(slices.Clone(b))
	c.SetPartitionLeaderEpoch(0)
	return string(c)
}

// damage is one way to spoil a file.
type damage struct {
	name string
	do   func(data []byte, at int) []byte
}

func damages() []damage {
	random := rand.New(rand.NewPCG(3, 4))
	return []damage{
		{"cut", func(data []byte, at int) []byte { return data[:at] }},
		{"zeros", func(data []byte, at int) []byte {
			clear(data[at:])
			return data
		}},
		{"garbage", func(data []byte, at int) []byte {
			for i := at; i < len(data); i++ {
				data[i] = byte(random.Uint32())
			}
			return data
		}},
		{"flip", func(data []byte, at int) []byte {
			data[at] ^= byte(1 + random.Uint32N(255))
			return data
		}},
		{"padding", func(data []byte, at int) []byte { return append(data, make([]byte, at+1)...) }},
	}
}

// TestTorn spoils every byte (with OTTLA_TORN=full, else every seventh) of every file in every way, and opens the log with
// every trust.
func TestTorn(t *testing.T) { tearLogs(t, makeTornLog(t, false)) }

// TestTornTransactions is the same of a log of entangled transactions.
func TestTornTransactions(t *testing.T) { tearLogs(t, makeTornLog(t, true)) }

func tearLogs(t *testing.T, tl *tornLog) {
	counts, total, stride := map[string]int{}, 0, 7
	if os.Getenv("OTTLA_TORN") == "full" {
		stride = 1
	}
	for _, name := range slices.Sorted(maps.Keys(tl.files)) {
		data := tl.files[name]
		for at := 0; at < len(data); at += stride {
			for _, d := range damages() {
				spoiled := string(d.do([]byte(data), at))
				if spoiled == data {
					continue
				}
				first := 0 // byte that differs
				for first < min(len(spoiled), len(data)) && spoiled[first] == data[first] {
					first++
				}
				for _, trust := range []Trust{Clean, SameBoot, OtherBoot} {
					c := &tornCase{t: t, tl: tl, file: name, at: first, damage: d.name, trust: trust, spoiled: spoiled}
					counts[c.run()]++
					total++
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tl.files)) { // and without each file
		for _, trust := range []Trust{Clean, SameBoot, OtherBoot} {
			c := &tornCase{t: t, tl: tl, file: name, damage: "missing", trust: trust, missing: true}
			counts[c.run()]++
			total++
		}
	}
	t.Logf("%d recoveries: a log of %d segments, %v", total, len(tl.bases), counts)
}

type tornCase struct {
	t       *testing.T
	tl      *tornLog
	file    string
	at      int
	damage  string
	trust   Trust
	spoiled string
	missing bool
}

func (c *tornCase) fatal(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s of %s at %d, trust %d: %s", c.damage, c.file, c.at, c.trust, fmt.Sprintf(format, args...))
}

func (c *tornCase) run() string {
	files := maps.Clone(c.tl.files)
	files[c.file] = c.spoiled
	if c.missing {
		delete(files, c.file)
	}
	l, disk, report, err := c.tl.open(c.t, files, c.trust)
	base, suffix, _ := segment.ParseName(c.file)
	if err != nil {
		if suffix != segment.LogSuffix || !isDamaged(err) {
			c.fatal("%v", err)
		}
		inDoubt := c.trust == OtherBoot || c.trust == SameBoot && c.beyondIndex(base)
		if inDoubt && c.offset(base) >= c.tl.recovery && !c.missing {
			c.fatal("%v, but nothing before %d is damaged", err, c.tl.recovery)
		}
		after := readDir(c.t, disk, "log/t-0")
		for name, data := range files {
			base, suffix, _ := segment.ParseName(name)
			if suffix == segment.LogSuffix && base < c.tl.recovery && after[name] != data {
				c.fatal("refused (%v), but %s was changed", err, name)
			}
		}
		return "refused"
	}
	if suffix == segment.LogSuffix {
		return c.judgeLog(l, base, report)
	}
	c.judgeRest(l, suffix)
	if c.at%16 == 0 {
		c.again(l, disk)
	}
	return "repaired"
}

// beyondIndex tells that the damage lies beyond the last index entry of the last segment.
func (c *tornCase) beyondIndex(base protocol.Offset) bool {
	index := []byte(c.tl.files[segment.FileName(base, segment.IndexSuffix)])
	if base != c.tl.bases[len(c.tl.bases)-1] {
		return false
	}
	return len(index) == 0 || c.at >= int(binary.BigEndian.Uint32(index[len(index)-4:]))
}

// offset is the base offset of the batch in which the damage begins.
func (c *tornCase) offset(base protocol.Offset) protocol.Offset {
	rest := []byte(c.tl.files[c.file])
	offset := base
	for at := 0; len(rest) > 0; {
		var b record.Batch
		b, rest, _ = record.Next(rest)
		offset = b.BaseOffset()
		if at += len(b); at > c.at {
			return offset
		}
		offset = b.NextOffset()
	}
	return offset
}

// judgeLog: what is in doubt is cut at the first damaged batch; the rest stays, and all that is read is as written.
func (c *tornCase) judgeLog(l *Log, base protocol.Offset, report Recovery) string {
	if c.trust != OtherBoot && c.damage == "flip" && c.within(0, 8) {
		return "another offset" // only a power cut makes us look for gaps
	}
	hit := c.offset(base)
	end := l.View().LogEndOffset
	if end < c.tl.end && end < c.tl.recovery || end > c.tl.end {
		c.fatal("ends at %d", end)
	}
	isEpoch := c.damage == "flip" && c.within(12, 16)
	isTail := c.damage == "padding"
	if c.trust == OtherBoot && hit >= c.tl.recovery && end != min(hit, c.tl.end) && !isTail && !isEpoch {
		c.fatal("ends at %d, the damaged batch begins at %d, %+v", end, hit, report)
	}
	if c.trust == Clean && end != c.tl.end {
		c.fatal("ends at %d", end)
	}
	outcome := "kept"
	if end < c.tl.end {
		outcome = "cut"
	}
	at := l.View().LogStartOffset
	for _, want := range c.tl.batches {
		if want.BaseOffset() < at || want.NextOffset() > end {
			continue
		}
		read, err := l.Read(want.BaseOffset(), 1, end, true)
		if err != nil {
			if want.BaseOffset() < hit {
				c.fatal("a batch before the damage cannot be read: %v", err)
			}
			return outcome + ", unreadable" // synced and damaged: nothing wrong is given out
		}
		bytes, err := read.Region.ReadAll()
		check(c.t, err)
		read.Region.Release()
		if masked(bytes) != masked(want) && want.NextOffset() <= hit {
			c.fatal("the batch at %d changed", want.BaseOffset())
		}
	}
	return outcome
}

// within tells that the first changed byte is one of these of a batch; no checksum covers the first twelve, nor the
// leader epoch after them.
func (c *tornCase) within(from, to int) bool {
	rest := []byte(c.tl.files[c.file])
	for at := 0; len(rest) > 0; {
		var b record.Batch
		b, rest, _ = record.Next(rest)
		if within := c.at - at; within >= from && within < to {
			return true
		}
		at += len(b)
	}
	return false
}

// judgeRest: nothing but the .log holds what cannot be made again.
func (c *tornCase) judgeRest(l *Log, suffix string) {
	if end := l.View().LogEndOffset; end != c.tl.end {
		c.fatal("ends at %d", end)
	}
	for _, size := range []int{1, 300} {
		got := allBatches(c.t, l, size)
		if !slices.EqualFunc(got, c.tl.batches, func(a, b record.Batch) bool { return string(a) == string(b) }) {
			c.fatal("other batches are read in pieces of %d bytes", size)
		}
	}
	if suffix == segment.TimeIndexSuffix || suffix == segment.IndexSuffix {
		compareTimes(c.t, fmt.Sprint(c), l, c.tl.batches)
	}
	if got := l.ActiveProducers(); !slices.Equal(got, c.tl.actives) {
		c.fatal("producers are %+v", got)
	}
	if c.file == epochFile && c.trust == Clean && c.damage == "flip" {
		return // an epoch that is another, but as well formed, is found only where something is checked
	}
	if got := l.Epochs(); !slices.Equal(got, c.tl.epochs) {
		c.fatal("epochs are %v, should be %v", got, c.tl.epochs)
	}
	// The .txnindex of a segment that is not in doubt is believed if it is well formed.
	if suffix != segment.TxnIndexSuffix || c.trust == OtherBoot && !strings.HasPrefix(c.file, fmt.Sprintf("%020d", c.tl.bases[0])) && c.inDoubt() {
		if got, err := l.AbortedIn(0, c.tl.end); err != nil || len(got) != c.tl.aborted {
			c.fatal("%d aborted transactions, should be %d: %v", len(got), c.tl.aborted, err)
		}
	}
}

func (c *tornCase) inDoubt() bool {
	base, _, _ := segment.ParseName(c.file)
	return base >= c.tl.bases[len(c.tl.bases)-2]
}

// again: a second recovery finds nothing to do, and a rebuild has the same indexes where they are in doubt.
func (c *tornCase) again(l *Log, disk *vfs.Mem) {
	state := OpenState{RecoveryPoint: c.tl.recovery, Trust: c.trust}
	if c.trust == Clean {
		state.RecoveryPoint = c.tl.end
	}
	before := readDir(c.t, disk, "log/t-0")
	second, report, err := Open(testEnv(disk), "log/t-0", testTP, c.tl.opts, state)
	if err != nil {
		c.fatal("the second time: %v", err)
	}
	after := readDir(c.t, disk, "log/t-0")
	if report.NoteWorthy() || !maps.Equal(before, after) {
		c.fatal("the second time something was repaired: %+v\n%v\n%v", report, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	l.SetHighWatermark(c.tl.end) // a replay knows transactions that wait for it, a snapshot does not
	second.SetHighWatermark(c.tl.end)
	if second.View() != l.View() {
		c.fatal("the second time it is %+v, not %+v", second.View(), l.View())
	}
	if c.trust == Clean {
		return
	}
	if _, err := second.Close(testTime, true); err != nil {
		c.fatal("%v", err)
	}
	closed := readDir(c.t, disk, "log/t-0")
	for name, data := range c.tl.files {
		if closed[name] != data && name != c.file {
			c.fatal("after a clean stop %s is %x, not %x", name, closed[name], data)
		}
	}
}
