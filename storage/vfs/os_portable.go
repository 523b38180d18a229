//go:build !linux

package vfs

// bootID is unknown here, so every start after an unclean stop checks all that was not synced.
func bootID() string { return "" }

func syncData(f *osFile) error { return f.Sync() }

func writeVectorAt(f *osFile, buffers [][]byte, offset int64) (int64, error) {
	return writeEach(f, buffers, offset)
}
