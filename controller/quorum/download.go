package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/vfs"
)

// partSuffix marks a snapshot that is not whole yet, as with Kafka; tidy removes
// what is left of it.
const partSuffix = ".part"

// part is a snapshot that is being downloaded.
type part struct {
	id   raft.SnapshotID
	file vfs.File
	size int64
}

// beginDownload opens an empty file for a snapshot.
func (q *Quorum) beginDownload(id raft.SnapshotID) error {
	if err := q.dropPart(); err != nil {
		return err
	}
	file, err := q.options.Env.FS.OpenFile(path.Join(q.dir, snapshotID(id).file()+partSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("cannot begin to download a metadata snapshot: %w", err)
	}
	q.options.Logger.Info("downloading a metadata snapshot", "end", id.End, "epoch", id.Epoch, "logEnd", q.log.View().LogEndOffset)
	q.observed.part = &part{id: id, file: file}
	return nil
}

func (q *Quorum) dropPart() error {
	p := q.observed.part
	if p == nil {
		return nil
	}
	q.observed.part = nil
	err := p.file.Close()
	if removed := q.options.Env.FS.Remove(p.file.Name()); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// takeChunk appends bytes to the download, and installs it if it is whole.
func (q *Quorum) takeChunk(now time.Time, chunk []byte, install *raft.SnapshotID) error {
	p := q.observed.part
	if p == nil {
		return errors.New("a chunk of a metadata snapshot came, but none is being downloaded")
	}
	n, err := p.file.WriteAt(chunk, p.size)
	if err != nil {
		return fmt.Errorf("cannot write a metadata snapshot: %w", err)
	}
	p.size += int64(n)
	if install == nil {
		return nil
	}
	return q.install(now, *install)
}

// install makes the download durable and the newest snapshot, and begins the log
// anew where it ends. A crash in between leaves a log that ends before the
// snapshot: a start begins it anew as well (openLog).
func (q *Quorum) install(now time.Time, id raft.SnapshotID) error {
	p := q.observed.part
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return &flushError{err}
	}
	q.observed.part = nil
	named := snapshotID(id)
	taken, err := q.readSnapshot(p.file.Name(), named)
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		q.options.Logger.Error("a downloaded metadata snapshot is damaged and is downloaded again", "error", err)
		q.core.DownloadFailed(now)
		return q.options.Env.FS.Remove(p.file.Name())
	}
	if err != nil {
		return err
	}
	final := path.Join(q.dir, named.file())
	if err := q.options.Env.FS.Rename(p.file.Name(), final); err != nil {
		return err
	}
	if err := q.options.Env.FS.SyncDir(q.dir); err != nil {
		return &flushError{err}
	}
	if err := q.log.TruncateFullyAndStartAt(id.End); err != nil {
		return err
	}
	taken.name = final
	return q.loadInstalled(now, taken)
}

// loadInstalled takes over what a snapshot holds.
func (q *Quorum) loadInstalled(now time.Time, taken snapshot) error {
	loader := metadata.NewLoader()
	if _, _, err := loader.LoadSnapshot(taken.provenance(), taken.each); err != nil {
		return fmt.Errorf("%s: %w", taken.name, err)
	}
	q.loader, q.kraftVersion = loader, taken.kraftVersion
	q.observed.kraft = []kraftAt{{protocol.NoOffset, taken.kraftVersion}}
	q.snapshots.taken(now, taken.id)
	effects := q.core.Installed(raft.SnapshotID(taken.id), taken.voters)
	q.delivered = taken.id.End
	q.log.SetHighWatermark(effects.HighWatermark)
	q.options.Logger.Info("a metadata snapshot was installed", "end", taken.id.End, "epoch", taken.id.Epoch)
	before := q.image.Load()
	if before == nil {
		before = metadata.Empty()
	}
	q.publish(now, before, q.loader.Image())
	return nil
}
