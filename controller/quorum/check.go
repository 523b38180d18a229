package quorum

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
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

const (
	// walkBytes is how much of a file the walk reads at a time.
	walkBytes = 1 << 20
	// maxBatchBytes is more than any batch of a metadata log has: Kafka stops at
	// 8 MiB, this shell earlier. What is longer is neither a batch nor a torn one.
	maxBatchBytes = 16 << 20
)

// walk goes over the log before anything opens it for writing: it visits every
// valid batch, and refuses damage.
//
// This shell makes each batch durable before it begins the next, and so does
// Kafka before it tells anyone. So only the last batch can be torn, and whatever
// shows that more was durable once, makes an invalid stretch damage: a valid
// batch behind it, a later segment, a header that says that something follows, a
// snapshot or producer snapshot that reaches further. trust narrows it: after a
// clean stop nothing may be torn, and under the same boot (only the process
// died) the last batch may be short but not wrong.
type walk struct {
	fsys  vfs.FS
	dir   string
	trust log.Trust
	// observer: it does not flush, and what is not valid can be had from the leader
	// again, with all that is behind it: the leader alone knows what is committed.
	// Whoever votes must not lose it so.
	observer bool
	visit    func(record.Batch) error

	floor    protocol.Offset // the log was durable up to here
	end      protocol.Offset // after the last valid batch
	lastBase protocol.Offset // of the last valid batch
	epoch    protocol.LeaderEpoch
	maxEpoch protocol.LeaderEpoch // that can have been led; -1: not known
	torn     *DamagedError        // what is to be cut
	behind   []protocol.Offset    // segments behind it, of an observer
	size     int64                // bytes, of the last segment
}

// run walks over all segments, those too that a snapshot (which ends at from)
// covers: other replicas may still ask for them. Without any, end is NoOffset.
func (w *walk) run(from protocol.Offset) error {
	w.end, w.lastBase, w.epoch = protocol.NoOffset, 0, protocol.NoLeaderEpoch
	bases, err := segmentBases(w.fsys, w.dir)
	if err != nil {
		return err
	}
	if len(bases) > 0 && bases[0] > from {
		return &DamagedError{File: w.dir, Reason: fmt.Sprintf(
			"the log begins at offset %d, and no snapshot covers what is before it (the latest ends at %d)", bases[0], from)}
	}
	for i, base := range bases {
		name := w.name(base)
		if i > 0 && base != w.end {
			gap := &DamagedError{File: name, Reason: fmt.Sprintf("the segment begins at offset %d, but the one before ends at %d", base, w.end)}
			if !w.observer {
				return gap
			}
			w.torn, w.behind = &DamagedError{File: w.name(bases[i-1]), Position: w.size, Reason: gap.Reason}, bases[i:]
			break
		}
		w.end = base
		if err := w.segment(name, i == len(bases)-1); err != nil {
			return err
		}
		if w.torn != nil {
			w.behind = bases[i+1:]
			break
		}
	}
	if w.end < w.floor && len(bases) > 0 {
		return &DamagedError{
			File:   w.name(bases[len(bases)-1]),
			Reason: fmt.Sprintf("the log ends at offset %d, but it was durable up to %d", w.end, w.floor),
		}
	}
	return nil
}

func (w *walk) name(base protocol.Offset) string {
	return path.Join(w.dir, fmt.Sprintf("%020d.log", base))
}

func segmentBases(fsys vfs.FS, dir string) ([]protocol.Offset, error) {
	return offsetsOf(fsys, dir, ".log")
}

// offsetsOf lists the files that are named by an offset and a suffix.
func offsetsOf(fsys vfs.FS, dir, suffix string) ([]protocol.Offset, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var offsets []protocol.Offset
	for _, entry := range entries {
		digits, found := strings.CutSuffix(entry.Name, suffix)
		offset, err := strconv.ParseInt(digits, 10, 64)
		if found && err == nil && !entry.Dir && len(digits) == 20 {
			offsets = append(offsets, protocol.Offset(offset))
		}
	}
	slices.Sort(offsets)
	return offsets, nil
}

// segment walks over one file.
func (w *walk) segment(name string, last bool) error {
	file, err := w.fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	w.size = size
	scan := scanner{file: file, size: size}
	for scan.position < size {
		batch, invalid, err := scan.next()
		if err != nil {
			return err
		}
		if invalid == nil {
			invalid = w.follows(batch)
		}
		if invalid != nil {
			return w.judge(name, &scan, invalid, last)
		}
		if err := w.visit(batch); err != nil {
			return fmt.Errorf("%s, batch at byte %d: %w", name, scan.position, err)
		}
		w.end, w.lastBase, w.epoch = batch.NextOffset(), batch.BaseOffset(), batch.PartitionLeaderEpoch()
		scan.advance(batch.Size())
	}
	return nil
}

