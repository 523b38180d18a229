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
func (m Map[K, V]) With(key K, value V) Map[K, V] {
	return Map[K, V]{m.compare, m.insert(m.root, key, value)}
}

// Without is the map with one entry less, or the same map if it is not there.
func (m Map[K, V]) Without(key K) Map[K, V] {
	if _, ok := m.Get(key); !ok {
		return m
	}
	return Map[K, V]{m.compare, m.remove(m.root, key)}
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

func (m Map[K, V]) insert(n *node[K, V], key K, value V) *node[K, V] {
	if n == nil {
		return &node[K, V]{key: key, value: value, size: 1}
	}
	switch order := m.compare(key, n.key); {
	case order < 0:
		return balance(n.key, n.value, m.insert(n.left, key, value), n.right)
	case order > 0:
		return balance(n.key, n.value, n.left, m.insert(n.right, key, value))
	}
	return &node[K, V]{key, value, n.size, n.left, n.right}
}

// remove takes out a key that is there.
func (m Map[K, V]) remove(n *node[K, V], key K) *node[K, V] {
	switch order := m.compare(key, n.key); {
	case order < 0:
		return balance(n.key, n.value, m.remove(n.left, key), n.right)
	case order > 0:
		return balance(n.key, n.value, n.left, m.remove(n.right, key))
	}
	switch {
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	least, right := removeLeast(n.right)
	return balance(least.key, least.value, n.left, right)
}

func removeLeast[K any, V comparable](n *node[K, V]) (least, rest *node[K, V]) {
	if n.left == nil {
		return n, n.right
	}
	least, left := removeLeast(n.left)
	return least, balance(n.key, n.value, left, n.right)
}

func join[K any, V comparable](key K, value V, left, right *node[K, V]) *node[K, V] {
	return &node[K, V]{key, value, left.len() + right.len() + 1, left, right}
}

// Two trees are in balance while neither weighs more than delta times the
// other; a single rotation mends it while the inner grandchild weighs less than
// ratio times the outer one. A weight is a size plus one.
const (
	delta = 3
	ratio = 2
)

// balance joins two trees of which one may have gained or lost one entry.
func balance[K any, V comparable](key K, value V, left, right *node[K, V]) *node[K, V] {
	leftWeight, rightWeight := left.len()+1, right.len()+1
	switch {
	case rightWeight > delta*leftWeight:
		inner, outer := right.left, right.right
		if inner.len()+1 < ratio*(outer.len()+1) {
			return join(right.key, right.value, join(key, value, left, inner), outer)
		}
		return join(inner.key, inner.value, join(key, value, left, inner.left), join(right.key, right.value, inner.right, outer))
	case leftWeight > delta*rightWeight:
		outer, inner := left.left, left.right
		if inner.len()+1 < ratio*(outer.len()+1) {
			return join(left.key, left.value, outer, join(key, value, inner, right))
		}
		return join(inner.key, inner.value, join(left.key, left.value, outer, inner.left), join(key, value, inner.right, right))
	}
	return join(key, value, left, right)
}
