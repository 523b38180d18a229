package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/vfs"
)

// Options is what a check is told.
type Options struct {
	// MaxDecompressed bounds what one batch may expand to, in bytes; 0 is 256 MiB. What would be larger is noted as not
	// read.
	MaxDecompressed int
	// Progress is told, now and then, how far the check is, and of which file. Nil: nobody.
	Progress func(done Totals, file string)
	// InUse tells whether a server holds the lock file named. Nil: the system is asked.
	InUse func(lockFile string) bool

	pool *compress.Pool // of a test that makes many checks
}

const defaultMaxDecompressed = 256 << 20

// checker is one check.
type checker struct {
	fsys    vfs.FS
	options Options
	pool    *compress.Pool
	report  *Report
	dirs    []*directory
	image   *metadata.Image // nil: the metadata log is not among the directories, or cannot be replayed
	home    map[protocol.TopicPartition]*directory
}

// Run checks directories, as a rule all log directories of one node. An error means that one of them cannot be listed;
// whatever else is wrong stands in the report.
func Run(fsys vfs.FS, dirs []string, o Options) (*Report, error) {
	if o.MaxDecompressed == 0 {
		o.MaxDecompressed = defaultMaxDecompressed
	}
	if o.InUse == nil {
		o.InUse = lockedByOther
	}
	if o.pool == nil {
		o.pool = compress.NewPool()
	}
	c := &checker{fsys: fsys, options: o, pool: o.pool, report: newReport(), home: map[protocol.TopicPartition]*directory{}}
	for _, dir := range dirs {
		d, err := c.open(path.Clean(dir))
		if err != nil {
			return nil, fmt.Errorf("cannot check %s: %w", dir, err)
		}
		c.dirs = append(c.dirs, d)
	}
	c.compareDirectories()
	for _, d := range c.dirs {
		if d.metadata != "" {
			c.checkMetadata(d)
		}
	}
	for _, d := range c.dirs {
		for _, p := range d.partitions {
			c.checkPartition(d, p)
		}
	}
	c.checkPlacement()
	for _, d := range c.dirs {
		c.report.Directories = append(c.report.Directories, d.describe())
	}
	c.report.finish()
	return c.report, nil
}

func (c *checker) fault(name Fault, file string, position int64, partition, format string, args ...any) {
	c.report.add(true, Finding{Name: name, File: file, Position: position, Partition: partition, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) note(name Fault, file string, position int64, partition, format string, args ...any) {
	c.report.add(false, Finding{Name: name, File: file, Position: position, Partition: partition, Text: fmt.Sprintf(format, args...)})
}

// tell is a fault, or a note if it may be so.
func (c *checker) tell(fault bool, name Fault, file string, position int64, partition, format string, args ...any) {
	if fault {
		c.fault(name, file, position, partition, format, args...)
	} else {
		c.note(name, file, position, partition, format, args...)
	}
}

// cannotRead reports what the system refuses; a file that is gone since the directory was listed is no fault of one in
// use.
func (c *checker) cannotRead(d *directory, file string, err error) {
	if errors.Is(err, fs.ErrNotExist) && d.inUse {
		c.note(NotRead, file, -1, "", "it is gone since the directory was listed")
		return
	}
	c.fault(Unreadable, file, -1, "", "%v", err)
}

// largestSmall bounds the files that are read whole.
const largestSmall = 64 << 20

// readSmall reads a small file; nil if it cannot be, which is reported.
func (c *checker) readSmall(d *directory, file string) []byte {
	c.report.Checked.Files++
	entry, err := c.fsys.Stat(file)
	if err == nil && entry.Size > largestSmall {
		c.note(NotRead, file, -1, "", "it has %d bytes, too many for a file of its kind", entry.Size)
		return nil
	}
	var data []byte
	if err == nil {
		data, err = vfs.ReadFile(c.fsys, file)
	}
	if err != nil {
		c.cannotRead(d, file, err)
		return nil
	}
	if data == nil {
		data = []byte{}
	}
	return data
}

// replay applies records to a state machine. Those panic where records say what none of their kind writes: here that is a
// finding like others.
func replay(apply func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("no replay is possible: %v", broken)
		}
	}()
	return apply()
}

func (c *checker) progress(file string) {
	if c.options.Progress != nil {
		c.options.Progress(c.report.Checked, file)
	}
}
