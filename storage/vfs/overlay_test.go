package vfs

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// filled is a disk after some random steps.
func filled(t *testing.T, seed uint64) *Mem {
	t.Helper()
	disk := NewMem(nil)
	if err := disk.MkdirAll("/r"); err != nil {
		t.Fatal(err)
	}
	for a := (&actor{fsys: disk, root: "/r", rng: rand.New(rand.NewPCG(seed, 2))}); len(a.log) < 200; {
		a.step()
	}
	return disk
}

// TestOverlayAgrees runs the same random steps on a disk and on an overlay over its twin: both look the same after each, and the twin
// as before.
func TestOverlayAgrees(t *testing.T) {
	for seed := range uint64(60) {
		below := filled(t, seed)
		before := tree(t, below, "/r", "")
		plain := &actor{fsys: filled(t, seed), root: "/r", rng: rand.New(rand.NewPCG(seed, 3))}
		over := &actor{fsys: NewOverlay(below), root: "/r", rng: rand.New(rand.NewPCG(seed, 3))}
		for step := range 400 {
			plain.step()
			over.step()
			if !slices.Equal(plain.log, over.log) {
				t.Fatalf("seed %d, step %d: the disk says\n%q\nthe overlay says\n%q", seed, step,
					plain.log[len(plain.log)-min(len(plain.log), 3):], over.log[len(over.log)-min(len(over.log), 3):])
			}
		}
		if got, want := tree(t, over.fsys, "/r", ""), tree(t, plain.fsys, "/r", ""); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the overlay holds\n%q\nthe disk\n%q", seed, got, want)
		}
		if after := tree(t, below, "/r", ""); !slices.Equal(before, after) {
			t.Fatalf("seed %d: below there was\n%q\nand is\n%q", seed, before, after)
		}
	}
}

// TestOverlayLock sees who holds the lock below, and leaves no lock file where there was none.
func TestOverlayLock(t *testing.T) {
	dir := t.TempDir()
	name := filepath.ToSlash(filepath.Join(dir, ".lock"))
	lock, err := NewOverlay(OS()).Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file: %v", err)
	}
	held, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewOverlay(OS()).Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock that is held below: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewOverlay(OS()).Lock(name); err != nil {
		t.Errorf("a lock that was given back: %v", err)
	}
	if again, err := OS().Lock(name); err != nil {
		t.Errorf("the overlay keeps the lock below: %v", err)
	} else if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
