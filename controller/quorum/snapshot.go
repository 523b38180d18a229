package quorum

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"ottla/controller/metadata"
	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/storage/vfs"
)

const (
	snapshotSuffix = ".checkpoint"
	// bootstrapFile is where formats before 4.x left the first records, in the
	// metadata directory itself.
	bootstrapFile = "bootstrap.checkpoint"
	// snapshotBatchBytes is how large a batch of a snapshot grows.
	snapshotBatchBytes = 256 << 10
)

// snapshotID is the core's, with the name of its file.
type snapshotID raft.SnapshotID

func (id snapshotID) file() string {
	return fmt.Sprintf("%020d-%010d%s", id.End, id.Epoch, snapshotSuffix)
}

func parseSnapshotName(name string) (id snapshotID, ok bool) {
	stem, found := strings.CutSuffix(name, snapshotSuffix)
	if !found || len(stem) != 31 || stem[20] != '-' {
		return id, false
	}
	n, err := fmt.Sscanf(stem, "%020d-%010d", &id.End, &id.Epoch)
	return id, err == nil && n == 2 && id.file() == name && id.End >= 0 && id.Epoch >= 0
}

// snapshot is one read from disk.
type snapshot struct {
	id           snapshotID
	name         string // of the file
	timestampMs  int64  // of the last record it covers
	values       [][]byte
	voters       raft.VoterSet
	kraftVersion int16
}

func (s *snapshot) provenance() metadata.Provenance {
	return metadata.Provenance{Offset: s.id.End - 1, Epoch: s.id.Epoch, TimestampMs: s.timestampMs}
}

func (s *snapshot) each(yield func([]byte, error) bool) {
	for _, value := range s.values {
		if !yield(value, nil) {
			return
		}
	}
}

// snapshotState is when the next snapshot is due.
type snapshotState struct {
	lastEnd            protocol.Offset
	epoch              protocol.LeaderEpoch
	lastTime           time.Time
	notBefore          time.Time // after an attempt that failed
	bytes              int64     // appended since
	votersFromSnapshot bool      // the log itself does not hold the voter set yet
}

func (s *snapshotState) taken(now time.Time, id snapshotID) {
	*s = snapshotState{lastEnd: id.End, epoch: id.Epoch, lastTime: now, votersFromSnapshot: s.votersFromSnapshot}
}

// snapshotRetry is how long an attempt that found no space is not repeated.
const snapshotRetry = 10 * time.Second

// settled tells whether this node takes snapshots and lets go what they cover.
func (q *Quorum) settled() bool { return q.active || q.observes() && q.CaughtUp() }

// snapshotDeadline is when a snapshot is due, zero if none is: when enough was
// appended, or anything at all a while ago.
func (q *Quorum) snapshotDeadline() time.Time {
	s := &q.snapshots
	if !q.settled() || q.loader.InTransaction() || q.core.HighWatermark() <= s.lastEnd {
		return time.Time{}
	}
	var due time.Time
	switch {
	case s.bytes >= q.options.SnapshotBytes:
		due = s.lastTime
	case q.options.SnapshotAge > 0:
		due = s.lastTime.Add(q.options.SnapshotAge)
	default:
		return time.Time{}
	}
	if due.Before(s.notBefore) {
		due = s.notBefore
	}
	return due
}

// latestSnapshot reads the newest snapshot, or what the format left, or gives
// an empty one that covers nothing.
func (q *Quorum) latestSnapshot() (snapshot, error) {
	ids, err := listSnapshots(q.options.Env.FS, q.dir)
	if err != nil {
		return snapshot{}, err
	}
	found := snapshot{timestampMs: record.NoTimestamp}
	if len(ids) > 0 {
		latest := ids[len(ids)-1]
		found, err = q.readSnapshot(path.Join(q.dir, latest.file()), latest)
		if err != nil || latest.End > 0 || len(found.values) > 0 {
			return found, err
		}
	}
	// Formats of before 4.x wrote the first records beside the log, also where a
	// snapshot holds the voters (3.9).
	name := path.Join(q.options.Dir, bootstrapFile)
	if _, err := q.options.Env.FS.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	bootstrap, err := q.readSnapshot(name, snapshotID{})
	bootstrap.voters, bootstrap.kraftVersion = found.voters, found.kraftVersion
	return bootstrap, err
}

