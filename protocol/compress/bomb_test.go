package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/golang/snappy"
)

// allocated runs f and gives the bytes it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// 64 MiB of zeros in each codec, and a limit of 1 MiB.
func TestBombsStopAtTheLimit(t *testing.T) {
	const limit = 1 << 20
	pool := NewPool()
	zeros := make([]byte, 64<<20)
	for codec := Gzip; codec <= Zstd; codec++ {
		bomb, err := pool.Compress(nil, codec, 0, zeros)
		if err != nil {
			t.Fatal(err)
		}
		decode := func() {
			if _, err := pool.Decompress(nil, codec, bomb, limit); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v: %v", codec, err)
			}
		}
		decode() // makes the decoder
		if got := allocated(decode); got > 8*limit {
			t.Errorf("%v: %d bytes allocated under a limit of %d", codec, got, limit)
		}
	}
}

// Headers that claim much, with nothing behind them.
func TestClaimsAreNotBelieved(t *testing.T) {
	pool := NewPool()
	lz4Header := []byte{4, 0x22, 0x4d, 0x18, 0x68, 0x70, 0, 0, 0, 0, 0, 1, 0, 0, 0}
	lz4Header[14] = byte(xxh32(lz4Header[4:14]) >> 8)
	xerial := append(append([]byte{}, xerialMagic...), 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f)
	for name, claim := range map[string]struct {
		codec Codec
		data  []byte
	}{
		"raw snappy of 4 GiB":        {Snappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 1}},
		"framed snappy of 4 GiB":     {Snappy, xerial},
		"snappy chunk of 2 GiB":      {Snappy, append(bytes.Clone(xerial[:16]), 0x7f, 0xff, 0xff, 0xff, 1)},
		"lz4 with 4 MiB blocks":      {LZ4, append(bytes.Clone(lz4Header), 1, 0, 0, 0, 0x1f)},
		"zstd content of 100 MiB":    {Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x40, 6, 1, 0, 0}},
		"zstd window of 128 MiB":     {Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x88, 9, 0, 0, 1, 2}},
		"zstd window of 2 TiB":       {Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 9, 0, 0, 1, 2}},
		"gzip header with long name": {Gzip, append([]byte{0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3}, bytes.Repeat([]byte{'n'}, 5000)...)},
	} {
		decode := func() {
			if _, err := pool.Decompress(nil, claim.codec, claim.data, 1<<30); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
		}
		decode()
		if got := allocated(decode); got > 1<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(claim.data))
		}
	}
}

// A block larger than what is left under the limit is told from a broken one.
func TestLimitWithinAnLZ4Block(t *testing.T) {
	pool := NewPool()
	packed, err := pool.Compress(nil, LZ4, 0, bytes.Repeat([]byte("ab"), 30_000))
	if err != nil {
		t.Fatal(err)
	}
	got, err := pool.Decompress(nil, LZ4, packed, 59_999)
	if !errors.Is(err, ErrTooLarge) || len(got) != 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	packed[11] ^= 0x40
	if _, err := pool.Decompress(nil, LZ4, packed[:len(packed)-9], 59_999); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// What came out before the fault is given back.
func TestPartialOutput(t *testing.T) {
	pool := NewPool()
	text := input(t, "text")
	for codec := Gzip; codec <= Zstd; codec++ {
		packed, err := pool.Compress(nil, codec, 0, text)
		if err != nil {
			t.Fatal(err)
		}
		if codec == Zstd { // one block only: nothing can come out before
			packed, _ = pool.Compress(nil, codec, 0, bytes.Repeat(text, 5))
		}
		got, err := pool.Decompress(nil, codec, packed[:len(packed)-20], 1<<20)
		if !errors.Is(err, ErrCorrupt) || len(got) == 0 || !bytes.HasPrefix(bytes.Repeat(text, 5), got) {
			t.Errorf("%v: %d bytes, %v", codec, len(got), err)
		}
	}
}

func TestSnappyRatioBound(t *testing.T) {
	block := snappy.Encode(nil, make([]byte, 60<<10))
	if size, _ := snappy.DecodedLen(block); size > snappyMaxRatio*len(block) {
		t.Fatalf("%d bytes from %d", size, len(block))
	}
}

// TestExpand lends the same bytes as Decompress gives, with the same failures, for
// small and large results, and bounds what it keeps.
func TestExpand(t *testing.T) {
	pool := NewPool()
	for codec := None; codec <= Zstd; codec++ {
		for _, size := range []int{0, 1000, smallBytes, smallBytes + 1, 2 * smallBytes} {
			packed, err := pool.Compress(nil, codec, 0, make([]byte, size))
			if err != nil {
				t.Fatal(err)
			}
			for _, limit := range []int{size - 1, size, keptLargeBytes + size} {
				want, wantFailure := pool.Decompress(nil, codec, packed, limit)
				if codec == None {
					want, wantFailure = packed, nil // lent as it is, whatever the limit
				}
				calls := 0
				pool.Expand(codec, packed, limit, func(data []byte, failure error) {
					calls++
					if !bytes.Equal(data, want) || (failure == nil) != (wantFailure == nil) || errors.Is(failure, ErrTooLarge) != errors.Is(wantFailure, ErrTooLarge) {
						t.Errorf("%v of %d bytes, limit %d: %d bytes and %v, want %d and %v", codec, size, limit, len(data), failure, len(want), wantFailure)
					}
				})
				if calls != 1 {
					t.Errorf("%v of %d bytes: lent %d times", codec, size, calls)
				}
			}
		}
	}
	for range cap(pool.slots) {
		if buffer := <-pool.slots; cap(buffer) > keptSmallBytes {
			t.Errorf("a buffer of %d bytes is kept", cap(buffer))
		}
	}
	if cap(pool.large) > keptLargeBytes {
		t.Errorf("a buffer of %d bytes is kept", cap(pool.large))
	}
}

// TestExpandAtOnce: what one caller holds, no other writes to.
func TestExpandAtOnce(t *testing.T) {
	pool := NewPool()
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			text := bytes.Repeat([]byte{byte(i)}, []int{5000, smallBytes + 5000}[i%2])
			packed, err := pool.Compress(nil, Codec(i%4+1), 0, text)
			if err != nil {
				t.Error(err)
			}
			for range 5 {
				pool.Expand(Codec(i%4+1), packed, 4*smallBytes, func(data []byte, failure error) {
					if failure != nil || !bytes.Equal(data, text) {
						t.Errorf("%d: %d bytes, %v", i, len(data), failure)
					}
				})
			}
		})
	}
	callers.Wait()
}

