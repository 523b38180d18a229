package vfs

import (
	"fmt"
	"path"
	"sync"
)

// Kind is the kind of an operation.
type Kind int8

// The kinds of operations that a hook sees.
const (
	OpOpen   Kind = iota // an existing file is opened; O_TRUNC is followed by an OpTruncate
	OpCreate             // a file that did not exist is opened with O_CREATE
	OpRead
	OpWrite
	OpTruncate
	OpSync // Sync and SyncData
	OpSyncDir
	OpRename
	OpRemove // once for each file and directory that RemoveAll removes
	OpMkdir  // once for each directory that MkdirAll makes
	OpReadDir
	OpStat
	OpLock
	OpClose
	OpUsage  // seen by package guard only
	OpSyncFS // the same
)

var kindNames = [...]string{
	"open", "create", "read", "write", "truncate", "sync", "syncdir", "rename", "remove", "mkdir", "readdir",
	"stat", "lock", "close", "statfs", "syncfs",
}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", int8(k))
	}
	return kindNames[k]
}

// Changes reports whether the operation can change what a later crash leaves on the disk.
func (k Kind) Changes() bool {
	switch k {
	case OpCreate, OpWrite, OpTruncate, OpSync, OpSyncDir, OpRename, OpRemove, OpMkdir:
		return true
	default:
		return false
	}
}

// Operation is one call that reached a Mem.
type Operation struct {
	Number  int64 // counts from 1 over the life of the disk; a clone counts on from its origin
	Kind    Kind
	Name    string // the file or directory; for OpRename the old name
	NewName string // OpRename only
	Offset  int64  // OpRead and OpWrite; for OpTruncate the new size
	Length  int64  // OpRead and OpWrite, bytes
}

// String is one line of a trace.
func (o Operation) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("%d %v %s -> %s", o.Number, o.Kind, o.Name, o.NewName)
	case OpRead, OpWrite:
		return fmt.Sprintf("%d %v %s @%d +%d", o.Number, o.Kind, o.Name, o.Offset, o.Length)
	case OpTruncate:
		return fmt.Sprintf("%d %v %s to %d", o.Number, o.Kind, o.Name, o.Offset)
	default:
		return fmt.Sprintf("%d %v %s", o.Number, o.Kind, o.Name)
	}
}

// PartialWriteError, returned by a hook for OpWrite, lets the first Bytes bytes be written before the write
// fails with Err, as a full disk does.
type PartialWriteError struct {
	Bytes int64
	Err   error
}

func (e *PartialWriteError) Error() string {
	return fmt.Sprintf("only %d bytes were written: %v", e.Bytes, e.Err)
}

func (e *PartialWriteError) Unwrap() error { return e.Err }

// Fault is one line of a script of faults.
type Fault struct {
	Kinds   []Kind // none means all
	Pattern string // path.Match on the operation's Name or on its base name; "" matches all
	Skip    int    // so many operations that match pass first
	Times   int    // so many fail then; 0 means all
	Err     error
}

// Script returns a hook that makes operations fail as the faults say; the first fault that applies decides.
// The hook may be used by several goroutines.
func Script(faults ...Fault) func(op Operation) error {
	var mu sync.Mutex
	seen := make([]int, len(faults))
	return func(op Operation) error {
		mu.Lock()
		defer mu.Unlock()
		for i, f := range faults {
			if !f.matches(op) {
				continue
			}
			seen[i]++
			if n := seen[i] - f.Skip; n > 0 && (f.Times == 0 || n <= f.Times) {
				return f.Err
			}
		}
		return nil
	}
}

func (f Fault) matches(op Operation) bool {
	if f.Pattern != "" {
		whole, _ := path.Match(f.Pattern, op.Name) // a bad pattern matches nothing
		base, _ := path.Match(f.Pattern, path.Base(op.Name))
		if !whole && !base {
			return false
		}
	}
	for _, k := range f.Kinds {
		if k == op.Kind {
			return true
		}
	}
	return len(f.Kinds) == 0
}
