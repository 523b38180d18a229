package guard

import "ottla/storage/vfs"

// surveyed is what a Survey gives.
type surveyed struct {
	entries []vfs.Entry
	files   []vfs.Small
}

// Survey is what vfs.Survey uses: one operation for all that it asks for.
func (g *FS) Survey(dir string, wish func(name string) vfs.Wish) ([]vfs.Entry, []vfs.Small, error) {
	found, err := onPath(g, vfs.OpReadDir, dir, func() (surveyed, error) {
		var s surveyed
		var err error
		s.entries, err = vfs.Survey(g.fs, dir, wish, func(name string, data []byte) { s.files = append(s.files, vfs.Small{Name: name, Data: data}) })
		return s, err
	}, nil)
	return found.entries, found.files, err
}
