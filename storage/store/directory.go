package store

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path"
	"slices"

	"ottla/protocol"
	"ottla/storage/groupcommit"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/segment"
	"ottla/storage/space"
	"ottla/storage/vfs"
)

// Directory is one log directory.
type Directory struct {
	ID      protocol.DirectoryID // zero if it could not be read
	Path    string
	Offline error // why it is offline; nil if it works
}

// directory is what the package knows of one. After Load, Offline is guarded by the store's lock and the rest
// does not change.
type directory struct {
	Directory
	lock      io.Closer
	meta      logdir.MetaProperties
	holdsLogs bool // it is one of log.dirs
	marker    logdir.Marker
	bootID    string // as found
	trust     log.Trust
	// distrusted: a partition is damaged or could not be opened, so the next start must check everything.
	distrusted  bool
	checkpoints *logdir.Checkpoints
	env         *log.Env               // of its logs; nil until it was listed
	remembers   []protocol.DirectoryID // others that failed, as its FailedFile says; under Store.remembering
	names       vfs.Shared             // makes the names in the directory durable
	logs        int                    // in Store.logs and futures; under the store's lock
}

// trustOf decides how far the content may be believed.
func trustOf(m logdir.Marker, storedBoot, presentBoot string) log.Trust {
	switch {
	case m.Clean:
		return log.Clean
	case storedBoot != "" && storedBoot == presentBoot:
		return log.SameBoot
	default:
		return log.OtherBoot
	}
}

// isDamage tells whether an error means that the bytes of one log are gone or garbled.
func isDamage(err error) bool {
	var ofLog *log.DamagedError
	var ofSegment *segment.Damage
	return errors.As(err, &ofLog) || errors.As(err, &ofSegment)
}

const (
	defaultFiles       = 1000
	defaultParallelism = 2
)

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.MetadataDir == "" && len(o.Dirs) > 0 {
		o.MetadataDir = o.Dirs[0]
	}
	if o.LogOptions == nil {
		o.LogOptions = func(string) log.Options { return log.DefaultOptions() }
	}
	if o.Files == nil {
		o.Files = segment.NewFileCache(o.FS, defaultFiles)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers == nil {
		o.Workers = func(task func()) { task() }
	}
	o.RecoveryParallelism = cmp.Or(o.RecoveryParallelism, defaultParallelism)
	o.RetentionCheckInterval = cmp.Or(o.RetentionCheckInterval, defaultRetentionCheckInterval)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, defaultCheckpointInterval)
	return o
}

// paths lists every directory once: the log directories, and metadata.log.dir if it is another one.
func (o Options) paths() ([]string, error) {
	var all []string
	for _, dir := range o.Dirs {
		if slices.Contains(all, path.Clean(dir)) {
			return nil, errors.New("log.dirs names " + dir + " twice")
		}
		all = append(all, path.Clean(dir))
	}
	if o.MetadataDir == "" {
		return nil, errors.New("neither log.dirs nor metadata.log.dir names a directory")
	}
	if meta := path.Clean(o.MetadataDir); !slices.Contains(all, meta) {
		all = append(all, meta)
	}
	return all, nil
}

// env is what the logs of one directory are given.
func (o Options) env(d *directory) *log.Env {
	return &log.Env{
		FS: o.FS, Files: o.Files, Pool: o.Pool, Logger: o.Logger, Random: o.Random,
		MaxDecompressed: o.MaxDecompressed, LowerRecoveryPoint: d.checkpoints.Lower, Space: o.space(d),
		Together:   groupcommit.New(o.FS, path.Join(d.Path, logdir.MetaPropertiesFile), o.Clock),
		SyncParent: func() error { return d.names.Do(func() error { return o.FS.SyncDir(d.Path) }) },
	}
}

// space is what is left in a directory; nil if nobody looks.
func (o Options) space(d *directory) *space.Directory {
	if o.Space == nil {
		return nil
	}
	return o.Space(d.Path)
}

type offsets = logdir.Offsets

func sortedKeys[V any](m map[protocol.TopicPartition]V) []protocol.TopicPartition {
	return slices.SortedFunc(maps.Keys(m), protocol.TopicPartition.Compare)
}
