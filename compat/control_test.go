//go:build compat

package compat

import (
	"path/filepath"
	"slices"
	"testing"

	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// controlSample are the rows that TestControlSample runs again.
var controlSample = []string{"codec-zstd", "keys-headers", "above-the-limit", "offsets-by-time", "delete-records", "topic-life"}

// TestControlSample checks the recorded control column: it must hold a result for every cell of today's lists, and a sample of
// them must come out the same when Apache Kafka is run again.
func TestControlSample(t *testing.T) {
	if target(t) != harness.Kafka {
		t.Fatal("the control is Apache Kafka: set OTTLA_COMPAT_TARGET=kafka")
	}
	need(t, "kcat", "python", "node")
	recorded := readControl(t, "clients")
	for _, name := range cellNames() {
		if recorded[name] == "" {
			t.Errorf("the control column has no cell %s: run make control", name)
		}
	}
	checkApplicationsRecorded(t)
	tools := readControl(t, "tools")
	for _, c := range toolCases() {
		if name := c.tool + " " + c.what + "/result"; tools[name] == "" {
			t.Errorf("the control column has no cell %s: run make control", name)
		}
	}
	node := startNode(t, "control", nil)
	results := suite.NewResults("control sample", serverName(node.Kind()), "compat/run.sh control-sample")
	for _, client := range openClients(t, node) {
		var list []scenario.Scenario
		for _, s := range scenario.List() {
			if slices.Contains(controlSample, s.Name) {
				list = append(list, s)
			}
		}
		t.Run(client.Name(), func(t *testing.T) { runClient(t, node, client, list, results) })
	}
	for name, result := range results.ByCell() {
		if recorded[name] != result {
			t.Errorf("%s: %s now, %s recorded", name, result, recorded[name])
		}
	}
	stopCleanly(t, node)
}

func readControl(t *testing.T, part string) map[string]string {
	t.Helper()
	results, err := suite.ReadResults(filepath.Join(harness.Root(), "testdata", "control", part+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return results.ByCell()
}

// cellNames are all cells of the clients' table.
func cellNames() []string {
	var names []string
	for _, row := range scenario.Rows() {
		for _, client := range scenario.Clients {
			if scenario.Partakes(client, row) {
				names = append(names, row+"/"+client)
			}
		}
	}
	return names
}
