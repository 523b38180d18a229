package quorum

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/vfs"
)

// DamagedError refuses a metadata directory: bytes that were once durable are
// not what they were. To cut them off could undo acknowledged changes of the
// cluster, so the directory is left as it is.
type DamagedError struct {
	File     string
	Position int64 // bytes from the start of the file
	Reason   string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s; the directory was left unchanged", e.File, e.Position, e.Reason)
}

// checkLog reads the segments that hold offsets from `from` on, before anything
// opens them for writing. This shell makes each batch durable before it begins
// the next, so only the last batch can be torn: an invalid stretch with a valid
// batch behind it is damage. trust narrows it further: after a clean stop
// nothing may be torn, and under the same boot (only the process died) the last
// batch may be short but not wrong.
func checkLog(fsys vfs.FS, dir string, from protocol.Offset, trust log.Trust) error {
	names, err := logFiles(fsys, dir, from)
	if err != nil {
		return err
	}
	for i, name := range names {
		content, err := vfs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		position, short := walk(content)
		if position == len(content) {
			continue
		}
		damaged := &DamagedError{File: name, Position: int64(position), Reason: "there is no valid batch"}
		switch {
		case i < len(names)-1:
			damaged.Reason += ", and a later segment exists"
			return damaged
		case trust == log.Clean:
			damaged.Reason += ", though the last stop was clean"
			return damaged
		case trust == log.SameBoot && !short:
			damaged.Reason += ", though the machine was not restarted since it was written"
			return damaged
		case validBatchIn(content[position+1:]):
			damaged.Reason += ", but valid ones follow"
			return damaged
		}
	}
	return nil
}

// logFiles lists the .log files from the one that holds offset from, in order.
func logFiles(fsys vfs.FS, dir string, from protocol.Offset) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		digits, isLog := strings.CutSuffix(entry.Name, ".log")
		base, err := strconv.ParseInt(digits, 10, 64)
		if !isLog || err != nil || entry.Dir {
			continue
		}
		if protocol.Offset(base) <= from {
			names = names[:0] // the ones before end at or below `from`
		}
		names = append(names, path.Join(dir, entry.Name))
	}
	return names, nil
}

// walk goes from batch to batch and gives the position of the first byte that
// is in no valid batch; short tells that the file ends within one.
func walk(content []byte) (position int, short bool) {
	rest := content
	for len(rest) > 0 {
		batch, after, err := record.Next(rest)
		if err != nil {
			return len(content) - len(rest), errors.Is(err, record.ErrShort)
		}
		if batch.CheckCRC() != nil {
			return len(content) - len(rest), false
		}
		rest = after
	}
	return len(content), false
}

// validBatchIn looks for a whole valid batch at any position.
func validBatchIn(content []byte) bool {
	for ; len(content) >= record.HeaderSize; content = content[1:] {
		if size, ok := record.SizeOf(content); !ok || size > len(content) || content[16] != record.Magic2 {
			continue
		}
		if batch, _, err := record.Next(content); err == nil && batch.CheckCRC() == nil {
			return true
		}
	}
	return false
}
