package metadata

import (
	"cmp"
	"maps"
	"slices"
	"testing"
)

// dice is a small generator of its own (splitmix64), so that a failing run is
// the same run again.
type dice uint64

func (d *dice) roll(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

func checkTree(t *testing.T, n *node[int, int]) {
	t.Helper()
	if n == nil {
		return
	}
	if n.size != n.left.len()+n.right.len()+1 {
		t.Fatalf("a node of size %d has subtrees of %d and %d", n.size, n.left.len(), n.right.len())
	}
	if l, r := n.left.len()+1, n.right.len()+1; l > maxWeightRatio*r || r > maxWeightRatio*l {
		t.Fatalf("subtrees of %d and %d are out of balance", n.left.len(), n.right.len())
	}
	checkTree(t, n.left)
	checkTree(t, n.right)
}

// TestMapAgainstModel does random changes on a Map and on a plain map, keeps
// some versions, and compares all of them at the end.
func TestMapAgainstModel(t *testing.T) {
	type version struct {
		m     Map[int, int]
		model map[int]int
	}
	for seed := range 20 {
		random := dice(seed)
		m, model := NewMap[int, int](cmp.Compare[int]), map[int]int{}
		var kept []version
		by := new(editor)
		for step := range 2000 {
			key := random.roll(300)
			switch random.roll(10) {
			case 0, 1:
				m, model[key] = m.With(key, step), step
			case 2, 3, 4, 5:
				m, model[key] = m.with(by, key, step), step
			case 6:
				m = m.Without(key)
				delete(model, key)
			default:
				m = m.without(by, key)
				delete(model, key)
			}
			if random.roll(100) == 0 { // whoever keeps a version gives its editor up
				kept = append(kept, version{m, maps.Clone(model)})
				by = new(editor)
			}
		}
		kept = append(kept, version{m, model})
		for i, v := range kept {
			checkTree(t, v.m.root)
			if v.m.Len() != len(v.model) || !maps.Equal(maps.Collect(v.m.All()), v.model) {
				t.Fatalf("seed %d: version %d is not what it was", seed, i)
			}
			if !slices.IsSorted(slices.Collect(firsts(v.m.All()))) {
				t.Fatalf("seed %d: version %d is out of order", seed, i)
			}
			for from := -1; from <= 300; from += 37 {
				for key := range v.m.From(from) {
					if key < from {
						t.Fatalf("from %d on comes %d", from, key)
					}
				}
				want := 0
				for key := range v.model {
					if key >= from {
						want++
					}
				}
				if got := len(maps.Collect(v.m.From(from))); got != want {
					t.Fatalf("from %d on there are %d keys and not %d", from, got, want)
				}
			}
			diffAgainstModel(t, kept[random.roll(len(kept))].m, v.m)
		}
	}
}

func firsts[K, V any](entries func(func(K, V) bool)) func(func(K) bool) {
	return func(yield func(K) bool) { entries(func(key K, _ V) bool { return yield(key) }) }
}

func diffAgainstModel(t *testing.T, before, after Map[int, int]) {
	t.Helper()
	rebuilt := maps.Collect(before.All())
	last := -1
	diffMaps(before, after, func(key, old int, was bool, now int, is bool) {
		if key <= last {
			t.Fatalf("key %d is reported after %d", key, last)
		}
		last = key
		if have, ok := rebuilt[key]; ok != was || was && have != old || was && is && old == now || !was && !is {
			t.Fatalf("key %d: reported as %d,%t to %d,%t", key, old, was, now, is)
		}
		if is {
			rebuilt[key] = now
		} else {
			delete(rebuilt, key)
		}
	})
	if !maps.Equal(rebuilt, maps.Collect(after.All())) {
		t.Fatal("the differences do not add up")
	}
}

// TestDiffVisitsOnlyChanges counts the nodes opened between a large map and its
// near descendant.
func TestDiffVisitsOnlyChanges(t *testing.T) {
	m := NewMap[int, int](func(a, b int) int { return cmp.Compare(a, b) })
	for i := range 100_000 {
		m = m.With(i, i)
	}
	compared := 0
	counted := Map[int, int]{func(a, b int) int { compared++; return cmp.Compare(a, b) }, m.root}
	after := counted.With(500, 0).With(99_999, 0).Without(70_000)
	compared = 0
	reported := 0
	diffMaps(counted, after, func(int, int, bool, int, bool) { reported++ })
	if reported != 3 || compared > 500 {
		t.Errorf("%d changes were found with %d comparisons", reported, compared)
	}
}

func TestMapIsBalancedInEveryOrder(t *testing.T) {
	up, down := NewMap[int, int](cmp.Compare[int]), NewMap[int, int](cmp.Compare[int])
	for i := range 5000 {
		up, down = up.With(i, i), down.With(5000-i, i)
	}
	checkTree(t, up.root)
	checkTree(t, down.root)
	for i := range 4000 {
		up, down = up.Without(i), down.Without(5000-i)
	}
	checkTree(t, up.root)
	checkTree(t, down.root)
	if up.Len() != 1000 || down.Len() != 1000 || up.Without(1).Len() != 1000 {
		t.Errorf("%d and %d entries are left", up.Len(), down.Len())
	}
}
