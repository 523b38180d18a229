package store

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/move"
	"ottla/storage/vfs"
)

// A crash state is what a power cut may leave when some of the operations since the last sync have reached the disk and
// others have not (vfs.Mem.CrashStates). The stories below are gone through operation by operation, and before each of
// those that change the disk every class of crash state is recovered, and what the death of the process leaves.

// transactional appends the batch of a producer, or its marker, whose values are as those of tryAppend.
func (w *world) transactional(p protocol.TopicPartition, id protocol.ProducerID, sequence int32, marker record.ControlType) {
	l := w.store.Log(p)
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.Transactional = id, 0, true
	e := &log.Entry{Origin: log.OriginClient, Info: record.Info{MaxTimestamp: w.now.UnixMilli(), Count: 1}}
	if marker == record.ControlAbort || marker == record.ControlCommit {
		o.Control, e.Origin = true, log.OriginMarker
		builder := record.NewBuilder(o)
		key, value := record.EndTxnMarker{Type: marker, CoordinatorEpoch: 3}.Encode()
		builder.Append(w.now.UnixMilli(), key, value, nil)
		e.Batch = builder.Build(nil)
	} else {
		o.BaseSequence = sequence
		builder := record.NewBuilder(o)
		builder.Append(w.now.UnixMilli(), nil, []byte(fmt.Sprintf("value %d....................", l.View().LogEndOffset)), nil)
		e.Batch = builder.Build(nil)
	}
	must(w.t, l.Append(w.now, 0, []*log.Entry{e}), e.Err)
	w.promises[p].appended = l.View().LogEndOffset
	l.SetHighWatermark(l.View().LogEndOffset)
}

const noMarker = record.ControlType(-1)

// moves fills the future log of a partition, and puts it in its place.
func (w *world) moves(p protocol.TopicPartition, dir protocol.DirectoryID) {
	must(w.t, w.store.CreateFuture(p, dir))
	for caughtUp := false; !caughtUp; {
		must(w.t, w.store.WithFuture(p, func(future *log.Log) (err error) {
			present := w.store.Log(p)
			_, caughtUp, err = move.Step(w.now, present, future, present.View().LogEndOffset, 400)
			return err
		}))
	}
	w.append(p, 2)
	must(w.t, w.store.Log(p).Flush(w.now)) // these are owed, wherever they lie
	w.promises[p].durable = w.store.Log(p).View().DurableEnd
	w.append(p, 1)
	failed, err := w.store.Promote(w.now, p, w.store.Log(p).View().LogEndOffset, func(future *log.Log) error {
		present := w.store.Log(p)
		for caughtUp := false; !caughtUp; {
			var err error
			if _, caughtUp, err = move.Step(w.now, present, future, present.View().LogEndOffset, 1<<20); err != nil {
				return err
			}
		}
		return future.TakeOver(w.now, present)
	}, func(*log.Log) {})
	if err != nil || !failed.IsZero() {
		w.t.Fatalf("%v, failed %v", err, failed)
	}
	w.promises[p].durable = w.store.Log(p).View().DurableEnd
}

