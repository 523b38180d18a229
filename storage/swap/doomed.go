package swap

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// Doomed are files of one log that have their .deleted suffix and wait for their end. The caller serialises all calls.
type Doomed struct {
	list []doomed
}

type doomed struct {
	at      time.Time // zero: the delay begins at the next Bury
	segment *segment.Segment
	file    string
}

// Segment gives a segment's files their .deleted suffix, or removes them at once where the longer name finds no room. After an
// error it may be called again.
func (d *Doomed) Segment(s *segment.Segment) error {
	err := s.MarkDeleted()
	if vfs.NoSpace(err) {
		return s.Remove()
	}
	if err == nil {
		d.list = append(d.list, doomed{segment: s})
	}
	return err
}

// File does the same with a file; one that is not there is no error.
func (d *Doomed) File(fsys vfs.FS, name string) error {
	gone := name + segment.DeletedSuffix
	err := fsys.Rename(name, gone)
	if vfs.NoSpace(err) {
		err = fsys.Remove(name)
	} else if err == nil {
		d.list = append(d.list, doomed{file: path.Clean(gone)})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Bury removes the files whose delay is over.
func (d *Doomed) Bury(fsys vfs.FS, now time.Time, delay time.Duration) error {
	var errs []error
	d.list = slices.DeleteFunc(d.list, func(f doomed) bool {
		if f.at.IsZero() || f.at.After(now) {
			return false
		}
		errs = append(errs, f.remove(fsys))
		return true
	})
	for i := range d.list {
		if d.list[i].at.IsZero() {
			d.list[i].at = now.Add(delay)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove deleted files: %w", err)
	}
	return nil
}

// Clear removes all files at once.
func (d *Doomed) Clear(fsys vfs.FS) error {
	var errs []error
	for i := range d.list {
		errs = append(errs, d.list[i].remove(fsys))
	}
	d.list = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove deleted files: %w", err)
	}
	return nil
}

func (f *doomed) remove(fsys vfs.FS) error {
	if f.segment != nil {
		return f.segment.Remove()
	}
	if err := fsys.Remove(f.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Next is when Bury has something to do; zero: never.
func (d *Doomed) Next() (next time.Time) {
	for i, f := range d.list {
		if i == 0 || f.at.Before(next) {
			next = f.at
		}
	}
	return next
}

// Segments are those among them.
func (d *Doomed) Segments() (segments []*segment.Segment) {
	for _, f := range d.list {
		if f.segment != nil {
			segments = append(segments, f.segment)
		}
	}
	return segments
}

// Moved tells that the files lie in another directory now; of its Segments, who moved them told.
func (d *Doomed) Moved(dir string) {
	for i := range d.list {
		if d.list[i].segment == nil {
			d.list[i].file = path.Join(dir, path.Base(d.list[i].file))
		}
	}
}
