package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"sync"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/vfs"
)

// The checkpoint files of a log directory, "0\nN\ntopic partition offset" a line (OffsetCheckpointFile.java).
const (
	recoveryPointFile = "recovery-point-offset-checkpoint"
	logStartFile      = "log-start-offset-checkpoint"
	highWatermarkFile = "replication-offset-checkpoint"
	cleanerFile       = "cleaner-offset-checkpoint"
)

var checkpointFiles = [...]string{recoveryPointFile, logStartFile, highWatermarkFile, cleanerFile}

type offsets = map[protocol.TopicPartition]protocol.Offset

// checkpoints are the checkpoint files of one directory. Its lock is held over their I/O, and never asked for
// while the store's own is held.
type checkpoints struct {
	fsys vfs.FS
	dir  string

	mu     sync.Mutex
	onDisk map[string]offsets // by file
	// caps are recovery points that a truncation has lowered. Until it is over, the log still shows a
	// DurableEnd that must not be written.
	caps offsets
	// damaged are the files that could not be parsed: the next write replaces them, whatever is wanted.
	damaged map[string]bool
}

// readCheckpoints reads the files; those that cannot be parsed are taken as empty and named.
func readCheckpoints(fsys vfs.FS, dir string) (c *checkpoints, damaged []string, err error) {
	c = &checkpoints{fsys: fsys, dir: dir, onDisk: map[string]offsets{}, caps: offsets{}, damaged: map[string]bool{}}
	for _, file := range checkpointFiles {
		read, err := readCheckpoint(fsys, path.Join(dir, file))
		switch {
		case errors.Is(err, checkpoint.ErrDamaged):
			damaged = append(damaged, file)
			c.damaged[file] = true
			read = offsets{}
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
func readCheckpoint(fsys vfs.FS, name string) (offsets, error) {
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return offsets{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		return nil, fmt.Errorf("%s: %w: its last line is cut", name, checkpoint.ErrDamaged)
	}
	return checkpoint.ParseOffsets(data)
}

func (c *checkpoints) get(file string, tp protocol.TopicPartition) protocol.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.onDisk[file][tp]
}

// write asks for the wanted content under the lock, so that no older content is written after a newer one, and
// writes it if it differs.
func (c *checkpoints) write(file string, wanted func(onDisk offsets) offsets) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	content := wanted(c.onDisk[file])
	if file == recoveryPointFile {
		c.applyCaps(content)
	}
	return c.writeLocked(file, content)
}

func (c *checkpoints) writeLocked(file string, content offsets) error {
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

func (c *checkpoints) applyCaps(content offsets) {
	for tp, limit := range c.caps {
		if point, ok := content[tp]; ok && point > limit {
			content[tp] = limit
		}
	}
}

// lower makes the recovery point of a partition at most offset, durably, before a truncation.
func (c *checkpoints) lower(tp protocol.TopicPartition, offset protocol.Offset) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit, ok := c.caps[tp]; !ok || offset < limit {
		c.caps[tp] = offset
	}
	if c.onDisk[recoveryPointFile][tp] <= offset {
		return nil
	}
	content := maps.Clone(c.onDisk[recoveryPointFile])
	content[tp] = offset
	return c.writeLocked(recoveryPointFile, content)
}

// capped lists the partitions whose recovery point is held down.
func (c *checkpoints) capped() []protocol.TopicPartition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sortedKeys(c.caps)
}

// lift lets a recovery point rise again: no truncation is under way.
func (c *checkpoints) lift(tp protocol.TopicPartition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.caps, tp)
}

// forget removes a partition from every file, durably: a new partition of its name must not inherit an offset.
func (c *checkpoints) forget(tp protocol.TopicPartition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.caps, tp)
	for _, file := range checkpointFiles {
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