var crashStories = map[string]func(w *world){
	"first start": func(w *world) {
		w.open()
		w.create(tp("t", 0))
		w.append(tp("t", 0), 2)
	},
	"roll": func(w *world) {
		w.open()
		w.create(tp("t", 0))
		w.append(tp("t", 0), 9)
		w.tick(time.Minute)
		w.append(tp("t", 0), 16)
	},
	"producers": func(w *world) {
		p := tp("t", 0)
		w.open()
		w.create(p)
		for i := range int32(6) {
			w.transactional(p, 7, i, noMarker)
			w.transactional(p, 8, i, noMarker)
			w.append(p, 2)
			w.transactional(p, 7, i, []record.ControlType{record.ControlAbort, record.ControlCommit}[i%2])
			if i == 3 {
				w.tick(time.Minute)
				w.transactional(p, 8, i, record.ControlAbort)
			}
		}
		w.close(true)
		w.open()
		w.append(p, 3)
	},
	"delete": func(w *world) {
		w.open()
		w.create(tp("t", 0))
		w.append(tp("t", 0), 9)
		w.create(tp("t", 1))
		w.append(tp("t", 1), 3)
		w.tick(time.Minute)
		w.delete(tp("t", 0))
		w.create(tp("t", 0))
		w.append(tp("t", 0), 2)
		w.delete(tp("t", 1))
		w.tick(2 * time.Minute)
	},
	"checkpoint": func(w *world) {
		w.open()
		w.create(tp("t", 0))
		w.create(tp("t", 1))
		for i := range 3 {
			w.append(tp("t", 0), 4)
			w.append(tp("t", 1), 1)
			must(w.t, w.store.CheckpointHighWatermarks(offsets{tp("t", 0): protocol.Offset(4 * i), tp("t", 1): 1}))
			w.tick(time.Minute)
		}
	},
	"delete records": func(w *world) {
		p := tp("t", 0)
		w.open()
		w.create(p)
		w.append(p, 30)
		w.tick(time.Minute)
		must(w.t, w.store.Log(p).AdvanceLogStart(w.now, 21))
		w.tick(10 * time.Minute)
		w.append(p, 2)
		must(w.t, w.store.Log(p).AdvanceLogStart(w.now, w.store.Log(p).View().LogEndOffset))
		w.tick(10 * time.Minute)
		w.append(p, 3)
	},
	"truncate": func(w *world) {
		p := tp("t", 0)
		w.open()
		w.create(p)
		w.append(p, 25)
		w.tick(time.Minute)
		w.truncate(p, 11)
		w.append(p, 5)
		w.truncate(p, 3)
	},
	"move": func(w *world) {
		p := tp("t", 0)
		w.open()
		w.create(p)
		w.append(p, 14)
		w.tick(time.Minute)
		w.append(p, 3)
		w.moves(p, directoryID(1))
		w.append(p, 2)
		w.tick(2 * time.Minute)
		w.moves(p, directoryID(0))
		w.tick(2 * time.Minute)
	},
	"a move given up": func(w *world) {
		p := tp("t", 0)
		w.open()
		w.create(p)
		w.append(p, 14)
		w.tick(time.Minute)
		must(w.t, w.store.CreateFuture(p, directoryID(1)))
		must(w.t, w.store.WithFuture(p, func(future *log.Log) error {
			_, _, err := move.Step(w.now, w.store.Log(p), future, 14, 400)
			return err
		}))
		must(w.t, w.store.RemoveFuture(w.now, p))
		w.append(p, 2)
		w.tick(2 * time.Minute)
	},
	"clean stop": func(w *world) {
		w.open()
		w.create(tp("t", 0))
		w.create(tp("t", 1))
		w.append(tp("t", 0), 12)
		w.close(true)
		w.open()
		w.append(tp("t", 1), 2)
		w.close(true)
		w.open()
		w.close(false)
		w.open()
	},
}

// TestCrashStates goes through the stories, and prints how many recoveries there were: those of all states with
// OTTLA_TORN=full, else of a sample.
func TestCrashStates(t *testing.T) {
	total, every, least := 0, 13, 1000
	if os.Getenv("OTTLA_TORN") == "full" {
		every, least = 1, 15_000
	}
	for _, name := range slices.Sorted(keysOf(crashStories)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			operations, states := 0, 0
			seen := map[string]bool{} // disks that were recovered under the promises of now
			try := func(when string, left *vfs.Mem, killed bool) {
				if states++; states%every != 0 {
					return
				}
				key := fmt.Sprint(killed, w.owed(), strings.Join(disk(t, left, ""), "\n"))
				if !seen[key] {
					seen[key] = true
					w.recovers(when, left, killed)
				}
			}
			all := func(when string) {
				operations++
				try("killed before "+when, w.disk.Kill(), true)
				w.disk.CrashStates(func(state string, left *vfs.Mem) {
					try(fmt.Sprintf("power cut (%s) before %s", state, when), left, false)
				})
			}
			w.disk.OnOperation(func(op vfs.Operation) error {
				if op.Kind.Changes() {
					all(op.String())
				}
				return nil
			})
			crashStories[name](w)
			w.disk.OnOperation(nil)
			all("nothing more")
			t.Logf("%d operations that change the disk, %d crash states, %d recoveries of states that differ", operations, states, w.crashes)
			total += w.crashes
		})
	}
	t.Logf("%d recoveries: crash states of the store", total)
	if total < least {
		t.Errorf("only %d recoveries", total)
	}
}

