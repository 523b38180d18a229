package props

// Entry is one property of a file.
type Entry struct {
	Key, Value string
	// Line counts from 1 and names the physical line on which the entry that
	// won begins; 0 for entries that Set made.
	Line int
}

// Properties is an ordered set of properties. The zero value is empty and
// ready for Set. It is not safe for concurrent writers.
type Properties struct {
	entries []Entry
	index   map[string]int
}

// Len gives the number of different keys.
func (p *Properties) Len() int { return len(p.entries) }

// Get gives the value of a key, and whether there is one.
func (p *Properties) Get(key string) (string, bool) {
	at, ok := p.index[key]
	if !ok {
		return "", false
	}
	return p.entries[at].Value, true
}

// Line gives the line on which the key's value begins, or 0.
func (p *Properties) Line(key string) int {
	at, ok := p.index[key]
	if !ok {
		return 0
	}
	return p.entries[at].Line
}

// Set gives a key a value; a new key comes last.
func (p *Properties) Set(key, value string) { p.set(Entry{Key: key, Value: value}) }

func (p *Properties) set(entry Entry) {
	if at, ok := p.index[entry.Key]; ok {
		p.entries[at] = entry
		return
	}
	if p.index == nil {
		p.index = map[string]int{}
	}
	p.index[entry.Key] = len(p.entries)
	p.entries = append(p.entries, entry)
}

// Entries gives all properties in the order of their first appearance. The
// slice belongs to p.
func (p *Properties) Entries() []Entry { return p.entries }
