package vfs

// Wish says what Survey is to find out about an entry of a directory.
type Wish int8

const (
	// Named: its name, and whether it is a directory.
	Named Wish = iota
	// Described: its size and time too.
	Described
	// Content: what is in it, beside its name, if it is small; neither size nor time.
	Content
)

// Survey lists a directory like FS.ReadDir, and finds out no more than what is wished for each name: an entry's size
// and time are zero otherwise. content is told what is in the files whose Content is wished; those that are not small,
// or cannot be read, are left to ReadFile, which tells why. A node with many partitions does this for each of them when
// it starts, where each question to the system counts.
func Survey(fsys FS, dir string, wish func(name string) Wish, content func(name string, data []byte)) ([]Entry, error) {
	if quick, ok := fsys.(interface {
		Survey(dir string, wish func(name string) Wish) ([]Entry, []Small, error)
	}); ok {
		entries, files, err := quick.Survey(dir, wish)
		for _, f := range files {
			content(f.Name, f.Data)
		}
		return entries, err
	}
	return fsys.ReadDir(dir)
}

// Small is the content of a small file.
type Small struct {
	Name string
	Data []byte
}

// Survey is what vfs.Survey uses.
func (osFS) Survey(dir string, wish func(name string) Wish) ([]Entry, []Small, error) {
	return survey(dir, wish)
}
