package clean

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// TestBetweenSteps changes a log between the steps of rounds over it, in every way there is: the rounds end, or begin anew, and the
// log is what was written to it.
func TestBetweenSteps(t *testing.T) {
	superseded, ended := 0, 0
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			disk := newDisk(seed)
			o := testOptions()
			o.SegmentBytes, o.ProducerIDExpiration, o.Delete, o.RetentionAge = 700, 1000*time.Hour, true, -1
			o.DeleteRetention = time.Hour
			w := newWorld(t, seed, newLog(t, disk, o))
			s := DefaultSettings()
			s.BufferBytes = 1
			var r *round
			for range 400 {
				switch n := w.random.IntN(100); {
				case n < 45:
					w.grow()
				case n < 48:
					w.maintain()
				case n == 48:
					w.cut()
				case n == 49:
					w.advance()
				case n == 50:
					must(t, w.log.MoveTo("d/moved"))
					if w.random.IntN(2) == 0 && r != nil {
						w.stepped(&r, &superseded, &ended)
					}
					must(t, w.log.MoveTo(testDir))
				case n == 51:
					must(t, w.log.Flush(w.now))
				case r == nil:
					c, err := examine(w.log, min(w.checkpoint, w.log.TakeCut()), w.now)
					must(t, err)
					w.checkpoint = min(w.checkpoint, c.firstDirty)
					if c.cleanableBytes > 0 {
						r = newRound(w.now, c, &s, testPool, func(_ *log.Log, task func()) bool { task(); return true })
					}
				default:
					w.stepped(&r, &superseded, &ended)
				}
				if w.random.IntN(20) == 0 {
					w.written()
				}
			}
			if r != nil {
				must(t, r.abandon())
			}
			w.written()
			w.log.SetHighWatermark(w.log.View().LogEndOffset)
			w.reopens(disk, o)
		})
	}
	if superseded < 10 || ended < 100 {
		t.Errorf("%d rounds were superseded and %d ended", superseded, ended)
	}
}

func (w *world) stepped(r **round, superseded, ended *int) {
	w.bound = max(w.bound, (*r).bound)
	_, err := (*r).step(w.now, 1)
	switch {
	case errors.Is(err, log.ErrSuperseded):
		*superseded++
		must(w.t, (*r).abandon())
		*r = nil
	case err != nil:
		w.t.Fatal(err)
	case (*r).done:
		*ended++
		w.checkpoint = (*r).end
		*r = nil
	}
}

// cut truncates within what was written last, and forgets it.
func (w *world) cut() {
	v := w.log.View()
	least := max(v.LogStartOffset, v.LogEndOffset-60)
	to := least + protocol.Offset(w.random.IntN(int(v.LogEndOffset-least)+1))
	must(w.t, w.log.TruncateTo(to))
	end := w.log.View().LogEndOffset
	w.bound = min(w.bound, end)
	w.all = slices.DeleteFunc(w.all, func(r written) bool { return r.offset >= end })
	// Which transactions are open again the log knows; the model goes on with new producers.
	w.producers = map[protocol.ProducerID]*life{}
	w.log.SetHighWatermark(end)
	for _, p := range w.log.ActiveProducers() {
		w.producers[p.ProducerID] = &life{epoch: p.Epoch, sequence: p.LastSequence + 1, open: p.CurrentTxnFirstOffset != protocol.NoOffset}
	}
}

// advance deletes records.
func (w *world) advance() {
	v := w.log.View()
	must(w.t, w.log.AdvanceLogStart(w.now, v.LogStartOffset+protocol.Offset(w.random.IntN(40))%(v.LogEndOffset-v.LogStartOffset+1)))
}

// written checks that the log holds nothing else than what was written, and all that was not compacted.
func (w *world) written() {
	w.t.Helper()
	known := map[protocol.Offset]written{}
	for _, r := range w.all {
		known[r.offset] = r
	}
	sees := read(w.t, w.log, false)
	for offset, f := range sees {
		if r, is := known[offset]; !is || f != (found{r.key, r.value}) {
			w.t.Fatalf("offset %d holds %v, not %+v", offset, f, r)
		}
	}
	v := w.log.View()
	for _, r := range w.all {
		if _, is := sees[r.offset]; !is && r.offset >= max(w.bound, v.LogStartOffset) {
			w.t.Fatalf("offset %d is gone: %+v", r.offset, r)
		}
	}
}

// reopens compares the log with what a start finds after the death of the process.
func (w *world) reopens(disk *vfs.Mem, o log.Options) {
	before, view := lines(w.t, w.log), w.log.View()
	l, _ := openLog(w.t, disk.Kill(), o, log.OpenState{RecoveryPoint: view.DurableEnd, LogStartOffset: view.LogStartOffset, Trust: log.SameBoot, Now: w.now})
	if after := lines(w.t, l); !slices.Equal(before, after) {
		w.t.Errorf("a start finds\n%s\n\nnot\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}