// follows checks what the checksum of a batch does not cover: its offset and
// its epoch, which changes only where a leader says so first.
func (w *walk) follows(batch record.Batch) error {
	epoch := batch.PartitionLeaderEpoch()
	switch {
	case batch.BaseOffset() != w.end:
		return fmt.Errorf("the batch has offset %d instead of %d", batch.BaseOffset(), w.end)
	case w.maxEpoch >= 0 && epoch > w.maxEpoch:
		return fmt.Errorf("the batch has leader epoch %d, but the last election was that of epoch %d", epoch, w.maxEpoch)
	case w.epoch != protocol.NoLeaderEpoch && epoch < w.epoch:
		return fmt.Errorf("the batch has leader epoch %d after one of epoch %d", epoch, w.epoch)
	case w.epoch != protocol.NoLeaderEpoch && epoch == w.epoch == beginsEpoch(batch):
		return fmt.Errorf("leader epoch %d does not begin with a leader change", epoch)
	}
	return nil
}

func beginsEpoch(batch record.Batch) bool {
	if !batch.IsControl() {
		return false
	}
	for r, err := range record.Records(batch, nil, 0) {
		if err != nil {
			return false
		}
		kind, err := record.ParseControlKey(r.Key)
		return err == nil && kind == record.ControlLeaderChange
	}
	return false
}

// judge tells whether the invalid stretch at the scanner's position is a torn
// end, which is noted, or damage, which is returned.
func (w *walk) judge(name string, scan *scanner, invalid error, last bool) error {
	damaged := &DamagedError{File: name, Position: scan.position, Reason: invalid.Error()}
	damage := func(why string) error {
		damaged.Reason += why
		return damaged
	}
	remaining := scan.size - scan.position
	switch {
	case w.observer:
		w.torn = damaged
		return nil
	case !last:
		return damage(", and a later segment exists")
	case w.trust == log.Clean:
		return damage(", though the last stop was clean")
	case remaining > maxBatchBytes:
		return damage(fmt.Sprintf(", and the %d bytes from there are more than one batch", remaining))
	}
	rest, err := scan.rest()
	if err != nil {
		return err
	}
	claimed, ok := record.SizeOf(rest)
	hasHeader := ok && len(rest) >= record.HeaderSize && rest[16] == record.Magic2
	short := errors.Is(invalid, record.ErrShort)
	switch {
	case w.trust == log.SameBoot && !short:
		return damage(", though the machine was not restarted since it was written")
	case hasHeader && claimed < len(rest):
		return damage(", and more was written behind it")
	case hasHeader && claimed > len(rest) && record.Batch(rest).ComputeCRC() == record.Batch(rest).CRC():
		return damage(", and only its length field is wrong")
	case validBatchIn(rest[1:]):
		return damage(", but valid batches follow")
	}
	w.torn = damaged
	return nil
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

// scanner reads a file batch by batch. What it gives is not overwritten later.
type scanner struct {
	file     vfs.File
	size     int64
	position int64  // of the next batch
	buffer   []byte // the file from position on, as far as it was read
}

// next gives the batch at the position. invalid says why there is none; err is
// the environment's.
func (s *scanner) next() (batch record.Batch, invalid, err error) {
	for {
		batch, _, invalid = record.Next(s.buffer)
		if claimed, ok := record.SizeOf(s.buffer); ok && claimed > maxBatchBytes {
			return nil, fmt.Errorf("%w: a batch of %d bytes", record.ErrCorrupt, claimed), nil
		}
		if !errors.Is(invalid, record.ErrShort) || s.position+int64(len(s.buffer)) >= s.size {
			break
		}
		if err := s.read(max(walkBytes, len(s.buffer))); err != nil {
			return nil, nil, err
		}
	}
	if invalid == nil {
		invalid = batch.CheckCRC()
	}
	return batch, invalid, nil
}

func (s *scanner) read(n int) error {
	from := s.position + int64(len(s.buffer))
	buffer := make([]byte, len(s.buffer)+int(min(int64(n), s.size-from)))
	had := copy(buffer, s.buffer)
	if n, err := s.file.ReadAt(buffer[had:], from); err != nil && !(errors.Is(err, io.EOF) && n == len(buffer)-had) {
		return fmt.Errorf("cannot read %s: %w", s.file.Name(), err)
	}
	s.buffer = buffer
	return nil
}

func (s *scanner) advance(n int) {
	s.position += int64(n)
	s.buffer = s.buffer[n:]
}

// rest gives the file from the position to its end.
func (s *scanner) rest() ([]byte, error) {
	err := s.read(int(s.size - s.position))
	return s.buffer, err
}
