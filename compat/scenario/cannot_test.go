package scenario

import (
	"slices"
	"strings"
	"testing"
)

// TestExceptionsNameRows sees to it that no exception outlives its client or its row, and that each gives a reason.
func TestExceptionsNameRows(t *testing.T) {
	rows := Rows()
	for client, list := range cannot {
		if !slices.Contains(Clients, client) {
			t.Errorf("exceptions of %q, which is no client", client)
		}
		for key, reason := range list {
			row, _, _ := strings.Cut(key, ": ")
			if !slices.Contains(rows, row) {
				t.Errorf("%s: an exception of %q, which is no row", client, key)
			}
			if len(reason) < 8 {
				t.Errorf("%s: %s has no reason", client, key)
			}
		}
	}
	for _, client := range Clients {
		if cannot[client] == nil {
			t.Errorf("no list of exceptions for %s: an empty one says that it can do everything", client)
		}
	}
}
