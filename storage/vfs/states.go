package vfs

import (
	"fmt"
	"slices"
)

// remains is what a power cut leaves of the unsynced content of one file.
type remains int8

const (
	dataLost  remains = iota // the size and the bytes of the platter
	dataKept                 // the newest size and bytes
	sizeAlone                // the newest size, the platter's bytes; what was never written is zero
	bytesOnly                // the newest bytes as far as the platter's size reaches
	halfKept                 // in the middle between the sizes, with the newest bytes
)

var remainsNames = [...]string{"lost", "kept", "its size without its bytes", "its bytes without its size", "half of it kept"}

// CrashStates visits the disks that a power cut at this moment may leave, a state of every class there is: all that is
// not synced kept or lost; each single change of a directory and each file's content lost while the rest is kept, or
// kept while the rest is lost; every prefix of the changes of directories, without content and with it; all entries
// without content; sizes without bytes, bytes without sizes, and halves, of all files and of each. State 0 is that
// with everything lost. The disks share nothing; they have new boot ids. It returns how many there were. Where
// nothing is unsynced there is one.
func (m *Mem) CrashStates(visit func(state string, left *Mem)) int {
	m.mu.Lock()
	changes, files := len(m.journal), m.unsyncedLocked()
	m.mu.Unlock()
	count := 0
	state := func(what string, change func(i int) bool, content func(file int) remains) {
		count++
		visit(what, m.crashAs(files, change, content))
	}
	all, none := func(int) bool { return true }, func(int) bool { return false }
	of := func(r remains) func(int) remains { return func(int) remains { return r } }
	state("all lost", none, of(dataLost))
	if changes+len(files) == 0 {
		return count
	}
	state("all kept", all, of(dataKept))
	for r := dataLost; r <= halfKept && len(files) > 0; r++ {
		if r != dataKept {
			state("entries kept, content "+remainsNames[r], all, of(r))
		}
	}
	for i := range changes {
		state(fmt.Sprintf("change %d lost", i), func(j int) bool { return j != i }, of(dataKept))
		if changes > 1 {
			state(fmt.Sprintf("only change %d kept", i), func(j int) bool { return j == i }, of(dataLost))
			state(fmt.Sprintf("changes up to %d kept", i), func(j int) bool { return j <= i }, of(dataLost))
			state(fmt.Sprintf("changes up to %d kept, with content", i), func(j int) bool { return j <= i }, of(dataKept))
		}
	}
	for f := range files {
		for r := dataLost; r <= halfKept; r++ {
			if r != dataKept && (len(files) > 1 || changes > 0) {
				state(fmt.Sprintf("file %d %s", f, remainsNames[r]), all, func(g int) remains { return pick(g == f, r, dataKept) })
			}
		}
		if len(files) > 1 {
			state(fmt.Sprintf("only file %d kept", f), all, func(g int) remains { return pick(g == f, dataKept, dataLost) })
		}
	}
	return count
}

func pick(is bool, yes, no remains) remains {
	if is {
		return yes
	}
	return no
}

// unsyncedLocked lists the files whose content is not wholly on the platter and to which some name leads or may lead
// after a crash, by the order of names.
func (m *Mem) unsyncedLocked() []*node {
	var list []*node
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if !n.isDirectory() {
			if int64(len(n.data)) != n.durableSize || len(n.undo) > 0 {
				list = append(list, n)
			}
			return
		}
		for _, name := range n.sortedNames() {
			walk(n.entries[name])
		}
		for _, name := range (&node{entries: n.durable}).sortedNames() {
			walk(n.durable[name])
		}
	}
	walk(m.root)
	for _, c := range m.journal {
		for _, l := range c.links {
			walk(l.target)
		}
	}
	return list
}

// crashAs is Crash with every choice given.
func (m *Mem) crashAs(files []*node, change func(i int) bool, content func(file int) remains) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.offspring()
	k.boots++
	c := cloner{copies: map[*node]*node{}, crash: true, durable: m.linksThatSurvive(change)}
	c.left = func(n *node) []byte {
		if at := slices.Index(files, n); at >= 0 {
			return n.leftAs(content(at))
		}
		return n.crashedData(nil)
	}
	k.root = c.node(m.root)
	k.used = k.root.usedBytes()
	return k
}

// leftAs is the content after a crash. Pages of which a Sync has failed stay lost.
func (n *node) leftAs(r remains) []byte {
	size := int64(len(n.data))
	switch r {
	case dataLost, bytesOnly:
		size = n.durableSize
	case halfKept:
		size = (size + n.durableSize) / 2
	}
	data := make([]byte, size)
	copy(data, n.data)
	for p, old := range n.undo { // each page apart: the order does not matter
		if r == dataLost || r == sizeAlone || old.lost {
			restore(data, p*pageBytes, 0, old.platter)
		}
	}
	return data
}
