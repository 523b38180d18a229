package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Result of one cell.
const (
	Pass = "pass"
	Fail = "FAIL"
)

// Cell names one scenario with one client.
type Cell struct {
	Scenario string `json:"scenario"`
	Client   string `json:"client"`
	Result   string `json:"result"`
}

// Results collects the cells of one run and its measured figures.
type Results struct {
	mu      sync.Mutex
	Part    string `json:"part"`    // clients or tools
	Server  string `json:"server"`  // what was tested, with its version
	Command string `json:"command"` // the command that made it
	Cells   []Cell `json:"cells"`
	rows    []string
	columns []string
}

// NewResults begins the table of one part for a server.
func NewResults(part, server, command string) *Results {
	return &Results{Part: part, Server: server, Command: command}
}

// Add records a cell. Rows keep the order in which they were declared by AddRows, or else of their first cell.
func (r *Results) Add(scenario, client string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := Pass
	if failed {
		result = Fail
	}
	r.Cells = append(r.Cells, Cell{scenario, client, result})
}

// SetColumns declares the order of the columns.
func (r *Results) SetColumns(clients ...string) { r.columns = clients }

// AddRows declares the order of the rows.
func (r *Results) AddRows(scenarios ...string) { r.rows = append(r.rows, scenarios...) }

// Write stores the results as JSON, cells sorted, so that the file of an equal run is equal.
func (r *Results) Write(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.Cells, func(a, b Cell) int {
		return strings.Compare(a.Scenario+"\x00"+a.Client, b.Scenario+"\x00"+b.Client)
	})
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// ReadResults reads a file that Write has made.
func ReadResults(path string) (*Results, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("recorded results: %w", err)
	}
	r := &Results{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("recorded results %s: %w", path, err)
	}
	return r, nil
}

// ByCell returns the results by "scenario/client".
func (r *Results) ByCell() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[string]string, len(r.Cells))
	for _, c := range r.Cells {
		m[c.Scenario+"/"+c.Client] = c.Result
	}
	return m
}

// Table is the text of the table: a row a scenario, a column a client. With a control, each cell shows both: this run, a
// bar, the control. A dot means that the client cannot express the scenario.
func (r *Results) Table(control *Results) string {
	own := r.ByCell()
	other := map[string]string{}
	if control != nil {
		other = control.ByCell()
	}
	rows, clients := slices.Clone(r.rows), slices.Clone(r.columns)
	for _, c := range r.Cells {
		if !slices.Contains(clients, c.Client) {
			clients = append(clients, c.Client)
		}
		if !slices.Contains(rows, c.Scenario) {
			rows = append(rows, c.Scenario)
		}
	}

	cells := [][]string{append([]string{r.Part}, clients...)}
	for _, scenario := range rows {
		line := []string{scenario}
		for _, client := range clients {
			result, ok := own[scenario+"/"+client]
			switch {
			case !ok:
				result = "."
			case control != nil && other[scenario+"/"+client] != "":
				result += "|" + other[scenario+"/"+client]
			case control != nil:
				result += "|none"
			}
			line = append(line, result)
		}
		cells = append(cells, line)
	}
	return r.heading(control) + layOut(cells)
}

func (r *Results) heading(control *Results) string {
	passed := 0
	for _, c := range r.Cells {
		if c.Result == Pass {
			passed++
		}
	}
	text := fmt.Sprintf("%s: %d of %d cells pass, 0 skipped", r.Server, passed, len(r.Cells))
	if control != nil {
		text += "; after the bar: " + control.Server + " as recorded"
	}
	if len(r.columns) > 0 {
		text += "; a dot: the client cannot express it"
	}
	return text + "\n"
}

func layOut(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, text := range line {
			widths[i] = max(widths[i], len(text))
		}
	}
	var b strings.Builder
	for _, line := range cells {
		var row strings.Builder
		for i, text := range line {
			fmt.Fprintf(&row, "%-*s  ", widths[i], text)
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}
