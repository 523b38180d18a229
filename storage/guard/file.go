package guard

import "ottla/storage/vfs"

// guardedFile is an open file in a guarded directory.
type guardedFile struct {
	vfs.File
	dir  *guarded
	name string
	now  readNow // nil: the file cannot
}

// readNow is a file that reads what is in memory, and tells false where it would have to wait for the disk.
type readNow interface {
	ReadNow(p []byte, offset int64) bool
}

func newGuardedFile(d *guarded, file vfs.File) *guardedFile {
	f := &guardedFile{File: file, dir: d, name: file.Name()}
	if d.leaves {
		f.now, _ = file.(readNow)
	}
	return f
}

// call begins an operation on the file.
func (f *guardedFile) call(kind vfs.Kind, act func(*Call)) *Call {
	c := begin(kind, f.name, act)
	c.file = f.File
	return c
}

// end runs the operation and gives its results. It leaves the call to whoever has it where it was given up.
func (f *guardedFile) end(c *Call) (int64, error) {
	if err := f.dir.run(c); err != nil {
		return 0, err
	}
	n, err := c.n, c.err
	c.free()
	return n, err
}

// ReadAt implements File. What is in memory is read at once; what the disk must give comes over memory of the call.
func (f *guardedFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.now != nil && f.dir.stalled.Load() == nil && f.now.ReadNow(p, offset) {
		return len(p), nil
	}
	c := f.call(vfs.OpRead, readAt)
	c.bytes, c.offset = p, offset
	if f.dir.leaves {
		c.bytes = c.memory(len(p))
	}
	if err := f.dir.run(c); err != nil {
		return 0, err
	}
	n, err := int(c.n), c.err
	if f.dir.leaves {
		copy(p, c.bytes[:n])
	}
	c.free()
	return n, err
}

// WriteAt implements File.
func (f *guardedFile) WriteAt(p []byte, offset int64) (int, error) {
	c := f.call(vfs.OpWrite, writeAt)
	c.bytes, c.offset = p, offset
	if f.dir.leaves {
		c.bytes = c.memory(len(p))
		copy(c.bytes, p)
	}
	n, err := f.end(c)
	return int(n), err
}

// WriteVectorAt implements File. The buffers are not copied; after ErrStalled nobody may change them.
func (f *guardedFile) WriteVectorAt(buffers [][]byte, offset int64) (int64, error) {
	c := f.call(vfs.OpWrite, writeVector)
	c.vector, c.offset = append(c.vector, buffers...), offset
	return f.end(c)
}

// Sync implements File.
func (f *guardedFile) Sync() error {
	_, err := f.end(f.call(vfs.OpSync, syncAll))
	return err
}

// SyncData implements File.
func (f *guardedFile) SyncData() error {
	_, err := f.end(f.call(vfs.OpSync, syncContent))
	return err
}

// SyncWhole is what vfs.SyncWhole uses.
func (f *guardedFile) SyncWhole() error {
	_, err := f.end(f.call(vfs.OpSyncFS, syncWhole))
	return err
}

// Truncate implements File.
func (f *guardedFile) Truncate(sizeBytes int64) error {
	c := f.call(vfs.OpTruncate, truncate)
	c.offset = sizeBytes
	_, err := f.end(c)
	return err
}

// Size implements File.
func (f *guardedFile) Size() (int64, error) { return f.end(f.call(vfs.OpStat, sizeOf)) }

// Close implements File. Where the directory was given up nobody waits for it: it comes after what is left behind.
func (f *guardedFile) Close() error {
	if err := f.dir.refusal(vfs.OpClose, f.name); err != nil {
		f.dir.runner.Later(func() { _ = f.File.Close() }) // nobody is there to be told
		return err
	}
	_, err := f.end(f.call(vfs.OpClose, closeFile))
	return err
}

func readAt(c *Call) {
	n, err := c.file.ReadAt(c.bytes, c.offset)
	c.n, c.err = int64(n), err
}

func writeAt(c *Call) {
	n, err := c.file.WriteAt(c.bytes, c.offset)
	c.n, c.err = int64(n), err
}

func writeVector(c *Call) { c.n, c.err = c.file.WriteVectorAt(c.vector, c.offset) }
func syncAll(c *Call)     { c.err = c.file.Sync() }
func syncContent(c *Call) { c.err = c.file.SyncData() }
func syncWhole(c *Call)   { c.err = vfs.SyncWhole(c.file) }
func truncate(c *Call)    { c.err = c.file.Truncate(c.offset) }
func sizeOf(c *Call)      { c.n, c.err = c.file.Size() }
func closeFile(c *Call)   { c.err = c.file.Close() }
