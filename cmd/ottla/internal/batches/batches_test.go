package batches_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"ottla/cmd/ottla/internal/batches"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

// three is a file with three batches, of which the second is larger than what is read at once.
func three() []byte {
	var file []byte
	for i, size := range []int{10, 3 << 20, 700} {
		o := record.PlainOptions()
		o.BaseOffset = protocol.Offset(i)
		b := record.NewBuilder(o)
		b.Append(1000, nil, bytes.Repeat([]byte("v"), size), nil)
		file = append(file, b.Build(compress.NewPool())...)
	}
	return file
}

// walk tells what a reader meets in a file.
func walk(t *testing.T, file []byte) (met []string) {
	t.Helper()
	disk := vfs.NewMem(nil)
	if err := errors.Join(disk.MkdirAll("/d"), vfs.WriteFile(disk, "/d/file", file, false)); err != nil {
		t.Fatal(err)
	}
	reader, err := batches.Open(disk, "/d/file")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for {
		f, err := reader.Next()
		if err != nil {
			var stop *batches.Misplaced
			if !errors.Is(err, io.EOF) && !errors.As(err, &stop) {
				t.Fatal(err)
			}
			return append(met, fmt.Sprintf("%d of %d: %v, zeros %v, valid behind %v", reader.Position(), reader.Size(), err, reader.Zeros(), reader.ValidBehind()))
		}
		sum, err := reader.Checksum(f)
		if err != nil {
			t.Fatal(err)
		}
		header := slices.Clone(f.Header)
		b, err := reader.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(header, b[:record.HeaderSize]) || int64(len(b)) != f.Size {
			t.Errorf("at %d the header of the batch differs, or its %d bytes are not %d", f.Position, len(b), f.Size)
		}
		met = append(met, fmt.Sprintf("offset %d, %d bytes at %d, sum %v", b.BaseOffset(), f.Size, f.Position, sum == b.CRC()))
	}
}

func TestReader(t *testing.T) {
	whole := three()
	const first, second, third = "offset 0, 78 bytes at 0, sum true", "offset 1, 3145802 bytes at 78, sum true", "offset 2, 770 bytes at 3145880, sum true"
	changed := func(at int, with ...byte) []byte {
		file := slices.Clone(whole)
		copy(file[at:], with)
		return file
	}
	for _, c := range []struct {
		what string
		file []byte
		met  []string
	}{
		{"nothing", nil, []string{"0 of 0: EOF, zeros true, valid behind false"}},
		{"whole", whole, []string{first, second, third, "3146650 of 3146650: EOF, zeros true, valid behind false"}},
		{"content changed", changed(1000, 1), []string{first, "offset 1, 3145802 bytes at 78, sum false", third, "3146650 of 3146650: EOF, zeros true, valid behind false"}},
		{"less than a header", whole[:78+60], []string{first, "78 of 138: 60 bytes are left, less than the header of a batch, zeros false, valid behind false"}},
		{"cut", whole[:len(whole)-1], []string{first, second, "3145880 of 3146649: a batch claims 770 bytes, and the file ends after 769, zeros false, valid behind false"}},
		{"zeros behind", append(slices.Clone(whole), make([]byte, 2<<20)...), []string{
			first, second, third, "3146650 of 5243802: no batch begins here: its length field says 0, zeros true, valid behind false",
		}},
		{"a length that cannot be", changed(78+8, 0xff, 0xff, 0xff, 0xff), []string{
			first, "78 of 3146650: no batch begins here: its length field says -1, zeros false, valid behind true",
		}},
		{"an older format", changed(16, 1), []string{"0 of 3146650: the batch has format 1, and only format 2 can be read, zeros false, valid behind true"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if met := walk(t, c.file); !slices.Equal(met, c.met) {
				t.Errorf("it met\n%q, want\n%q", met, c.met)
			}
		})
	}
}
