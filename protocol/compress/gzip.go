package compress

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// appendWriter is an io.Writer over a growing slice.
type appendWriter struct{ bytes []byte }

func (w *appendWriter) Write(data []byte) (int, error) {
	w.bytes = append(w.bytes, data...)
	return len(data), nil
}

func (p *Pool) compressGzip(dst []byte, level int, src []byte) ([]byte, error) {
	level = min(level, gzip.BestCompression)
	pool := &p.gzipWriters[max(level, 0)]
	sink := &appendWriter{bytes: dst}
	writer, _ := pool.Get().(*gzip.Writer)
	if writer == nil {
		if level <= 0 {
			level = gzip.DefaultCompression
		}
		var err error
		if writer, err = gzip.NewWriterLevel(sink, level); err != nil {
			return dst, fmt.Errorf("cannot make a gzip encoder: %w", err)
		}
	} else {
		writer.Reset(sink)
	}
	if _, err := writer.Write(src); err != nil {
		return dst, fmt.Errorf("cannot compress with gzip: %w", err)
	}
	if err := writer.Close(); err != nil {
		return dst, fmt.Errorf("cannot compress with gzip: %w", err)
	}
	writer.Reset(io.Discard)
	pool.Put(writer)
	return sink.bytes, nil
}

// gzipReader keeps the two readers together, so that reuse allocates nothing.
type gzipReader struct {
	source bytes.Reader
	gzip   gzip.Reader
}

// gzipIgnoredTail is how many bytes after a member GZIPInputStream does not even
// look at, being less than a header and a trailer (18 and the trailer before).
const gzipIgnoredTail = 18

// decompressGzip reads the members one by one, as java.util.zip's
// GZIPInputStream: what follows a member and does not begin like another is
// ignored. (The library's own multi-member mode fails there.)
func (p *Pool) decompressGzip(out *output, src []byte) error {
	reader, _ := p.gzipReaders.Get().(*gzipReader)
	if reader == nil {
		reader = new(gzipReader)
	}
	defer p.gzipReaders.Put(reader)
	reader.source.Reset(src)
	defer reader.source.Reset(nil)
	for first := true; first || reader.source.Len() > gzipIgnoredTail; first = false {
		if err := reader.gzip.Reset(&reader.source); err != nil {
			if !first {
				return nil
			}
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		reader.gzip.Multistream(false)
		if err := out.readFrom(&reader.gzip, len(src)); err != nil {
			return err
		}
	}
	return nil
}

// readFrom takes everything that a reader has.
func (o *output) readFrom(reader io.Reader, sourceBytes int) error {
	for {
		room := o.room(sourceBytes)
		var probe [1]byte
		full := len(room) == 0
		if full {
			room = probe[:]
		}
		n, err := reader.Read(room)
		if n > 0 && full {
			return ErrTooLarge
		}
		o.commit(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
}
