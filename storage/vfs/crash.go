package vfs

import (
	"io/fs"
	"slices"
)

// link is one entry of a directory that gets a new target; nil removes it.
type link struct {
	directory *node
	name      string
	target    *node
}

// change is what one call did to directories. It is durable as a whole or not at all: journalling file
// systems promise that for a rename, and without it no file could be replaced safely.
type change struct{ links []link }

// place is an entry without its target.
type place struct {
	directory *node
	name      string
}

// changeLocked applies links to what the process sees, and remembers that they are not durable.
func (m *Mem) changeLocked(links ...link) {
	for _, l := range links {
		set(l.directory.entries, l.name, l.target)
	}
	m.journal = append(m.journal, change{links})
}

func set(entries map[string]*node, name string, target *node) {
	if target == nil {
		delete(entries, name)
		return
	}
	entries[name] = target
}

// unlinkLocked stops counting the bytes of a file that lost its name; n may be nil.
func (m *Mem) unlinkLocked(n *node) {
	if n != nil && !n.isDirectory() {
		n.unlinked = true
		m.used -= int64(len(n.data))
	}
}

// SyncDir implements FS. A change that touched two directories becomes durable with the first of them, and
// takes the older changes of the same entries along.
func (m *Mem) SyncDir(name string) error {
	err := m.begin(Operation{Kind: OpSyncDir, Name: clean(name)})
	m.mu.Lock()
	defer m.mu.Unlock()
	var dir *node
	if err == nil {
		dir, err = m.find(name)
	}
	if err != nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: err}
	}
	needed := map[place]bool{}
	chosen := make([]bool, len(m.journal))
	for i, c := range slices.Backward(m.journal) {
		if chosen[i] = c.touches(dir, needed); chosen[i] {
			for _, l := range c.links {
				needed[place{l.directory, l.name}] = true
			}
		}
	}
	rest := m.journal[:0]
	for i, c := range m.journal {
		if !chosen[i] {
			rest = append(rest, c)
			continue
		}
		for _, l := range c.links {
			set(l.directory.durable, l.name, l.target)
		}
	}
	clear(m.journal[len(rest):])
	m.journal = rest
	return nil
}

func (c change) touches(dir *node, places map[place]bool) bool {
	for _, l := range c.links {
		if l.directory == dir || places[place{l.directory, l.name}] {
			return true
		}
	}
	return false
}

// SyncFS is what vfs.SyncFS uses. The disk is one file system.
func (m *Mem) SyncFS(dir string) error {
	if err := m.begin(Operation{Kind: OpSyncDir, Name: clean(dir)}); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.root.failTree()
		return &fs.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	m.SyncAll()
	return nil
}

// failTree is what a failed sync of everything leaves.
func (n *node) failTree() {
	if !n.isDirectory() {
		n.failSync()
	}
	for _, child := range n.entries {
		child.failTree()
	}
}

// SyncAll makes everything durable, as sync(1) does; it is no operation. For tests that prepare a disk.
func (m *Mem) SyncAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.journal {
		for _, l := range c.links {
			set(l.directory.durable, l.name, l.target)
		}
	}
	m.journal = nil
	m.root.syncTree()
}

func (n *node) syncTree() {
	if !n.isDirectory() {
		n.sync()
	}
	for _, child := range n.entries {
		child.syncTree() // the order does not matter: nothing is observed in between
	}
}

// Kill returns the disk as the death of the process at this moment leaves it: the page cache whole, locks
// released, the same boot id. What was not synced is still not durable.
func (m *Mem) Kill() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := cloner{copies: map[*node]*node{}}
	k := m.offspring()
	k.root = c.node(m.root)
	k.used = m.used
	for _, ch := range m.journal {
		links := make([]link, len(ch.links))
		for i, l := range ch.links {
			links[i] = link{c.node(l.directory), l.name, c.node(l.target)}
		}
		k.journal = append(k.journal, change{links})
	}
	return k
}

func (m *Mem) offspring() *Mem {
	return &Mem{
		random: m.random, clock: m.clock, number: m.number, boots: m.boots, capacity: m.capacity,
		locked: map[*node]bool{},
	}
}

// Crash returns the disk as a power cut at this moment may leave it: all that was synced, and of the rest
// what the disk's random function chooses. The boot id is a new one.
func (m *Mem) Crash() *Mem { return m.CrashWith(m.random) }

// CrashWith is Crash with another source of choices; nil loses everything that was not synced. The clone
// keeps the source of the disk.
func (m *Mem) CrashWith(random func() uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.offspring()
	k.boots++
	c := cloner{copies: map[*node]*node{}, crash: true, random: random, durable: m.survivingLinks(random)}
	k.root = c.node(m.root)
	k.used = k.root.usedBytes()
	return k
}

// survivingLinks chooses which changes of directories reached the platter, and returns the entries of the
// directories that they touch. A change that builds on a lost one, by sharing an entry with it, is lost too.
func (m *Mem) survivingLinks(random func() uint64) map[*node]map[string]*node {
	return m.linksThatSurvive(keeper(random, len(m.journal)))
}

