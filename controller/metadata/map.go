package metadata

import "iter"

// Map is a persistent ordered map: With and Without give a new map and leave
// the old one as it was; the two share all but the O(log n) nodes on one path.
// Iteration is in key order, the same for the same content. It is a
// weight-balanced tree (Adams; with the parameters 3 and 2 that Hirai and
// Yamamoto proved right): the weights give Len for free, and with them Diff can
// tell two subtrees of equal size that may be shared.
//
// A hash trie would be flatter, but is ordered by hash; what leaves the
// controller has to be in one order everywhere.
type Map[K any, V comparable] struct {
	compare func(a, b K) int
	root    *node[K, V]
}

type node[K any, V comparable] struct {
	key         K
	value       V
	size        int
	left, right *node[K, V]
	owner       *editor
}

// NewMap makes an empty map ordered by compare.
func NewMap[K any, V comparable](compare func(a, b K) int) Map[K, V] {
	return Map[K, V]{compare: compare}
}

// Len counts the entries, in O(1).
func (m Map[K, V]) Len() int { return m.root.len() }

// Get finds the value of a key.
func (m Map[K, V]) Get(key K) (value V, ok bool) {
	for n := m.root; n != nil; {
		switch order := m.compare(key, n.key); {
		case order < 0:
			n = n.left
		case order > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return value, false
}

// With is the map with one entry set.
func (m Map[K, V]) With(key K, value V) Map[K, V] { return m.with(new(editor), key, value) }

// Without is the map with one entry less, or the same map if it is not there.
func (m Map[K, V]) Without(key K) Map[K, V] { return m.without(new(editor), key) }

// editor owns the nodes that it made: until it is given up it may change them
// in place, for no one else has seen them. A run of changes by one editor copies
// each node once, which makes loading a large cluster several times as fast as
// a With for every record did.
type editor struct{ _ byte }

// with is With by an editor. The map that was must not be used any more, unless
// it is from before the editor.
func (m Map[K, V]) with(by *editor, key K, value V) Map[K, V] {
	return Map[K, V]{m.compare, m.insert(by, m.root, key, value)}
}

// without is Without by an editor.
func (m Map[K, V]) without(by *editor, key K) Map[K, V] {
	if _, ok := m.Get(key); !ok {
		return m
	}
	return Map[K, V]{m.compare, m.remove(by, m.root, key)}
}

// All goes through the entries in the order of their keys.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.walk(yield) }
}

// From goes through the entries whose keys are not below the one given.
func (m Map[K, V]) From(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.walkFrom(m.root, key, yield) }
}

func (m Map[K, V]) walkFrom(n *node[K, V], key K, yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	if m.compare(n.key, key) < 0 {
		return m.walkFrom(n.right, key, yield)
	}
	return m.walkFrom(n.left, key, yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (n *node[K, V]) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

// own gives a node that the editor may change: the node itself or a copy.
func (n *node[K, V]) own(by *editor) *node[K, V] {
	if n.owner == by {
		return n
	}
	owned := *n
	owned.owner = by
	return &owned
}

func (m Map[K, V]) insert(by *editor, n *node[K, V], key K, value V) *node[K, V] {
	if n == nil {
		return &node[K, V]{key: key, value: value, size: 1, owner: by}
	}
	n = n.own(by)
	switch order := m.compare(key, n.key); {
	case order < 0:
		n.left = m.insert(by, n.left, key, value)
	case order > 0:
		n.right = m.insert(by, n.right, key, value)
	default:
		n.value = value
		return n
	}
	return n.balance(by)
}

// remove takes out a key that is there.
func (m Map[K, V]) remove(by *editor, n *node[K, V], key K) *node[K, V] {
	order := m.compare(key, n.key)
	if order == 0 {
		switch {
		case n.left == nil:
			return n.right
		case n.right == nil:
			return n.left
		}
	}
	n = n.own(by)
	switch {
	case order < 0:
		n.left = m.remove(by, n.left, key)
	case order > 0:
		n.right = m.remove(by, n.right, key)
	default:
		least := n.right
		for least.left != nil {
			least = least.left
		}
		n.key, n.value = least.key, least.value
		n.right = n.right.removeLeast(by)
	}
	return n.balance(by)
}

func (n *node[K, V]) removeLeast(by *editor) *node[K, V] {
	if n.left == nil {
		return n.right
	}
	n = n.own(by)
	n.left = n.left.removeLeast(by)
	return n.balance(by)
}

// Two trees are in balance while neither weighs more than maxWeightRatio times
// the other; a single rotation mends it while the inner grandchild weighs less
// than singleRotationRatio times the outer one. A weight is a size plus one.
const (
	maxWeightRatio      = 3
	singleRotationRatio = 2
)

func (n *node[K, V]) weight() int { return n.len() + 1 }

// balance mends an owned node, one of whose subtrees may have gained or lost
// one entry.
func (n *node[K, V]) balance(by *editor) *node[K, V] {
	switch {
	case n.right.weight() > maxWeightRatio*n.left.weight():
		n.right = n.right.own(by)
		if n.right.left.weight() >= singleRotationRatio*n.right.right.weight() {
			n.right.left = n.right.left.own(by)
			n.right = n.right.rotateRight()
		}
		return n.rotateLeft()
	case n.left.weight() > maxWeightRatio*n.right.weight():
		n.left = n.left.own(by)
		if n.left.right.weight() >= singleRotationRatio*n.left.left.weight() {
			n.left.right = n.left.right.own(by)
			n.left = n.left.rotateLeft()
		}
		return n.rotateRight()
	}
	n.resize()
	return n
}

func (n *node[K, V]) resize() { n.size = n.left.len() + n.right.len() + 1 }

// rotateLeft lifts the right child over a node; both are owned.
func (n *node[K, V]) rotateLeft() *node[K, V] {
	top := n.right
	n.right, top.left = top.left, n
	n.resize()
	top.resize()
	return top
}

// rotateRight lifts the left child over a node; both are owned.
func (n *node[K, V]) rotateRight() *node[K, V] {
	top := n.left
	n.left, top.right = top.right, n
	n.resize()
	top.resize()
	return top
}
