package segment

import "ottla/storage/vfs"

// FileCache bounds the open descriptors of all segments of a node: the least recently used files that nobody
// has pinned are closed. It is safe for concurrent use.
type FileCache struct {
	fs  vfs.FS
	max int
}

// NewFileCache makes a cache that keeps about max files open; pinned files are never closed, so a burst of
// readers can pass max for a while.
func NewFileCache(fs vfs.FS, max int) *FileCache { panic("todo") }

// Open counts the open files.
func (c *FileCache) Open() int { panic("todo") }

// CloseIdle closes the files that are not pinned and were not used since the last call. Called every minute
// or so, it leaves idle partitions without an open file.
func (c *FileCache) CloseIdle() { panic("todo") }
