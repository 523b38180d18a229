package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/vfs"
)

// The checkpoint files of a log directory, "0\nN\ntopic partition offset" a line (OffsetCheckpointFile.java).
const (
	RecoveryPointFile = "recovery-point-offset-checkpoint"
	LogStartFile      = "log-start-offset-checkpoint"
	HighWatermarkFile = "replication-offset-checkpoint"
	CleanerFile       = "cleaner-offset-checkpoint"
)

// CheckpointFiles are the names of all four.
var CheckpointFiles = [...]string{RecoveryPointFile, LogStartFile, HighWatermarkFile, CleanerFile}

// Offsets are the content of a checkpoint file.
type Offsets = map[protocol.TopicPartition]protocol.Offset

// Checkpoints are the checkpoint files of one directory. Its lock is held over their I/O, and the caller holds none of
// its own when it asks for it.
type Checkpoints struct {
	fsys vfs.FS
	dir  string

	mu     sync.Mutex
	onDisk map[string]Offsets // by file
	// caps are recovery points that a truncation has lowered. Until it is over, the log still shows a
	// DurableEnd that must not be written.
	caps Offsets
	// damaged are the files that could not be parsed: the next write replaces them, whatever is wanted.
	damaged map[string]bool
}

// ReadCheckpoints reads the files; those that cannot be parsed are taken as empty and named.
func ReadCheckpoints(fsys vfs.FS, dir string) (c *Checkpoints, damaged []string, err error) {
	c = &Checkpoints{fsys: fsys, dir: dir, onDisk: map[string]Offsets{}, caps: Offsets{}, damaged: map[string]bool{}}
	for _, file := range CheckpointFiles {
		read, err := readCheckpoint(fsys, path.Join(dir, file))
		switch {
		case errors.Is(err, checkpoint.ErrDamaged):
			damaged = append(damaged, file)
			c.damaged[file] = true
			read = Offsets{}
		case err != nil:
			return nil, nil, err
		}
		c.onDisk[file] = read
	}
	return c, damaged, nil
}

// readCheckpoint reads one file. A missing one is empty, and so is one without a byte, as Apache Kafka creates it
// before there is something to say. Every line ends with a newline: a file cut within its last number would
// otherwise tell another offset.
func readCheckpoint(fsys vfs.FS, name string) (Offsets, error) {
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return Offsets{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		return nil, fmt.Errorf("%s: %w: its last line is cut", name, checkpoint.ErrDamaged)
	}
	return checkpoint.ParseOffsets(data)
}

// Get gives what a file says of a partition; 0 if nothing.
func (c *Checkpoints) Get(file string, tp protocol.TopicPartition) protocol.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.onDisk[file][tp]
}

// Lines are what a file is to hold, in any order, each partition once.
type Lines = iter.Seq2[protocol.TopicPartition, protocol.Offset]

// Write asks for the wanted content under the lock, so that no older content is written after a newer one, and
// writes it if it differs. Content that does not differ costs no memory, however many partitions it has.
func (c *Checkpoints) Write(file string, wanted func(onDisk Offsets) Lines) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := wanted(c.onDisk[file])
	if !c.damaged[file] && c.holds(file, lines) {
		return nil
	}
	content := Offsets{}
	for tp, offset := range lines {
		content[tp] = c.capped(file, tp, offset)
	}
	return c.writeLocked(file, content)
}

// holds tells that a file has the lines and no others.
func (c *Checkpoints) holds(file string, lines Lines) bool {
	count := 0
	for tp, offset := range lines {
		if old, ok := c.onDisk[file][tp]; !ok || old != c.capped(file, tp, offset) {
			return false
		}
		count++
	}
	return count == len(c.onDisk[file])
}

// capped is an offset as a truncation under way allows it.
func (c *Checkpoints) capped(file string, tp protocol.TopicPartition, offset protocol.Offset) protocol.Offset {
	if limit, ok := c.caps[tp]; ok && file == RecoveryPointFile {
		return min(offset, limit)
	}
	return offset
}

func (c *Checkpoints) writeLocked(file string, content Offsets) error {
	if maps.Equal(content, c.onDisk[file]) && !c.damaged[file] {
		return nil
	}
	if err := checkpoint.WriteOffsets(c.fsys, path.Join(c.dir, file), content); err != nil {
		return err
	}
	c.onDisk[file] = content
	delete(c.damaged, file)
	return nil
}

// Lower makes the recovery point of a partition at most offset, durably, before a truncation.
func (c *Checkpoints) Lower(tp protocol.TopicPartition, offset protocol.Offset) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit, ok := c.caps[tp]; !ok || offset < limit {
		c.caps[tp] = offset
	}
	// What was compacted beyond it is not there any more either.
	for _, file := range []string{RecoveryPointFile, CleanerFile} {
		if c.onDisk[file][tp] <= offset {
			continue
		}
		content := maps.Clone(c.onDisk[file])
		content[tp] = offset
		if err := c.writeLocked(file, content); err != nil {
			return err
		}
	}
	return nil
}

// Capped lists the partitions whose recovery point is held down.
func (c *Checkpoints) Capped() []protocol.TopicPartition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.caps), protocol.TopicPartition.Compare)
}

// Lift lets a recovery point rise again: no truncation is under way.
func (c *Checkpoints) Lift(tp protocol.TopicPartition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.caps, tp)
}

// Forget removes a partition from every file, durably: a new partition of its name must not inherit an offset.
func (c *Checkpoints) Forget(tp protocol.TopicPartition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.caps, tp)
	for _, file := range CheckpointFiles {
		if _, ok := c.onDisk[file][tp]; !ok {
			continue
		}
		content := maps.Clone(c.onDisk[file])
		delete(content, tp)
		if err := c.writeLocked(file, content); err != nil {
			return err
		}
	}
	return nil
}
