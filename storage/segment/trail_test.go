package segment

import (
	"fmt"
	"slices"
	"testing"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// batchesOf tells what Batches visits from an offset on, the first few of them if most is not 0.
func batchesOf(t *testing.T, s *Segment, from protocol.Offset, limit int64, most int) (met []string) {
	t.Helper()
	check(t, s.Batches(from, limit, func(b Batch) error {
		met = append(met, fmt.Sprintf("%x at %d, %d bytes", []byte(b.Header), b.Position, b.Size))
		if len(met) == most {
			return ErrStop
		}
		return nil
	}))
	return met
}

// TestTrail asks a segment that is being opened, after the walk, for batches from everywhere and up to every batch's end: they
// are those of one that nobody opens, whether the walk has left a trail of them or of too many.
func TestTrail(t *testing.T) {
	for _, batches := range []int{1, 7, 40, trailMost, trailMost + 1} {
		s, disk := makeSegment(t, 10, 500)
		n := &naive{}
		ends := []int64{0}
		for i := range batches {
			n.add(t, s, batchAt(10+2*protocol.Offset(i), 2, 100, int64(i)))
			ends = append(ends, s.Size())
			if i == batches/3 {
				check(t, s.Store())
			}
		}
		stride := batches/20 + 1
		present := presentOf(t, disk)
		resumed := Open(NewFileCache(disk, 10), "d", 10, s.opts, present)
		w, err := resumed.Resume(present, Trusting, nil)
		check(t, err)
		if w.Next != 10+2*protocol.Offset(batches) || w.Damage != nil {
			t.Fatalf("%+v", w)
		}
		left := resumed.trail
		if left.lost != (w.Batches > trailMost) || !left.lost && int64(len(left.steps)) != w.Batches {
			t.Fatalf("%d batches were walked, the trail has %d, lost: %t", w.Batches, len(left.steps), left.lost)
		}
		rebuilt := Open(NewFileCache(disk, 10), "d", 10, s.opts, present)
		_, err = rebuilt.Rebuild(Trusting, nil)
		check(t, err)
		for i := 0; i <= batches; i += stride {
			for _, from := range []protocol.Offset{10 + 2*protocol.Offset(i), 11 + 2*protocol.Offset(i)} {
				for _, end := range []int64{ends[i], ends[batches-i], s.Size()} {
					want := batchesOf(t, s, from, end, i%3)
					for name, got := range map[string][]string{
						"resumed": batchesOf(t, resumed, from, end, i%3), "rebuilt": batchesOf(t, rebuilt, from, end, i%3),
					} {
						if !slices.Equal(got, want) {
							t.Fatalf("%s: from %d to byte %d it is %v, should be %v", name, from, end, got, want)
						}
					}
				}
			}
		}
		resumed.Rest()
		if resumed.trail != nil || resumed.offsets.loaded != nil || resumed.times.loaded != nil {
			t.Error("it keeps what was for the start")
		}
	}
}

func presentOf(t *testing.T, disk vfs.FS) Present {
	t.Helper()
	entries, err := disk.ReadDir("d")
	check(t, err)
	listed, _ := List(entries)
	return listed[0].Present
}
