package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// FinishFormat ends a Format that a crash cut off after it had written all directories, and before it had made all of
// them count: those that are formatted and those whose meta.properties is not in place yet tell of one cluster and
// node. Whatever else it finds, it changes nothing.
func FinishFormat(fsys vfs.FS, dirs []string, metadataDir string) error {
	var formatted *logdir.MetaProperties
	var unfinished []string
	for _, dir := range directories(dirs, metadataDirectory(dirs, metadataDir)) {
		meta, err := logdir.ReadMetaProperties(fsys, dir)
		switch {
		case err == nil:
			formatted = &meta
		case errors.Is(err, fs.ErrNotExist):
			unfinished = append(unfinished, dir)
		default:
			return nil // named by who opens it
		}
	}
	if formatted == nil {
		return nil
	}
	for _, dir := range unfinished {
		meta, ok := prepared(fsys, dir)
		if !ok || meta.ClusterID != formatted.ClusterID || meta.NodeID != formatted.NodeID {
			return nil
		}
	}
	for _, dir := range unfinished {
		if err := vfs.PutInPlace(fsys, path.Join(dir, logdir.MetaPropertiesFile)); err != nil {
			return fmt.Errorf("cannot finish the formatting of %s: %w", dir, err)
		}
	}
	return nil
}

// prepared reads what Format left beside meta.properties in a directory that holds nothing else.
func prepared(fsys vfs.FS, dir string) (meta logdir.MetaProperties, ok bool) {
	if formatted, err := inspect(fsys, dir); formatted || err != nil {
		return meta, false
	}
	text, err := vfs.ReadFile(fsys, path.Join(dir, logdir.MetaPropertiesFile+vfs.TempSuffix))
	if err != nil {
		return meta, false
	}
	meta, err = logdir.ParseMetaProperties(text)
	return meta, err == nil && !meta.DirectoryID.IsZero()
}

func metadataDirectory(dirs []string, metadataDir string) string {
	if metadataDir == "" && len(dirs) > 0 {
		return dirs[0]
	}
	return metadataDir
}

// CheckAutoFormat tells whether a node may format its directories by itself: none of them has a meta.properties, or
// anything but what an interrupted format leaves. The error says what stands in the way; ok is false without one if
// all of them are formatted already.
func CheckAutoFormat(fsys vfs.FS, dirs []string, metadataDir string) (ok bool, err error) {
	var empty, formatted []string
	var unreadable error
	for _, dir := range directories(dirs, metadataDirectory(dirs, metadataDir)) {
		state, err := inspect(fsys, dir)
		if err != nil {
			unreadable = errors.Join(unreadable, err)
			continue
		}
		if state {
			formatted = append(formatted, dir)
		} else {
			empty = append(empty, dir)
		}
	}
	if len(formatted) > 0 && len(empty) > 0 {
		return false, fmt.Errorf("%s is formatted and %s is not: a node formats its directories by itself only if all are empty",
			formatted[0], empty[0])
	}
	if len(formatted) > 0 {
		return false, nil // a directory beside them that cannot be read is offline, and no reason not to start
	}
	return unreadable == nil, unreadable
}

// inspect tells a formatted directory from an empty one; anything else is an error.
func inspect(fsys vfs.FS, dir string) (formatted bool, err error) {
	if _, err := fsys.Stat(path.Join(dir, logdir.MetaPropertiesFile)); !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		switch e.Name {
		case logdir.MetaPropertiesFile + vfs.TempSuffix, "lost+found", ".lock":
			continue
		case metadataPartitionDir:
			inner, err := fsys.ReadDir(path.Join(dir, e.Name))
			if err != nil {
				return false, err
			}
			for _, i := range inner {
				if i.Name != firstSnapshot && i.Name != firstSnapshot+vfs.TempSuffix {
					return false, occupied(dir, path.Join(e.Name, i.Name))
				}
			}
			continue
		}
		err = occupied(dir, e.Name)
	}
	return false, err
}

func occupied(dir, name string) error {
	return fmt.Errorf("%s has no %s and is not empty (it holds %s): it is not formatted without being asked",
		dir, logdir.MetaPropertiesFile, name)
}
