package metadata

// diffMaps reports, in key order, the keys whose values are not identical in
// two maps of the same order. A subtree that both share is not entered, so
// between a map and its near descendant this costs about what the changes did.
// was and is tell in which of the two the key is.
func diffMaps[K any, V comparable](before, after Map[K, V], report func(key K, old V, was bool, new V, is bool)) {
	var none V
	a, b := cursor[K, V]{}, cursor[K, V]{}
	a.push(before.root)
	b.push(after.root)
	for len(a.stack) > 0 && len(b.stack) > 0 {
		x, y := a.top(), b.top()
		switch {
		case x.node == y.node && x.whole == y.whole:
			a.pop()
			b.pop()
		case x.whole && (!y.whole || x.node.size >= y.node.size):
			a.open()
		case y.whole:
			b.open()
		default:
			compare := after.compare
			if compare == nil {
				compare = before.compare
			}
			switch order := compare(x.node.key, y.node.key); {
			case order < 0:
				report(x.node.key, x.node.value, true, none, false)
				a.pop()
			case order > 0:
				report(y.node.key, none, false, y.node.value, true)
				b.pop()
			default:
				if x.node.value != y.node.value {
					report(x.node.key, x.node.value, true, y.node.value, true)
				}
				a.pop()
				b.pop()
			}
		}
	}
	a.rest(func(n *node[K, V]) { report(n.key, n.value, true, none, false) })
	b.rest(func(n *node[K, V]) { report(n.key, none, false, n.value, true) })
}

// cursor goes through a tree in order, opening a subtree only when asked to.
type cursor[K any, V comparable] struct{ stack []item[K, V] }

// item is a whole subtree, or only the entry at its root.
type item[K any, V comparable] struct {
	node  *node[K, V]
	whole bool
}

func (c *cursor[K, V]) push(n *node[K, V]) {
	if n != nil {
		c.stack = append(c.stack, item[K, V]{n, true})
	}
}

func (c *cursor[K, V]) top() item[K, V] { return c.stack[len(c.stack)-1] }

func (c *cursor[K, V]) pop() { c.stack = c.stack[:len(c.stack)-1] }

// open replaces the subtree on top by its parts.
func (c *cursor[K, V]) open() {
	n := c.top().node
	c.pop()
	c.push(n.right)
	c.stack = append(c.stack, item[K, V]{n, false})
	c.push(n.left)
}

func (c *cursor[K, V]) rest(visit func(*node[K, V])) {
	for len(c.stack) > 0 {
		if c.top().whole {
			c.open()
			continue
		}
		visit(c.top().node)
		c.pop()
	}
}
