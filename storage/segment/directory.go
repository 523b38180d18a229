package segment

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"ottla/storage/vfs"
)

// Directory is what a partition's directory holds: of the files that segments are made of also the sizes and times, and of
// some small files the content.
type Directory struct {
	Entries []vfs.Entry // by name; for Tidy and List

	fs    vfs.FS
	path  string
	small map[string][]byte
}

// ReadDirectory finds out what a partition's directory holds. What is in the files named whole comes along if it is little.
func ReadDirectory(fsys vfs.FS, dir string, whole ...string) (Directory, error) {
	d := Directory{fs: fsys, path: dir}
	wish := func(name string) vfs.Wish {
		switch {
		case slices.Contains(whole, name):
			return vfs.Content
		case ofSegment(name):
			return vfs.Described
		}
		return vfs.Named
	}
	var err error
	d.Entries, err = vfs.Survey(fsys, dir, wish, func(name string, data []byte) {
		if d.small == nil {
			d.small = map[string][]byte{}
		}
		d.small[name] = data
	})
	return d, err
}

// ofSegment tells the names of a segment's files, with whatever suffix they have besides.
func ofSegment(name string) bool {
	_, suffix, ok := ParseName(name)
	return ok && slices.ContainsFunc([]string{LogSuffix, IndexSuffix, TimeIndexSuffix, TxnIndexSuffix}, func(kind string) bool {
		return strings.HasPrefix(suffix, kind)
	})
}

// Content gives what is in a file; fs.ErrNotExist, wrapped, if there was none.
func (d *Directory) Content(name string) ([]byte, error) {
	if data := d.small[name]; data != nil {
		return data, nil
	}
	file := path.Join(d.path, name)
	_, found := slices.BinarySearchFunc(d.Entries, name, func(e vfs.Entry, name string) int { return strings.Compare(e.Name, name) })
	if !found {
		return nil, &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}
	}
	return vfs.ReadFile(d.fs, file)
}
