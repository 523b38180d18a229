package clean

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// written is a record that a test appended.
type written struct {
	offset     protocol.Offset
	key, value string // as in rec
	aborted    bool
	open       bool // neither committed nor aborted
}

// world is a log and everything that was ever appended to it.
type world struct {
	t          *testing.T
	random     *rand.Rand
	log        *log.Log
	now        time.Time
	all        []written
	producers  map[protocol.ProducerID]*life
	checkpoint protocol.Offset
	keys       int
	bound      protocol.Offset // beyond it nothing was ever compacted
}

type life struct {
	epoch    protocol.ProducerEpoch
	sequence int32
	open     bool
	records  []int // of all, in the open transaction
}

func newWorld(t *testing.T, seed uint64, l *log.Log) *world {
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), log: l, now: testTime, producers: map[protocol.ProducerID]*life{}, keys: 3 + int(seed%20),
	}
}

var codecs = []compress.Codec{compress.None, compress.None, compress.Gzip, compress.Snappy, compress.LZ4, compress.Zstd}

// grow appends a batch or a marker.
func (w *world) grow() {
	w.now = w.now.Add(time.Duration(w.random.IntN(20)) * time.Second)
	id := protocol.ProducerID(w.random.IntN(4))
	p := w.producers[id]
	if p == nil {
		p = &life{}
		w.producers[id] = p
	}
	if p.open && w.random.IntN(4) == 0 {
		w.end(id, p)
		return
	}
	var by from
	if w.random.IntN(3) != 0 {
		by = from{id: id, epoch: p.epoch, sequence: p.sequence, transactional: p.open || w.random.IntN(2) == 0}
		if by == (from{}) {
			by.transactional = true
		}
	}
	n := 1 + w.random.IntN(4)
	var records []rec
	at := w.log.View().LogEndOffset
	for i := range n {
		r := rec{key: fmt.Sprintf("key %d", w.random.IntN(w.keys)), value: fmt.Sprintf("value %d %s", at+protocol.Offset(i), strings.Repeat("x", w.random.IntN(60)))}
		if w.random.IntN(5) == 0 {
			r.value = ""
		}
		if w.random.IntN(20) == 0 {
			r.key = ""
		}
		records = append(records, r)
		w.all = append(w.all, written{offset: at + protocol.Offset(i), key: r.key, value: r.value, open: by.transactional})
		if by.transactional {
			p.records = append(p.records, len(w.all)-1)
		}
	}
	if by != (from{}) {
		p.sequence += int32(n)
		p.open = by.transactional
	}
	w.add(batch(codecs[w.random.IntN(len(codecs))], by, w.now, records...))
}

func (w *world) end(id protocol.ProducerID, p *life) {
	commit := w.random.IntN(2) == 0
	for _, i := range p.records {
		w.all[i].open, w.all[i].aborted = false, !commit
	}
	p.records, p.open = nil, false
	if w.random.IntN(3) == 0 {
		p.epoch++
		p.sequence = 0
	}
	w.add(marker(id, p.epoch, commit, w.now))
}

func (w *world) add(b record.Batch) {
	origin := log.OriginClient
	if b.IsControl() {
		origin = log.OriginMarker
	}
	e := &log.Entry{Batch: b, Origin: origin, Info: record.Info{Count: b.Count(), MaxTimestamp: b.MaxTimestamp()}}
	must(w.t, w.log.Append(w.now, 0, []*log.Entry{e}))
	must(w.t, e.Err)
	w.log.SetHighWatermark(w.log.View().LogEndOffset)
}

// found is a record as a consumer sees it.
type found struct {
	key, value string
}

// read gives what a consumer sees by offset, at one of the isolation levels; it leaves out aborted records as the clients do.
func read(t testing.TB, l *log.Log, committed bool) map[protocol.Offset]found {
	t.Helper()
	v, err := l.CleanView()
	must(t, err)
	list, err := l.AbortedIn(v.LogStartOffset, v.LogEndOffset)
	must(t, err)
	aborted := map[int64]bool{}
	sees := map[protocol.Offset]found{}
	for _, b := range allBatches(t, l) {
		for len(list) > 0 && list[0].FirstOffset <= b.LastOffset() {
			aborted[int64(list[0].ProducerID)] = true
			list = list[1:]
		}
		if b.IsControl() {
			for r, err := range record.Records(b, testPool, 1<<20) {
				must(t, err)
				if kind, err := record.ParseControlKey(r.Key); err == nil && kind == record.ControlAbort {
					delete(aborted, int64(b.ProducerID()))
				}
			}
			continue
		}
		if committed && (b.BaseOffset() >= v.LastStableOffset || b.IsTransactional() && aborted[int64(b.ProducerID())]) {
			continue
		}
		for r, err := range record.Records(b, testPool, 1<<20) {
			must(t, err)
			sees[r.Offset] = found{string(r.Key), string(r.Value)}
		}
	}
	return sees
}

// latest gives the last value of each key; deleted ones are left out.
func latest(sees map[protocol.Offset]found) map[string]string {
	values := map[string]string{}
	for _, offset := range slices.Sorted(maps.Keys(sees)) {
		f := sees[offset]
		if f.key == "" {
			continue
		}
		if f.value == "" {
			delete(values, f.key)
		} else {
			values[f.key] = f.value
		}
	}
	return values
}

