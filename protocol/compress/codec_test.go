package compress

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/ottla-written.tsv")

// input makes the same data as Codecs.java.
func input(t testing.TB, name string) []byte {
	t.Helper()
	switch name {
	case "empty":
		return nil
	case "one":
		return []byte("x")
	case "zeros":
		return make([]byte, 200_000)
	case "text":
		var text strings.Builder
		for i := 0; text.Len() < 70_000; i++ {
			fmt.Fprintf(&text, "line %d of the log\n", i*7919%1000)
		}
		return []byte(text.String())
	case "noise":
		noise := make([]byte, 3000)
		x := uint32(12345)
		for i := range noise {
			x = x*1103515245 + 12345
			noise[i] = byte(x >> 16)
		}
		return noise
	}
	t.Fatalf("no input %q", name)
	return nil
}

var inputNames = []string{"empty", "one", "zeros", "text", "noise"}

// table reads a tab-separated file of testdata.
func table(t testing.TB, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustParse(t testing.TB, name string) Codec {
	t.Helper()
	codec, err := ParseCodec(name)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func TestReadsWhatJavaWrote(t *testing.T) {
	pool := NewPool()
	rows := table(t, "java-written.tsv")
	if len(rows) != 55 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		want := input(t, row[2])
		prefix := []byte("before")
		got, err := pool.Decompress(prefix, mustParse(t, row[0]), unbase64(t, row[3]), len(want))
		if err != nil {
			t.Errorf("%v: %v", row[:3], err)
			continue
		}
		if !bytes.Equal(got, append(prefix, want...)) {
			t.Errorf("%v: other bytes", row[:3])
		}
	}
}

// stricter lists what we refuse and Kafka's decoder takes; nobody writes it.
func stricter(codec string, data []byte) bool {
	switch codec {
	case "gzip": // a reserved flag
		return data[3]&0xe0 != 0
	case "lz4": // the last token of a block announces a match that does not come
		return bytes.Contains(data, []byte("\xa1nd the end"))
	case "zstd": // a whole frame, and the beginning of another
		return len(data) > zstdFrameSize && bytes.HasPrefix(data[zstdFrameSize:], zstdMagic[:min(4, len(data)-zstdFrameSize)])
	}
	return false
}

// zstdFrameSize is the size of the good frame in the verdicts.
const zstdFrameSize = 42

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Codecs.java says for each input whether Kafka's own decoder takes it.
func TestVerdictsOfJava(t *testing.T) {
	pool := NewPool()
	for i, row := range table(t, "java-verdicts.tsv") {
		data := unbase64(t, row[1])
		got, err := pool.Decompress(nil, mustParse(t, row[0]), data, 1<<20)
		verdict := "ok"
		if err != nil {
			verdict = "refused"
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("row %d: %s: error %v is not ErrCorrupt", i+1, row[0], err)
			}
			got = nil
		}
		sum := uint32(0)
		if err == nil {
			sum = crc32.ChecksumIEEE(got)
		}
		if err != nil && row[2] == "ok" && stricter(row[0], data) {
			continue
		}
		if have := []string{verdict, strconv.Itoa(len(got)), strconv.FormatUint(uint64(sum), 10)}; strings.Join(have, " ") != strings.Join(row[2:], " ") {
			t.Errorf("row %d: %s %x: we %v (%v), Java %v", i+1, row[0], data, have, err, row[2:])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	pool := NewPool()
	for codec := None; codec <= Zstd; codec++ {
		for _, level := range []int{-7, 0, 1, 3, 9, 12, 17, 22, 99} {
			for _, name := range inputNames {
				want := input(t, name)
				packed, err := pool.Compress([]byte("before"), codec, level, want)
				if err != nil {
					t.Fatal(err)
				}
				packed, found := bytes.CutPrefix(packed, []byte("before"))
				if !found {
					t.Fatalf("%v lost what was in dst", codec)
				}
				for range 2 { // the second time with used decoders
					got, err := pool.Decompress(nil, codec, packed, len(want))
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%v level %d %s: %d bytes, %v", codec, level, name, len(got), err)
					}
				}
				if len(want) == 0 {
					continue
				}
				if _, err := pool.Decompress(nil, codec, packed, len(want)-1); !errors.Is(err, ErrTooLarge) {
					t.Errorf("%v level %d %s: one byte over the limit: %v", codec, level, name, err)
				}
			}
		}
	}
}

// The file that Codecs.java has read; -update writes it anew.
func TestWrittenForJava(t *testing.T) {
	pool := NewPool()
	levels := map[Codec][]int{Gzip: {0, 1, 9}, Snappy: {0}, LZ4: {0, 1, 17}, Zstd: {0, 1, 22, -5}}
	if *update {
		var out strings.Builder
		for codec := Gzip; codec <= Zstd; codec++ {
			for _, level := range levels[codec] {
				for _, name := range inputNames {
					packed, err := pool.Compress(nil, codec, level, input(t, name))
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&out, "%v\t%d\t%s\t%s\n", codec, level, name, base64.StdEncoding.EncodeToString(packed))
				}
			}
		}
		if err := os.WriteFile("testdata/ottla-written.tsv", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range table(t, "ottla-written.tsv") {
		got, err := pool.Decompress(nil, mustParse(t, row[0]), unbase64(t, row[3]), 1<<20)
		if err != nil || !bytes.Equal(got, input(t, row[2])) {
			t.Errorf("%v: %v", row[:3], err)
		}
	}
}

func TestNames(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		if back, err := ParseCodec(codec.String()); err != nil || back != codec {
			t.Errorf("%v: %v, %v", codec, back, err)
		}
	}
	if _, err := ParseCodec("producer"); err == nil {
		t.Error("producer is not a codec")
	}
	if got := Codec(5).String(); got != "Codec(5)" {
		t.Error(got)
	}
	pool := NewPool()
	if _, err := pool.Compress(nil, 5, 0, nil); !errors.Is(err, ErrUnknownCodec) {
		t.Error(err)
	}
	if _, err := pool.Decompress(nil, 7, nil, 9); !errors.Is(err, ErrUnknownCodec) {
		t.Error(err)
	}
}

func TestXXH32(t *testing.T) {
	// The values are those of the specification's reference program.
	for text, want := range map[string]uint32{
		"":    0x02CC5D05,
		"a":   0x550d7456,
		"abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxh32([]byte(text)); got != want {
			t.Errorf("xxh32(%q) = %#x, want %#x", text, got, want)
		}
	}
}