func (m *Mem) linksThatSurvive(keep func(i int) bool) map[*node]map[string]*node {
	durable := map[*node]map[string]*node{}
	lost := map[place]bool{}
	for i, c := range m.journal {
		kept := keep(i) // asked for every change, so that the number of choices does not depend on them
		for _, l := range c.links {
			kept = kept && !lost[place{l.directory, l.name}]
		}
		for _, l := range c.links {
			if !kept {
				lost[place{l.directory, l.name}] = true
				continue
			}
			if durable[l.directory] == nil {
				durable[l.directory] = make(map[string]*node, len(l.directory.durable)+1)
				for name, n := range l.directory.durable {
					durable[l.directory][name] = n
				}
			}
			set(durable[l.directory], l.name, l.target)
		}
	}
	return durable
}

// keeper chooses how count things survive: none, all, a prefix, or each by the toss of a coin.
func keeper(random func() uint64, count int) func(i int) bool {
	if random == nil || count == 0 {
		return func(int) bool { return false }
	}
	switch random() % 4 {
	case 0:
		return func(int) bool { return false }
	case 1:
		return func(int) bool { return true }
	case 2:
		prefix := int(random() % uint64(count+1))
		return func(i int) bool { return i < prefix }
	default:
		return func(int) bool { return random()&1 == 1 }
	}
}

// cloner copies nodes, each once.
type cloner struct {
	copies  map[*node]*node
	crash   bool
	random  func() uint64
	durable map[*node]map[string]*node // directories whose durable entries were decided anew
	left    func(n *node) []byte       // decides the content instead of random, if set
}

func (c *cloner) node(n *node) *node {
	if n == nil {
		return nil
	}
	if k, ok := c.copies[n]; ok {
		return k
	}
	k := &node{modified: n.modified}
	c.copies[n] = k
	switch {
	case n.isDirectory() && c.crash:
		c.crashDirectory(n, k)
	case n.isDirectory():
		k.entries = c.links(n.entries)
		k.durable = c.links(n.durable)
	case c.crash:
		if c.left != nil {
			k.data = c.left(n)
		} else {
			k.data = n.crashedData(c.random)
		}
		k.durableSize = int64(len(k.data))
	default:
		k.data = slices.Clone(n.data)
		k.durableSize, k.unlinked = n.durableSize, n.unlinked
		k.undo = make(map[int64]undoPage, len(n.undo))
		for p, old := range n.undo {
			k.undo[p] = old // platter is never changed in place
		}
	}
	return k
}

func (c *cloner) crashDirectory(n, k *node) {
	entries, decided := c.durable[n]
	if !decided {
		entries = n.durable
	}
	k.entries = c.links(entries)
	k.durable = make(map[string]*node, len(k.entries))
	for name, child := range k.entries {
		k.durable[name] = child
	}
}

// links copies entries in the order of their names, so that choices are made in a fixed order.
func (c *cloner) links(entries map[string]*node) map[string]*node {
	copies := make(map[string]*node, len(entries))
	for _, name := range (&node{entries: entries}).sortedNames() {
		copies[name] = c.node(entries[name])
	}
	return copies
}

// crashedData chooses what is left of a file: a size between the durable one and the newest, and under it,
// page by page, the platter's content, the newest, or the newest up to some sector and then the platter's.
func (n *node) crashedData(random func() uint64) []byte {
	size := int64(len(n.data))
	if size == n.durableSize && len(n.undo) == 0 {
		return slices.Clone(n.data)
	}
	left := crashedSize(random, n.durableSize, size)
	data := make([]byte, left)
	copy(data, n.data)
	pages := make([]int64, 0, len(n.undo))
	for p := range n.undo {
		pages = append(pages, p)
	}
	slices.Sort(pages)
	keep := keeper(random, len(pages))
	for i, p := range pages {
		old := n.undo[p]
		kept := keep(i) && !old.lost
		tornAt := int64(0) // from here on the platter's content
		if kept {
			tornAt = pageBytes
			if random()%8 == 0 {
				tornAt = int64(random()%(pageBytes/sectorBytes)) * sectorBytes
			}
		}
		restore(data, p*pageBytes, tornAt, old.platter)
	}
	return data
}

// crashedSize chooses a size between two; the page cache may have written back any part of an extension.
func crashedSize(random func() uint64, durable, newest int64) int64 {
	if random == nil || durable == newest {
		return durable
	}
	low, high := min(durable, newest), max(durable, newest)
	switch random() % 3 {
	case 0:
		return durable
	case 1:
		return newest
	default:
		return low + int64(random()%uint64(high-low+1))
	}
}

// restore puts the platter's content back from a place in a page to its end.
func restore(data []byte, pageStart, from int64, platter []byte) {
	start, end := min(pageStart+from, int64(len(data))), min(pageStart+pageBytes, int64(len(data)))
	clear(data[start:end])
	if from < int64(len(platter)) {
		copy(data[start:end], platter[from:])
	}
}

func (n *node) usedBytes() int64 {
	used := int64(len(n.data))
	for _, child := range n.entries {
		used += child.usedBytes()
	}
	return used
}