// law checks what compaction up to w.checkpoint may have done. early tells that no tombstone may be gone.
func (w *world) law(l *log.Log, early bool) {
	t := w.t
	t.Helper()
	uncommitted, committed := read(t, l, false), read(t, l, true)
	view, err := l.CleanView()
	must(t, err)
	last := map[string]protocol.Offset{} // of what is compacted
	for _, r := range w.all {
		if r.offset < w.checkpoint && !r.aborted && r.key != "" {
			last[r.key] = r.offset
		}
	}
	known := map[protocol.Offset]written{}
	for _, r := range w.all {
		known[r.offset] = r
		got, is := uncommitted[r.offset]
		_, visible := committed[r.offset]
		wanted := r.offset >= w.checkpoint || !r.aborted && last[r.key] == r.offset && r.key != ""
		// Of a segment that was rewritten aborted records go also beyond the checkpoint.
		mayGo := r.value == "" && r.offset < w.checkpoint && !early || r.aborted && r.offset >= w.checkpoint
		switch {
		case is && (got != found{r.key, r.value}):
			t.Fatalf("offset %d holds %v, not %v", r.offset, got, r)
		case is && !wanted:
			t.Fatalf("offset %d stays, but the last of %q up to %d is at %d: %+v", r.offset, r.key, w.checkpoint, last[r.key], r)
		case !is && wanted && !mayGo:
			t.Fatalf("offset %d is gone: %+v (compacted up to %d)", r.offset, r, w.checkpoint)
		case visible && r.aborted, visible && r.offset >= view.LastStableOffset, is && !visible && !r.aborted && r.offset < view.LastStableOffset:
			t.Fatalf("offset %d is visible: %v, last stable is %d: %+v", r.offset, visible, view.LastStableOffset, r)
		}
	}
	for offset := range uncommitted {
		if _, is := known[offset]; !is {
			t.Fatalf("offset %d was never written", offset)
		}
	}
}

// values are the latest committed ones of all that was written.
func (w *world) values(stable protocol.Offset) map[string]string {
	sees := map[protocol.Offset]found{}
	for _, r := range w.all {
		if !r.aborted && r.offset < stable {
			sees[r.offset] = found{r.key, r.value}
		}
	}
	return latest(sees)
}

func producersOf(l *log.Log) []string {
	var list []string
	for _, p := range l.ActiveProducers() {
		list = append(list, fmt.Sprintf("%+v", p))
	}
	return list
}

// withoutTime drops what of a producer's last batch changes with its records.
func withoutTime(producers []string) []string {
	for i, p := range producers {
		before, after, _ := strings.Cut(p, "LastTimestampMs:")
		_, after, _ = strings.Cut(after, " ")
		producers[i] = before + after
	}
	return producers
}

func TestLaw(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			disk := newDisk(seed)
			o := testOptions()
			o.SegmentBytes, o.DeleteRetention = 600+int64(seed)*100, time.Hour
			o.ProducerIDExpiration = 1000 * time.Hour
			w := newWorld(t, seed, newLog(t, disk, o))
			s := DefaultSettings()
			for range 8 {
				for range 10 + w.random.IntN(60) {
					w.grow()
				}
				s.DedupeBytes = entryBytes * int64(3+w.random.IntN(40)) // often too few
				before, producers := w.log.View(), producersOf(w.log)
				end, _, err := Compact(w.now, w.log, w.checkpoint, s, testPool)
				must(t, err)
				if end < w.checkpoint || end > before.ActiveSegmentBase {
					t.Fatalf("compacted up to %d, from %d, in a log whose active segment begins at %d", end, w.checkpoint, before.ActiveSegmentBase)
				}
				w.checkpoint = end
				after := w.log.View()
				if before != after || !slices.Equal(producers, producersOf(w.log)) {
					t.Fatalf("the view changed from %+v to %+v", before, after)
				}
				w.law(w.log, false)
				if stable, _ := w.log.CleanView(); !maps.Equal(latest(read(t, w.log, true)), w.values(stable.LastStableOffset)) {
					t.Fatal("values differ")
				}
				w.maintain()
			}

			w.fixpoint(t)
			w.reopened(disk, o)
		})
	}
}

func (w *world) maintain() {
	w.t.Helper()
	for range 2 {
		if m := w.log.Maintain(w.now); m.Err != nil {
			w.t.Fatal(m.Err)
		}
	}
}

// fixpoint compacts until the delete horizons are over: then nothing changes any more.
func (w *world) fixpoint(t *testing.T) {
	var before []string
	for i := range 8 {
		w.now = w.now.Add(2 * time.Hour)
		end, _ := compact(t, w.log, w.checkpoint, w.now)
		w.checkpoint = max(w.checkpoint, end)
		after := lines(t, w.log)
		if i >= 6 && !slices.Equal(before, after) {
			t.Fatalf("compaction does not come to an end:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		before = after
	}
	w.law(w.log, false)
}

// reopened opens what was left, with and without what follows from the records.
func (w *world) reopened(disk *vfs.Mem, o log.Options) {
	t := w.t
	before, producers, view := lines(t, w.log), producersOf(w.log), w.log.View()
	_, err := w.log.Close(w.now, true)
	must(t, err)
	disk.SyncAll()
	for _, trust := range []log.Trust{log.Clean, log.SameBoot, log.OtherBoot} {
		l, recovery := openLog(t, disk, o, log.OpenState{RecoveryPoint: view.DurableEnd, Trust: trust, Now: w.now})
		if trust != log.OtherBoot && recovery.NoteWorthy() {
			t.Errorf("trust %d: %+v", trust, recovery)
		}
		if !slices.Equal(lines(t, l), before) || !slices.Equal(withoutTime(producersOf(l)), withoutTime(producers)) {
			t.Errorf("trust %d: the log is another\n%v\n%v", trust, producersOf(l), producers)
		}
		if got := l.View(); got.LogEndOffset != view.LogEndOffset || got.FirstUnstableOffset != view.FirstUnstableOffset {
			t.Errorf("trust %d: %+v, before %+v", trust, got, view)
		}
		w.law(l, false)
		_, err := l.Close(w.now, false)
		must(t, err)
	}
}