func listSnapshots(fsys vfs.FS, dir string) ([]snapshotID, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []snapshotID
	for _, entry := range entries {
		if id, ok := parseSnapshotName(entry.Name); ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b snapshotID) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Epoch, b.Epoch)) })
	return ids, nil
}

// readSnapshot reads a whole snapshot. It is written, made durable and renamed
// before anything relies on it, so whatever does not read is damage.
func (q *Quorum) readSnapshot(name string, id snapshotID) (snapshot, error) {
	s := snapshot{id: id, name: name, timestampMs: record.NoTimestamp}
	content, err := vfs.ReadFile(q.options.Env.FS, name)
	if err != nil {
		return s, err
	}
	ended, next := false, protocol.Offset(0)
	rest := content
	for len(rest) > 0 {
		position := int64(len(content) - len(rest))
		batch, after, err := record.Next(rest)
		if err == nil {
			err = batch.CheckCRC()
		}
		switch {
		case err != nil:
		case ended:
			err = errors.New("something follows the footer")
		case batch.BaseOffset() != next || batch.PartitionLeaderEpoch() != id.Epoch:
			err = fmt.Errorf("a batch of offset %d and leader epoch %d stands where offset %d and epoch %d are due",
				batch.BaseOffset(), batch.PartitionLeaderEpoch(), next, id.Epoch)
		default:
			ended, err = q.readSnapshotBatch(&s, batch)
		}
		if err != nil {
			return s, &DamagedError{File: name, Position: position, Reason: err.Error()}
		}
		next, rest = batch.NextOffset(), after
	}
	// A bootstrap.checkpoint of older versions is a bare list of batches.
	if !ended && path.Base(name) != bootstrapFile {
		return s, &DamagedError{File: name, Position: int64(len(content)), Reason: "the footer is missing"}
	}
	return s, nil
}

func (q *Quorum) readSnapshotBatch(s *snapshot, batch record.Batch) (ended bool, err error) {
	err = eachRecord(batch, q.pool, func(r record.Record) error {
		if !batch.IsControl() {
			s.values = append(s.values, r.Value)
			return nil
		}
		kind, err := record.ParseControlKey(r.Key)
		if err != nil {
			return err
		}
		switch kind {
		case record.ControlSnapshotHeader:
			header, err := record.ParseSnapshotHeader(r.Value)
			s.timestampMs = header.LastContainedLogTimestamp
			return err
		case record.ControlKRaftVersion:
			control, err := record.ParseKRaftVersion(r.Value)
			s.kraftVersion = control.KRaftVersion
			return err
		case record.ControlKRaftVoters:
			control, err := record.ParseVoters(r.Value)
			s.voters = votersFromRecord(control)
			return err
		case record.ControlSnapshotFooter:
			ended = true
		}
		return nil
	})
	return ended, err
}

// maintain takes a snapshot when one is due and drops what the retention no
// longer keeps. An error means that the directory cannot be written to.
func (q *Quorum) maintain(now time.Time) error {
	if due := q.snapshotDeadline(); !due.IsZero() && !now.Before(due) {
		err := q.takeSnapshot(now)
		if err == nil {
			err = q.clean(now)
		}
		if q.noSpace(err) {
			q.options.Logger.Error("no space for a metadata snapshot", "error", err, "retryIn", snapshotRetry)
			q.snapshots.notBefore = now.Add(snapshotRetry)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("metadata snapshot: %w", err)
		}
	}
	if !q.settled() {
		return nil
	}
	if err := q.log.Maintain(now).Err; err != nil && !q.noSpace(err) {
		return fmt.Errorf("metadata log: %w", err)
	}
	return nil
}

// takeSnapshot writes the committed Image. For want of space nothing is lost but
// the attempt: the log is still whole.
func (q *Quorum) takeSnapshot(now time.Time) error {
	image := q.loader.Image()
	provenance := image.Provenance()
	id := snapshotID{End: provenance.Offset + 1, Epoch: provenance.Epoch}
	var content bytes.Buffer
	for _, batch := range q.snapshotBatches(now, id, image) {
		content.Write(batch)
	}
	if err := vfs.WriteFileAtomic(q.options.Env.FS, path.Join(q.dir, id.file()), content.Bytes()); err != nil {
		return err
	}
	q.snapshots.taken(now, id)
	q.options.Logger.Info("metadata snapshot written", "file", id.file(), "bytes", content.Len())
	return nil
}