// FuzzDecompress holds every decoder to its allocation bound: the output may
// take four times the limit while it grows, what lies around it 64 times the
// input and a constant for the decoder.
func FuzzDecompress(f *testing.F) {
	pool := NewPool()
	for codec := None; codec <= Zstd; codec++ {
		for _, name := range inputNames {
			packed, err := pool.Compress(nil, codec, 0, input(f, name))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(codec), packed)
		}
	}
	f.Add(byte(Snappy), binary.AppendUvarint(nil, 1<<32-1))
	const limit = 256 << 10
	f.Fuzz(func(t *testing.T, codec byte, data []byte) {
		pool := NewPool()
		var out []byte
		var err error
		got := allocated(func() { out, err = pool.Decompress(nil, Codec(codec%6), data, limit) })
		if bound := uint64(4*limit + 64*len(data) + 2<<20); got > bound {
			t.Errorf("%d bytes allocated for %d, more than %d", got, len(data), bound)
		}
		if len(out) > limit {
			t.Errorf("%d bytes came out over the limit", len(out))
		}
		if err != nil {
			return
		}
		again, err := pool.Decompress(nil, Codec(codec%6), data, len(out))
		if err != nil || !bytes.Equal(again, out) {
			t.Errorf("the second time: %v", err)
		}
	})
}

// Data of every compressibility and size, with the limit exactly at its size:
// zstd decodes into a buffer that may not grow, which must always be enough.
func TestExactLimits(t *testing.T) {
	pool := NewPool()
	text := bytes.Repeat(input(t, "text"), 6)
	noise := bytes.Repeat(input(t, "noise"), 100)
	mixed := append(append(bytes.Clone(text[:140_000]), make([]byte, 500_000)...), noise[:140_000]...)
	for _, data := range [][]byte{text, noise, mixed, make([]byte, 400_000)} {
		for size := 1; size <= len(data); size += size/3 + 1 {
			for codec := Gzip; codec <= Zstd; codec++ {
				packed, err := pool.Compress(nil, codec, 0, data[:size])
				if err != nil {
					t.Fatal(err)
				}
				got, err := NewPool().Decompress(nil, codec, packed, size)
				if err != nil || !bytes.Equal(got, data[:size]) {
					t.Fatalf("%v of %d bytes: %d, %v", codec, size, len(got), err)
				}
				if _, err := pool.Decompress(make([]byte, 3, 2000), codec, packed, size-1); !errors.Is(err, ErrTooLarge) {
					t.Fatalf("%v of %d bytes, one over the limit: %v", codec, size, err)
				}
			}
		}
	}
}
