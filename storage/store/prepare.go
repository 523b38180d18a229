package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"ottla/protocol"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Prepared are directories that are checked and locked, and otherwise as they were found. It is not safe for
// concurrent use.
type Prepared struct {
	o         Options
	all       []*directory // the log directories in order, then the metadata directory if it is another one
	clusterID string
	begun     bool
	loaded    bool
}

// SetRecoveryParallelism replaces Options.RecoveryParallelism, before Load: what the metadata says of it is known
// only after Prepare.
func (p *Prepared) SetRecoveryParallelism(logs int) { p.o.RecoveryParallelism = logs }

// SetTopicID replaces Options.TopicID, before Load.
func (p *Prepared) SetTopicID(id func(topic string) protocol.TopicID) { p.o.TopicID = id }

// SetAssigned replaces Options.Assigned, before Load.
func (p *Prepared) SetAssigned(assigned func(tp protocol.TopicPartition) protocol.DirectoryID) {
	p.o.Assigned = assigned
}

// Prepare checks meta.properties in every directory, then locks the directories. Nothing but .lock changes, so a
// refusal leaves the directories as they were. A directory that the disk cannot read goes offline and the others
// go on; a file that is damaged, missing or of another node or cluster is an error that names it.
func Prepare(o Options) (*Prepared, error) {
	o = o.withDefaults()
	paths, err := o.paths()
	if err != nil {
		return nil, err
	}
	p := &Prepared{o: o, clusterID: o.ClusterID}
	for i, dir := range paths {
		d := &directory{Directory: Directory{Path: dir}, holdsLogs: i < len(o.Dirs)}
		p.all = append(p.all, d)
		if err := p.readMeta(d); err != nil {
			return nil, err
		}
	}
	if err := p.checkMeta(); err != nil {
		return nil, err
	}
	for _, d := range p.all {
		if err := p.takeLock(d); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	p.readFailed()
	if err := p.checkOnline(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Prepared) readMeta(d *directory) error {
	m, err := logdir.ReadMetaProperties(p.o.FS, d.Path)
	var refused *logdir.MetaError
	switch {
	case err == nil:
		d.meta, d.ID = m, m.DirectoryID
	case errors.As(err, &refused):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not formatted: it has no %s (format the directory first)", d.Path, logdir.MetaPropertiesFile)
	default:
		p.fail(d, fmt.Errorf("cannot read %s: %w", logdir.MetaPropertiesFile, err))
	}
	return nil
}

// checkMeta compares what the directories say with the node and with each other.
func (p *Prepared) checkMeta() error {
	ids := map[protocol.DirectoryID]string{}
	for _, d := range p.all {
		if d.Offline != nil {
			continue
		}
		file := path.Join(d.Path, logdir.MetaPropertiesFile)
		if d.meta.NodeID != p.o.NodeID {
			return &logdir.MetaError{File: file, Reason: fmt.Sprintf("the directory belongs to node %d, and this is node %d", d.meta.NodeID, p.o.NodeID)}
		}
		if p.clusterID == "" {
			p.clusterID = d.meta.ClusterID
		}
		if d.meta.ClusterID != p.clusterID {
			return &logdir.MetaError{File: file, Reason: fmt.Sprintf("the directory belongs to cluster %s, and this is cluster %s", d.meta.ClusterID, p.clusterID)}
		}
		if other, ok := ids[d.ID]; ok && !d.ID.IsZero() {
			return &logdir.MetaError{File: file, Reason: fmt.Sprintf("the directory id %s is also that of %s", d.ID, other)}
		}
		ids[d.ID] = d.Path
	}
	return nil
}

// takeLock locks a directory and reads how it was left.
func (p *Prepared) takeLock(d *directory) error {
	if d.Offline != nil {
		return nil
	}
	lock, err := p.o.FS.Lock(path.Join(d.Path, logdir.LockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%s is in use by another server: %w", d.Path, err)
	}
	if err != nil {
		p.fail(d, fmt.Errorf("cannot lock it: %w", err))
		return nil
	}
	d.lock = lock
	if d.marker, err = logdir.ReadMarker(p.o.FS, d.Path); err != nil {
		p.fail(d, fmt.Errorf("cannot read %s: %w", logdir.CleanShutdownFile, err))
		return nil
	}
	if d.bootID, err = logdir.ReadBootID(p.o.FS, d.Path); err != nil {
		p.fail(d, fmt.Errorf("cannot read %s: %w", logdir.BootIDFile, err))
		return nil
	}
	d.trust = trustOf(d.marker, d.bootID, p.o.FS.BootID())
	return nil
}

// checkOnline refuses to go on without the metadata directory or without any log directory.
func (p *Prepared) checkOnline() error {
	working := 0
	for _, d := range p.all {
		if d.holdsLogs && d.Offline == nil {
			working++
		}
	}
	if meta := p.metadata(); meta.Offline != nil {
		return fmt.Errorf("the directory of the cluster metadata, %s, does not work: %w", meta.Path, meta.Offline)
	}
	if working == 0 && len(p.o.Dirs) > 0 {
		return fmt.Errorf("none of the log directories works: %w", p.all[0].Offline)
	}
	return nil
}

func (p *Prepared) fail(d *directory, reason error) {
	d.Offline = reason
	p.o.Logger.Error("a log directory is offline", "directory", d.Path, "reason", reason)
}

func (p *Prepared) metadata() *directory {
	for _, d := range p.all {
		if d.Path == path.Clean(p.o.MetadataDir) {
			return d
		}
	}
	panic("store: the metadata directory is not among the prepared ones")
}

// ClusterID is the cluster's id as meta.properties has it.
func (p *Prepared) ClusterID() string { return p.clusterID }

// MetadataDirectory is the directory that holds the metadata partition; its ID is the voter's directory id. It
// is zero before Begin if meta.properties has none.
func (p *Prepared) MetadataDirectory() Directory { return p.metadata().Directory }

// MetadataTrust is how far the metadata directory may be trusted.
func (p *Prepared) MetadataTrust() log.Trust { return p.metadata().trust }

// Directories are the log directories in the order of Options.Dirs.
func (p *Prepared) Directories() []Directory {
	var list []Directory
	for _, d := range p.all {
		if d.holdsLogs {
			list = append(list, d.Directory)
		}
	}
	return list
}

// PreviousBrokerEpoch is the broker epoch that the last clean stop left in all log directories, or -1: what the
// broker says when it registers (KIP-966).
func (p *Prepared) PreviousBrokerEpoch() protocol.BrokerEpoch {
	epoch := logdir.NoBrokerEpoch
	for i, d := range p.all {
		switch {
		case !d.holdsLogs:
		case d.Offline != nil || !d.marker.Clean || (i > 0 && d.marker.BrokerEpoch != epoch):
			return logdir.NoBrokerEpoch
		default:
			epoch = d.marker.BrokerEpoch
		}
	}
	return epoch
}

// Begin removes the clean-shutdown markers: from now on a crash counts as one (KAFKA-10471). It also gives an id
// to directories that have none, as Kafka 3.7 and later do. The quorum must not write before. A second call does
// nothing.
func (p *Prepared) Begin() error {
	if p.begun {
		return nil
	}
	p.begun = true
	for _, d := range p.all {
		if d.Offline != nil {
			continue
		}
		if err := p.begin(d); err != nil {
			p.fail(d, err)
		}
	}
	return p.checkOnline()
}

func (p *Prepared) begin(d *directory) error {
	if d.marker.Present {
		if err := p.o.FS.Remove(path.Join(d.Path, logdir.CleanShutdownFile)); err != nil {
			return fmt.Errorf("cannot remove %s: %w", logdir.CleanShutdownFile, err)
		}
	}
	// Also without a marker: a format that was killed in its last step has left a meta.properties that is not durable.
	if err := p.o.FS.SyncDir(d.Path); err != nil {
		return err
	}
	if err := p.o.FS.SyncDir(path.Dir(d.Path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if !d.ID.IsZero() {
		return nil
	}
	d.meta.DirectoryID = protocol.NewUUID(p.o.Random)
	d.ID = d.meta.DirectoryID
	return logdir.WriteMetaProperties(p.o.FS, d.Path, d.meta)
}

// Load opens all logs and gives the store. logOptions, if not nil, replaces Options.LogOptions: it is known only
// when the quorum has replayed.
func (p *Prepared) Load(now time.Time, logOptions func(topic string) log.Options) (*Store, Report, error) {
	if err := p.Begin(); err != nil {
		return nil, Report{}, err
	}
	if p.loaded {
		return nil, Report{}, errors.New("the directories are loaded already")
	}
	p.loaded = true
	if logOptions != nil {
		p.o.LogOptions = logOptions
	}
	s, report := newStore(now, p).load(now)
	if err := p.checkOnline(); err != nil {
		return nil, report, errors.Join(err, s.Close(now, false, logdir.NoBrokerEpoch))
	}
	return s, report, nil
}

// Close releases the locks of directories that were not loaded; it does nothing after Load, whose store owns them.
func (p *Prepared) Close() error {
	if p.loaded {
		return nil
	}
	return closeLocks(p.all)
}

func closeLocks(dirs []*directory) error {
	var errs []error
	for _, d := range dirs {
		if d.env != nil {
			errs = append(errs, d.env.Together.Close())
		}
		if d.lock != nil {
			errs = append(errs, d.lock.Close())
			d.lock = nil
		}
	}
	return errors.Join(errs...)
}
