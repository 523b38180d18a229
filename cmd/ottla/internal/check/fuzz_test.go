package check

import (
	"path"
	"runtime"
	"slices"
	"testing"

	"ottla/protocol/compress"
	"ottla/protocol/record"
)

// FuzzFile puts any bytes in the place of one file, in directories that were closed and in such that were not. Nothing panics,
// and memory follows what is there.
func FuzzFile(f *testing.F) {
	whole := golden(f)
	names := sortedNames(whole)
	for i, name := range names {
		f.Add(uint8(i), true, whole[name])
		f.Add(uint8(i+len(names)*(127/len(names)+1)), true, whole[name])
		f.Add(uint8(i), false, whole[name][:len(whole[name])/2])
	}
	pool := compress.NewPool()
	f.Fuzz(func(t *testing.T, which uint8, closed bool, data []byte) {
		name := names[int(which)%len(names)]
		data = slices.Clone(data)
		for rest := data; which >= 128; { // checksums that are right lead further
			b, after, err := record.Next(rest)
			if err != nil {
				break
			}
			seal(b)
			rest = after
		}
		files := tree{name: data}
		for other, content := range whole {
			// What is compared with the file: its directory, and what speaks of all.
			if _, mutated := files[other]; !mutated && (path.Dir(other) == path.Dir(name) || slices.Contains(goldenDirs, path.Dir(other))) {
				files[other] = content
			}
		}
		size := 0
		for other, content := range files {
			size += len(content)
			if !closed && path.Base(other) == ".kafka_cleanshutdown" {
				delete(files, other)
			}
		}
		bound := uint64(64*size + 1<<20)
		for _, content := range files {
			for rest := content; ; {
				b, after, err := record.Next(rest)
				if err != nil {
					break
				}
				if bound += 16 << 10; b.Codec() != compress.None { // a batch of nothing costs a little, too
					bound += 8 << 20
				}
				rest = after
			}
		}
		disk := files.mem(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		report, err := Run(disk, goldenDirs, Options{InUse: unlocked, MaxDecompressed: 1 << 20, pool: pool})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > bound {
			t.Errorf("%s: %d bytes were allocated for %d (at most %d)\n%s", name, used, size, bound, describe(report))
		}
	})
}
