package offline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// mostGroupBytes is what a batch of group records may expand to, far more than a coordinator writes at once; a larger one
// is passed over.
const mostGroupBytes = 64 << 20

// UnservedGroups are the groups of kinds that are not served, by name.
type UnservedGroups struct{ Share, Streams []string }

// groupLook gathers which groups there are: a group is there when the last record of its key is no tombstone.
type groupLook struct {
	fsys           vfs.FS
	pool           *compress.Pool
	share, streams map[string]bool
}

// LookAtGroups reads the records of __consumer_offsets in the directories, as far as they can be read: what is damaged
// there, a start tells.
func LookAtGroups(fsys vfs.FS, directories []Looked) (UnservedGroups, error) {
	l := &groupLook{fsys: fsys, pool: compress.NewPool(), share: map[string]bool{}, streams: map[string]bool{}}
	for _, directory := range directories {
		for _, tp := range directory.Partitions {
			if tp.Topic != protocol.ConsumerOffsetsTopic {
				continue
			}
			if err := l.partition(path.Join(directory.Path, tp.String())); err != nil {
				return UnservedGroups{}, fmt.Errorf("cannot look for groups in %s: %w", tp, err)
			}
		}
	}
	return UnservedGroups{Share: slices.Sorted(maps.Keys(l.share)), Streams: slices.Sorted(maps.Keys(l.streams))}, nil
}

func (l *groupLook) partition(dir string) error {
	entries, err := l.fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	segments, _ := segment.List(entries)
	for _, one := range segments {
		if err := l.segment(path.Join(dir, segment.FileName(one.Base, segment.LogSuffix))); err != nil {
			return err
		}
	}
	return nil
}

func (l *groupLook) segment(file string) error {
	walk, err := batches.Open(l.fsys, file)
	if err != nil {
		return err
	}
	defer walk.Close()
	for {
		found, err := walk.Next()
		var stop *batches.Misplaced
		if errors.Is(err, io.EOF) || errors.As(err, &stop) {
			return nil
		}
		if err != nil {
			return err
		}
		if found.Header.IsControl() || found.Header.IsTransactional() {
			continue // markers, and offsets
		}
		b, err := walk.Load(found)
		if err != nil {
			return err
		}
		for r, err := range record.Records(b, l.pool, mostGroupBytes) {
			if err != nil {
				break
			}
			l.note(r)
		}
	}
}

func (l *groupLook) note(r record.Record) {
	key, err := schema.DecodeKey(schema.GroupLog, r.Key)
	if err != nil {
		return
	}
	var of map[string]bool
	var name string
	switch key := key.(type) {
	case *schema.ShareGroupMetadataKey:
		of, name = l.share, key.GroupID
	case *schema.StreamsGroupMetadataKey:
		of, name = l.streams, key.GroupID
	default:
		return
	}
	if r.Value == nil {
		delete(of, name)
		return
	}
	of[strings.Clone(name)] = true
}
