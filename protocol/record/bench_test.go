package record

import (
	"math/rand/v2"
	"testing"

	"ottla/protocol/compress"
)

// megabyte builds a batch of 1 MiB of records of 1 KB.
func megabyte(codec compress.Codec, pool *compress.Pool) Batch {
	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 1000)
	for i := range value {
		value[i] = "abcdefghijklmnop"[random.IntN(16)] // compresses to about a half
	}
	options := PlainOptions()
	options.Codec = codec
	builder := NewBuilder(options)
	for builder.SizeBytes() < 1<<20 {
		value[builder.Count()%len(value)]++
		builder.Append(now, []byte("key"), value, nil)
	}
	return builder.Build(pool)
}

func BenchmarkValidate(b *testing.B) {
	v, _ := settings(b, "")
	v.Pool = compress.NewPool()
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		b.Run(codec.String(), func(b *testing.B) {
			batch := megabyte(codec, v.Pool)
			info, err := Validate(batch, v)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(info.UncompressedSize))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Validate(batch, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSmallBatch(b *testing.B) {
	batch := sample(PlainOptions())
	v, _ := settings(b, "")
	b.ReportAllocs()
	for b.Loop() {
		one, err := OneBatch(batch)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Validate(one, v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	batch := megabyte(compress.None, nil)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Records(batch, nil, 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// The path of an uncompressed batch allocates nothing.
func TestValidateAllocatesNothing(t *testing.T) {
	v, _ := settings(t, "")
	batch := megabyte(compress.None, nil)
	got := testing.AllocsPerRun(20, func() {
		one, err := OneBatch(batch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Validate(one, v); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
