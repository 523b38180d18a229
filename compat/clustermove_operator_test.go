//go:build compat

package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ottla/compat/driver"
	"ottla/compat/harness"
)

// operator does what the README tells an operator who moves a cluster to do, by the commands that it names and no others.
type operator struct {
	*testing.T
	java    *driver.Process
	servers string
	page    map[string]bool // each command on it, and whether it was run
	files   map[string]string
}

// moveChapter is the README's chapter on it.
const moveChapter = "## Moving a cluster from Apache Kafka, and back"

// newOperator reads the page. The topics are those that are reassigned.
func newOperator(t *testing.T, java *driver.Process, servers string, topics []string) *operator {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(harness.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(readme), moveChapter)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	dir := t.TempDir()
	o := &operator{T: t, java: java, servers: servers, page: map[string]bool{}, files: map[string]string{
		"topics.json": filepath.Join(dir, "topics.json"), "plan.json": filepath.Join(dir, "plan.json"),
	}}
	for line := range strings.Lines(chapter) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			command, _, _ = strings.Cut(command, "#")
			o.page[strings.TrimSpace(command)] = false
		}
	}
	var named []map[string]string
	for _, topic := range topics {
		named = append(named, map[string]string{"topic": topic})
	}
	o.write("topics.json", map[string]any{"version": 1, "topics": named})
	return o
}

func (o *operator) write(name string, value any) {
	o.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(o.files[name], text, 0o644)
	}
	if err != nil {
		o.Fatal(err)
	}
}

// did notes that a command of the page was run, if only in other words.
func (o *operator) did(command string) {
	o.Helper()
	if _, ok := o.page[command]; !ok {
		o.Errorf("the README does not say: %s", command)
	}
	o.page[command] = true
}

// allRan fails for every command of the page that was not run.
func (o *operator) allRan() {
	o.Helper()
	for _, command := range slices.Sorted(maps.Keys(o.page)) {
		if !o.page[command] {
			o.Errorf("the README tells to run what is not tested: %s", command)
		}
	}
}

// scripts are the classes behind Apache Kafka's scripts.
var scripts = map[string]string{
	"bin/kafka-features.sh":            "FeatureCommand",
	"bin/kafka-topics.sh":              "TopicCommand",
	"bin/kafka-reassign-partitions.sh": "reassign.ReassignPartitionsCommand",
	"bin/kafka-leader-election.sh":     "LeaderElectionCommand",
	"bin/kafka-cluster.sh":             "ClusterTool",
}

// run runs a command of the page, with other words in the place of some, and gives what it printed.
func (o *operator) run(command string, instead ...string) string {
	o.Helper()
	o.did(command)
	replaced := append([]string{"HOST:9092", o.servers, "topics.json", o.files["topics.json"], "plan.json", o.files["plan.json"]}, instead...)
	words := strings.Fields(strings.NewReplacer(replaced...).Replace(command))
	result, err := o.java.Tool(limited(o.T, clusterLimit), scripts[words[0]], "", words[1:]...)
	if err != nil || result.Exit != 0 {
		o.Fatalf("%s: %v, %s", strings.Join(words, " "), err, result)
	}
	return result.Stdout
}

// proposal is what kafka-reassign-partitions --generate prints last.
var proposal = regexp.MustCompile(`(?s)Proposed partition reassignment configuration\s*(\{.*\})`)

// reassign spreads all topics over brokers, and waits until that is done.
func (o *operator) reassign(brokers string) {
	o.Helper()
	said := o.run("bin/kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --generate --topics-to-move-json-file topics.json --broker-list 1,2,3,4", "1,2,3,4", brokers)
	found := proposal.FindStringSubmatch(said)
	if found == nil {
		o.Fatalf("no proposal:\n%s", said)
	}
	o.write("plan.json", json.RawMessage(found[1]))
	o.run("bin/kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --execute --reassignment-json-file plan.json")
	eventually(o.T, "the end of the reassignment to "+brokers, func(context.Context) error {
		said := o.run("bin/kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --verify --reassignment-json-file plan.json")
		if strings.Contains(said, "still in progress") || !strings.Contains(said, "is completed") {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
}

// unregister has the cluster forget a broker.
func (o *operator) unregister(id int) {
	o.Helper()
	o.run("bin/kafka-cluster.sh unregister --bootstrap-server HOST:9092 --id 3", "--id 3", fmt.Sprintf("--id %d", id))
}
