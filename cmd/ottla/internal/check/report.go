package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"ottla/protocol"
)

// Finding is one thing that was found.
type Finding struct {
	Name      Fault  `json:"name"`
	File      string `json:"file"`     // or directory
	Position  int64  `json:"position"` // in bytes from the start of the file; -1: the whole of it
	Partition string `json:"partition,omitempty"`
	Text      string `json:"text"` // a sentence
	Count     int    `json:"count,omitempty"`
}

func (f Finding) String() string {
	at := ""
	if f.Position >= 0 {
		at = fmt.Sprintf(" at byte %d", f.Position)
	}
	return fmt.Sprintf("%s %s%s: %s", f.Name, f.File, at, f.Text)
}

// Directory is one that was checked.
type Directory struct {
	Path        string          `json:"path"`
	ClusterID   string          `json:"clusterId"`
	NodeID      protocol.NodeID `json:"nodeId"`
	DirectoryID string          `json:"directoryId"`
	Clean       bool            `json:"clean"` // it was closed in order
	InUse       bool            `json:"inUse"`
	Partitions  int             `json:"partitions"`
}

// Totals count what was looked at.
type Totals struct {
	Files      int64 `json:"files"`
	Partitions int64 `json:"partitions"`
	Segments   int64 `json:"segments"`
	Batches    int64 `json:"batches"`
	Records    int64 `json:"records"`
	Bytes      int64 `json:"bytes"` // of logs
}

// Report is what a check found. Of one kind in one file the first few findings are kept, the others counted.
type Report struct {
	Directories []Directory `json:"directories"`
	Checked     Totals      `json:"checked"`
	FaultCount  int         `json:"faultCount"`
	NoteCount   int         `json:"noteCount"`
	Faults      []Finding   `json:"faults"`
	Notes       []Finding   `json:"notes"`

	seen map[seenKey]int
	more []seenKey // in the order in which their findings became too many
}

type seenKey struct {
	name  Fault
	file  string
	fault bool
}

const (
	keptOfAKind = 10   // findings of one name in one file
	keptOfAll   = 5000 // faults, and notes
)

func newReport() *Report {
	return &Report{Directories: []Directory{}, Faults: []Finding{}, Notes: []Finding{}, seen: map[seenKey]int{}}
}

func (r *Report) add(fault bool, f Finding) {
	list, count := &r.Notes, &r.NoteCount
	if fault {
		list, count = &r.Faults, &r.FaultCount
	}
	*count++
	key := seenKey{f.Name, f.File, fault}
	if r.seen[key]++; r.seen[key] > keptOfAKind {
		if r.seen[key] == keptOfAKind+1 {
			r.more = append(r.more, key)
		}
		return
	}
	if len(*list) < keptOfAll {
		*list = append(*list, f)
	}
}

// finish adds how many were not kept.
func (r *Report) finish() {
	for _, key := range r.more {
		rest := r.seen[key] - keptOfAKind
		f := Finding{Name: key.name, File: key.file, Position: -1, Count: rest, Text: fmt.Sprintf("and %d more of these", rest)}
		if key.fault {
			r.Faults = append(r.Faults, f)
		} else {
			r.Notes = append(r.Notes, f)
		}
	}
	byFile := func(a, b Finding) int { return cmp.Compare(a.File, b.File) }
	slices.SortStableFunc(r.Faults, byFile)
	slices.SortStableFunc(r.Notes, byFile)
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// Print writes the report for people. Notes are left out but for their number, unless they are asked for.
func (r *Report) Print(w io.Writer, notes bool) error {
	var out strings.Builder
	for _, d := range r.Directories {
		fmt.Fprintf(&out, "%s: %s\n", d.Path, d.describe())
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&out, "FAULT %s\n", f)
	}
	if notes {
		for _, f := range r.Notes {
			fmt.Fprintf(&out, "note  %s\n", f)
		}
	}
	c := r.Checked
	fmt.Fprintf(&out, "%s, %s, %s, %s, %s, %d bytes of logs: %s, %s\n", count(c.Files, "file"), count(c.Partitions, "partition"),
		count(c.Segments, "segment"), count(c.Batches, "batch"), count(c.Records, "record"), c.Bytes,
		count(int64(r.FaultCount), "fault"), count(int64(r.NoteCount), "note"))
	_, err := io.WriteString(w, out.String())
	return err
}

func (d Directory) describe() string {
	whose := "its meta.properties cannot be used"
	if d.ClusterID != "" {
		whose = fmt.Sprintf("cluster %s, node %d, directory %s", d.ClusterID, d.NodeID, cmp.Or(d.DirectoryID, "without an id"))
	}
	state := "not closed in order"
	switch {
	case d.InUse:
		state = "IN USE: what a server writes meanwhile may look unfinished"
	case d.Clean:
		state = "closed in order"
	}
	return fmt.Sprintf("%s; %s; %s", whose, state, count(int64(d.Partitions), "partition"))
}

func count(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
