// Command table writes the checked-in table of clients and scenarios, compat/RESULTS.md, out of the result of a run. With an argument
// it takes a new result first: `table compat/results/clients.json`, as `make readme-table` does after `make compat`.
//
// The result that the table was made of is checked in too (testdata/clients.json). A test, in the part `control-sample` of
// compat/run.sh, sees to it that they agree, and that they have every row and every client of today's list.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// The markers between which the table stands in RESULTS.md.
const (
	from = "<!-- made by `make readme-table`: do not edit -->\n"
	to   = "<!-- end -->\n"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// resultPath is the checked-in result of a run.
func resultPath() string {
	return filepath.Join(harness.CompatDir(), "table", "testdata", "clients.json")
}

func resultsMD() string { return filepath.Join(harness.CompatDir(), "RESULTS.md") }

func run(args []string) error {
	if len(args) > 0 {
		taken, err := suite.ReadResults(args[0])
		if err != nil {
			return fmt.Errorf("%w (make compat writes it)", err)
		}
		if err := taken.Write(resultPath()); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(resultsMD())
	if err != nil {
		return err
	}
	text, err = renew(text)
	if err != nil {
		return err
	}
	return os.WriteFile(resultsMD(), text, 0o644)
}

// renew puts the table of the checked-in result between the markers.
func renew(text []byte) ([]byte, error) {
	result, err := suite.ReadResults(resultPath())
	if err != nil {
		return nil, err
	}
	control, err := suite.ReadResults(filepath.Join(harness.Root(), "testdata", "control", "clients.json"))
	if err != nil {
		return nil, err
	}
	before, rest, ok := strings.Cut(string(text), from)
	_, after, closed := strings.Cut(rest, to)
	if !ok || !closed {
		return nil, fmt.Errorf("%s has lost the markers %q and %q", resultsMD(), from, to)
	}
	return []byte(before + from + markdown(result, control) + to + after), nil
}

// markdown is the table: a row a scenario, a column a client, and what a client cannot express with the reason.
func markdown(result, control *suite.Results) string {
	own, other := result.ByCell(), control.ByCell()
	passed := 0
	for _, cell := range own {
		if cell == suite.Pass {
			passed++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %d of %d cells pass, none is skipped. ✓ passes, ✗ fails, · the client cannot express it; "+
		"where %s does not do the same, it stands behind a bar.\n\n", result.Server, passed, len(own), control.Server)
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(scenario.Clients, " | "), strings.Repeat(":-:|", len(scenario.Clients)))
	for _, row := range scenario.Rows() {
		b.WriteString("| " + row + " |")
		for _, client := range scenario.Clients {
			cell := mark(own[row+"/"+client], other[row+"/"+client])
			if own[row+"/"+client] == "" && scenario.Partakes(client, row) {
				cell = unknown
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nWhat the scenarios are:\n\n")
	for _, s := range scenario.List() {
		fmt.Fprintf(&b, "- **%s**: %s\n", s.Name, s.What)
	}
	for _, s := range scenario.OldTransactions() {
		fmt.Fprintf(&b, "- **%s**: the same with transaction.version=1, for clients that do otherwise there\n", s.Name)
	}
	for _, r := range scenario.Restarts() {
		fmt.Fprintf(&b, "- **%s**: %s\n", r.Name, r.What)
	}
	b.WriteString("\nWhat a client cannot express (a part of a scenario stands behind the colon):\n\n")
	for _, client := range scenario.Clients {
		for _, reason := range scenario.Reasons(client) {
			fmt.Fprintf(&b, "- %s, %s: %s\n", client, reason[0], reason[1])
		}
	}
	return b.String() + "\n"
}

// unknown marks a cell that the checked-in result does not have.
const unknown = "?"

func mark(own, control string) string {
	signs := map[string]string{suite.Pass: "✓", suite.Fail: "✗", "": "·"}
	if own == control || own == "" {
		return signs[own]
	}
	if control == "" {
		return signs[own] + "\\|?"
	}
	return signs[own] + "\\|" + signs[control]
}
