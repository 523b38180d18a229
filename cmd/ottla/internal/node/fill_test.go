package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ottla/storage/vfs"
)

// TestReserveOverALink: what lies in the place of the reserve is not written through.
func TestReserveOverALink(t *testing.T) {
	dir := t.TempDir()
	other, name := filepath.Join(dir, "other"), filepath.Join(dir, "reserve")
	if err := errors.Join(os.WriteFile(other, []byte("others'"), 0o600), os.Symlink(other, name)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fill(vfs.OS(), name, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "others'" {
		t.Errorf("the other file holds %d bytes, %v", len(text), err)
	}
	if is, err := os.Lstat(name); err != nil || !is.Mode().IsRegular() || is.Size() != 1000 {
		t.Errorf("%v, %v", is, err)
	}
}
