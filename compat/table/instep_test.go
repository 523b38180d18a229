//go:build compat

package main

import (
	"os"
	"testing"

	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// TestInStep sees to it that RESULTS.md is what the checked-in result gives, and that nothing is missing there.
func TestInStep(t *testing.T) {
	text, err := os.ReadFile(resultsMD())
	if err != nil {
		t.Fatal(err)
	}
	want, err := renew(text)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(want) {
		t.Error("compat/RESULTS.md is not the table of compat/table/testdata/clients.json: run make readme-table")
	}
	result, err := suite.ReadResults(resultPath())
	if err != nil {
		t.Fatal(err)
	}
	cells := result.ByCell()
	for _, row := range scenario.Rows() {
		for _, client := range scenario.Clients {
			if scenario.Partakes(client, row) && cells[row+"/"+client] == "" {
				t.Errorf("%s with %s is not in the checked-in result: run make compat, and then make readme-table", row, client)
			}
		}
	}
}
