package datadir

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	before := Snapshot{"config a x=1", "record a-0 at 0", "record a-0 at 1"}
	if found := Differences(before, slices.Clone(before)); len(found) != 0 {
		t.Errorf("two that are the same differ: %q", found)
	}
	after := Snapshot{"config a x=2", "record a-0 at 0", "record a-0 at 1", "record a-0 at 2"}
	want := []string{"- config a x=1", "+ config a x=2", "+ record a-0 at 2"}
	if found := Differences(before, after); !slices.Equal(found, want) {
		t.Errorf("they differ by %q, want %q", found, want)
	}
	if n := after.Count("record"); n != 3 {
		t.Errorf("%d records", n)
	}
	if words := after.Counts(); words != "config 1, record 3" {
		t.Errorf("it holds %q", words)
	}
}
