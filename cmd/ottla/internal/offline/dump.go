package offline

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/storage/vfs"
)

// ErrDamaged means that a dump met damage, each instance of which it has written about.
var ErrDamaged = errors.New("the file is damaged")

// DumpOptions is what dump is told.
type DumpOptions struct {
	// Deep prints the records of batches, not only the batches (--deep). Records of .checkpoint files and control
	// records are always printed.
	Deep bool
	// MaxDecompressed bounds what one batch may expand to, in bytes; 0 is 1 GiB.
	MaxDecompressed int
}

const defaultMaxDecompressed = 1 << 30

// dumper prints one file.
type dumper struct {
	out     io.Writer
	fsys    vfs.FS
	name    string // as given
	options DumpOptions
	pool    *compress.Pool
	damages int
	err     error // of out; the first counts
}

// Dump prints a file of a log directory; what it is, its name tells. It reads on after damage where it can. The
// error is ErrDamaged, wrapped with the count, if a line that begins with DAMAGE was written.
func Dump(w io.Writer, fsys vfs.FS, file string, o DumpOptions) error {
	if o.MaxDecompressed == 0 {
		o.MaxDecompressed = defaultMaxDecompressed
	}
	d := &dumper{out: w, fsys: fsys, name: file, options: o, pool: compress.NewPool()}
	if err := d.dump(); err != nil {
		return fmt.Errorf("cannot dump %s: %w", file, err)
	}
	if d.err != nil {
		return d.err
	}
	if d.damages > 0 {
		return fmt.Errorf("%s: %w (%s)", file, ErrDamaged, places(d.damages))
	}
	return nil
}

func places(n int) string {
	if n == 1 {
		return "in 1 place"
	}
	return fmt.Sprintf("in %d places", n)
}

// retired are the suffixes that a file may carry behind its own name.
var retired = []string{".deleted", ".cleaned", ".swap"}

func (d *dumper) dump() error {
	switch entry, err := d.fsys.Stat(d.name); {
	case err != nil:
		return err
	case entry.Dir:
		return errors.New("it is a directory: name the files in it")
	}
	base := path.Base(d.name)
	for _, suffix := range retired {
		base = strings.TrimSuffix(base, suffix)
	}
	small, ok := smallFiles[base]
	if ok {
		return d.dumpSmall(small)
	}
	stem, extension := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
	if extension == ".checkpoint" {
		return d.dumpSnapshot(stem)
	}
	offset, err := strconv.ParseUint(stem, 10, 63)
	if err != nil {
		return errors.New("its name is that of no file of a log directory")
	}
	switch first := protocol.Offset(offset); extension {
	case ".log":
		return d.dumpLog(first)
	case ".index":
		return d.dumpOffsetIndex(first)
	case ".timeindex":
		return d.dumpTimeIndex(first)
	case ".txnindex":
		return d.dumpTxnIndex()
	case ".snapshot":
		return d.dumpProducers(first)
	default:
		return errors.New("its name is that of no file of a log directory")
	}
}

// line prints one line.
func (d *dumper) line(format string, args ...any) {
	if _, err := fmt.Fprintf(d.out, format+"\n", args...); err != nil && d.err == nil {
		d.err = err
	}
}

// damage prints what is wrong and where, in bytes from the start of the file.
func (d *dumper) damage(position int64, format string, args ...any) {
	d.damages++
	d.line("DAMAGE at byte %d: %s", position, fmt.Sprintf(format, args...))
}

// topic is that of the directory that the file lies in, or "".
func (d *dumper) topic() string {
	tp, err := protocol.ParseTopicPartition(path.Base(path.Dir(d.name)))
	if err != nil {
		return ""
	}
	return tp.Topic
}