func (w *world) owed() string {
	var b strings.Builder
	for _, p := range sortedKeys(w.promises) {
		fmt.Fprintf(&b, "%+v ", *w.promises[p])
	}
	return b.String()
}

func keysOf[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// recovers opens a clone and holds it against the promises; every eighth is stopped and started once more, as check does,
// and every third is compared with a rebuild.
func (w *world) recovers(when string, m *vfs.Mem, killed bool) {
	if w.crashes%8 == 0 {
		w.check(when, m, killed)
		return
	}
	w.crashes++
	s, report, err := Open(w.now, options(m, w.dirs...))
	if err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	for _, d := range report.Directories {
		if d.Offline != nil || len(d.Damaged)+len(d.Unknown)+len(d.Checkpoints) > 0 {
			w.t.Fatalf("%s: the report says %+v", when, d)
		}
	}
	for _, p := range sortedKeys(w.promises) {
		w.checkPartition(when, p, s.Log(p), killed)
	}
	before := contents(w.t, when, s)
	if w.crashes%3 == 0 {
		w.rebuilt(when, s, m, before)
	}
}

// derived are the files that follow from the records.
var derived = []string{".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"}

// rebuilt: what a start has made of the files is what a start without them makes.
func (w *world) rebuilt(when string, s *Store, m *vfs.Mem, before []string) {
	bare := m.Kill()
	for _, dir := range w.dirs {
		for _, file := range []string{logdir.CleanShutdownFile, logdir.BootIDFile, logdir.RecoveryPointFile} { // all records are in doubt
			_ = bare.Remove(path.Join(dir, file)) // it may be missing
		}
		partitions, err := bare.ReadDir(dir)
		must(w.t, err)
		for _, p := range partitions {
			if !p.Dir || strings.HasSuffix(p.Name, "-future") {
				continue
			}
			files, err := bare.ReadDir(path.Join(dir, p.Name))
			must(w.t, err)
			for _, f := range files {
				if slices.ContainsFunc(derived, func(suffix string) bool { return strings.HasSuffix(f.Name, suffix) }) {
					must(w.t, bare.Remove(path.Join(dir, p.Name, f.Name)))
				}
			}
		}
	}
	again, _, err := Open(w.now, options(bare, w.dirs...))
	if err != nil {
		w.t.Fatalf("%s, rebuilt: %v", when, err)
	}
	if after := contents(w.t, when, again); !slices.Equal(before, after) {
		w.t.Fatalf("%s: a rebuild has\n%q, not\n%q", when, after, before)
	}
	for _, l := range s.Logs() {
		other := again.Log(l.TopicPartition())
		end := l.View().LogEndOffset
		l.SetHighWatermark(end)
		other.SetHighWatermark(end)
		aborted, err := l.AbortedIn(0, end)
		must(w.t, err)
		rebuilt, err := other.AbortedIn(0, end)
		must(w.t, err)
		if !slices.Equal(aborted, rebuilt) {
			w.t.Fatalf("%s: aborted transactions %v, a rebuild has %v", when, aborted, rebuilt)
		}
		if l.View().LogStartOffset == 0 && (!slices.Equal(l.ActiveProducers(), other.ActiveProducers()) || l.View().FirstUnstableOffset != other.View().FirstUnstableOffset) {
			w.t.Fatalf("%s: producers\n%+v, stable to %d; a rebuild has\n%+v, %d", when, l.ActiveProducers(), l.View().FirstUnstableOffset,
				other.ActiveProducers(), other.View().FirstUnstableOffset)
		}
	}
}
