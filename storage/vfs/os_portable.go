//go:build !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// bootID is unknown here, so every start after an unclean stop checks all that was not synced.
func bootID() string { return "" }

func syncData(f *osFile) error { return f.Sync() }

func writeVectorAt(f *osFile, buffers [][]byte, offset int64) (int64, error) {
	return writeEach(f, buffers, offset)
}

func readDir(name string) ([]Entry, error) {
	found, err := os.ReadDir(name) // sorted by name
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the directory was read
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entryOf(info))
	}
	return entries, nil
}

func survey(name string, _ func(name string) Wish) ([]Entry, []Small, error) {
	entries, err := readDir(name)
	return entries, nil, err
}

func openFile(name string, flag int) (*os.File, error) { return os.OpenFile(name, flag, fileMode) }

func readFile(name string) ([]byte, error) { return os.ReadFile(name) }

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func syncFS(string) error { return errors.ErrUnsupported }

func syncWhole(*osFile) error { return errors.ErrUnsupported }