// snapshotBatches is the file as Kafka writes it: header and voters, the
// records, the footer; offsets count within the file.
func (q *Quorum) snapshotBatches(now time.Time, id snapshotID, image *metadata.Image) []record.Batch {
	var (
		batches []record.Batch
		next    protocol.Offset
		current *record.Builder
	)
	open := func(control bool) {
		options := record.PlainOptions()
		options.BaseOffset, options.Control, options.PartitionLeaderEpoch = next, control, id.Epoch
		current = record.NewBuilder(options)
	}
	flush := func() {
		if current != nil && current.Count() > 0 {
			next += protocol.Offset(current.Count())
			batches = append(batches, current.Build(q.pool))
		}
		current = nil
	}
	add := func(control controlRecord) {
		key, value := control.Encode()
		current.Append(now.UnixMilli(), key, value, nil)
	}
	open(true)
	add(record.SnapshotHeader{LastContainedLogTimestamp: image.Provenance().TimestampMs})
	if q.kraftVersion > 0 {
		add(record.KRaftVersion{KRaftVersion: q.kraftVersion})
		add(votersToRecord(q.core.Voters()))
	}
	flush()
	image.Records(image.MetadataVersion(), func(r schema.MetadataRecord, version int16) {
		if current == nil {
			open(false)
		}
		current.Append(now.UnixMilli(), nil, schema.EncodeMetadata(r, version), nil)
		if current.SizeBytes() >= snapshotBatchBytes {
			flush()
		}
	})
	flush()
	open(true)
	add(record.SnapshotFooter{})
	flush()
	return batches
}

// clean removes the oldest snapshots that the retention no longer keeps, never
// the newest, and then the log below the oldest that stays (KafkaMetadataLog).
func (q *Quorum) clean(now time.Time) error {
	ids, err := listSnapshots(q.options.Env.FS, q.dir)
	if err != nil {
		return err
	}
	for len(ids) > 1 {
		breach, err := q.beyondRetention(now, ids)
		if err != nil || !breach {
			return err
		}
		// The log is cut first: should the node die in between, the snapshot is
		// merely old.
		if err := q.log.AdvanceLogStart(now, ids[1].End); err != nil {
			return err
		}
		if maintenance := q.log.Maintain(now); maintenance.Err != nil {
			return maintenance.Err
		}
		if err := q.options.Env.FS.Remove(path.Join(q.dir, ids[0].file())); err != nil {
			return err
		}
		ids = ids[1:]
	}
	return nil
}

// beyondRetention tells whether the oldest snapshot is too old, or log and
// snapshots together are too large.
func (q *Quorum) beyondRetention(now time.Time, ids []snapshotID) (bool, error) {
	total := q.log.Size()
	for _, id := range ids {
		entry, err := q.options.Env.FS.Stat(path.Join(q.dir, id.file()))
		if err != nil {
			return false, err
		}
		total += entry.Size
	}
	if q.options.RetentionBytes >= 0 && total > q.options.RetentionBytes {
		return true, nil
	}
	if q.options.RetentionAge < 0 {
		return false, nil
	}
	oldest, err := q.readSnapshot(path.Join(q.dir, ids[0].file()), ids[0])
	if err != nil {
		return false, err
	}
	return now.UnixMilli()-oldest.timestampMs > q.options.RetentionAge.Milliseconds(), nil
}

// tidy removes what an interrupted snapshot left, ours or Kafka's. It is no
// matter if that fails.
func (q *Quorum) tidy() {
	entries, err := q.options.Env.FS.ReadDir(q.dir)
	for _, entry := range entries {
		for _, suffix := range []string{vfs.TempSuffix, partSuffix, ".deleted"} {
			if strings.HasSuffix(entry.Name, snapshotSuffix+suffix) {
				err = errors.Join(err, q.options.Env.FS.Remove(path.Join(q.dir, entry.Name)))
			}
		}
	}
	if err != nil {
		q.options.Logger.Warn("left-over metadata snapshots cannot be removed", "error", err)
	}
}
