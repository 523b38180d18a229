package logdir

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// FailedFile is ours: other directories of the node that failed and could not be written any more, one id a line. A boot id
// that is still there must not be believed: what the kernel could not write it may have dropped.
const FailedFile = "ottla-failed-directories"

// ReadFailed gives the ids in a directory's FailedFile. What is no id is left out.
func ReadFailed(fsys vfs.FS, dir string) ([]protocol.DirectoryID, error) {
	data, err := vfs.ReadFile(fsys, path.Join(dir, FailedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []protocol.DirectoryID
	for line := range strings.Lines(string(data)) {
		if id, err := protocol.ParseUUID(strings.TrimSpace(line)); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// WriteFailed replaces a directory's FailedFile durably; without ids there is none.
func WriteFailed(fsys vfs.FS, dir string, ids []protocol.DirectoryID) error {
	if len(ids) == 0 {
		return RemoveDurably(fsys, path.Join(dir, FailedFile))
	}
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(id.String() + "\n")
	}
	return vfs.WriteFileAtomic(fsys, path.Join(dir, FailedFile), []byte(text.String()))
}
