package guard_test

import (
	"os"
	"testing"

	"ottla/storage/guard"
	"ottla/storage/vfs"
)

// none runs calls where they are made.
type none struct{}

func (none) Run(call *guard.Call) error { call.Do(); return nil }
func (none) Leaves() bool               { return false }
func (none) Later(func())               {}

// BenchmarkWrite is a small vectored write, with a guard and without.
func BenchmarkWrite(b *testing.B) {
	for name, fsys := range map[string]func(dir string) vfs.FS{
		"bare":    func(string) vfs.FS { return vfs.OS() },
		"guarded": func(dir string) vfs.FS { return guard.New(vfs.OS(), map[string]guard.Runner{dir: none{}}) },
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			file, err := fsys(dir).OpenFile(dir+"/file", os.O_RDWR|os.O_CREATE)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			vector := [][]byte{make([]byte, 100)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := file.WriteVectorAt(vector, int64(i%1000)*100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
