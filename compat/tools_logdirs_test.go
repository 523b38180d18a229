//go:build compat

package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// TestLogDirs moves replicas between two log directories by Apache Kafka's tools, to and fro, while idempotent producers write to
// them: no record is lost, doubled or out of order. Then DumpLogSegments reads every file, and Apache Kafka opens the directories.
func TestLogDirs(t *testing.T) {
	need(t)
	dir := workDir(t)
	first, second := filepath.Join(dir, "data"), filepath.Join(dir, "data-2")
	node := startNodeIn(t, harness.Options{
		Kind: target(t), Name: "moving", Dir: dir,
		Properties: map[string]string{"log.dirs": first + "," + second, "log.index.interval.bytes": "2048"},
	})
	defer explain(t, node)
	java := startJava(t, t.TempDir())
	tools := &toolT{cell: &cell{T: t}, ctx: cellContext(t), java: java, node: node, ref: franz.New(node.Addr()), dir: t.TempDir()}

	tools.create("quiet", 2, map[string]string{"segment.bytes": "1048576"})
	var quiet []suite.Record
	for i := range 3000 {
		quiet = append(quiet, suite.Record{Partition: int32(i % 2), Key: fmt.Appendf(nil, "%d", i), Value: []byte(strings.Repeat(fmt.Sprint(i), 400))})
	}
	if _, err := tools.ref.Produce(tools.ctx, suite.ProduceOptions{Topic: "quiet", Acks: "all", Idempotent: true}, quiet); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	loads := startLoads(t, node, 2, stop)
	goOn(t, loads, 1000)
	before := readAll(t, node, map[string]int{"quiet": 2})

	// Slowly, to see one on its way, also on a busy machine; then as fast as it goes, to and fro.
	plan := planMoves(tools, first, second)
	tools.says(tools.ok(reassignCommand, "--execute", "--replica-alter-log-dirs-throttle", "30000", "--reassignment-json-file", plan),
		`The replica-alter-dir throttle limit was set to 30000 B/s`)
	onTheWay := describeDirs(tools)
	goOn(t, loads, 500)
	if len(onTheWay.futures) == 0 {
		t.Error("no replica is on its way")
	}
	tools.ok(configTool, "--entity-type", "brokers", "--entity-name", "1", "--alter", "--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second")
	finishMoves(tools, plan)
	for range 2 {
		goOn(t, loads, 500)
		plan = planMoves(tools, first, second)
		tools.ok(reassignCommand, "--execute", "--reassignment-json-file", plan)
		finishMoves(tools, plan)
	}
	goOn(t, loads, 500)
	close(stop)
	judgeLoads(t, node, loads)
	compareTopics(t, "after the moves", before, readAll(t, node, map[string]int{"quiet": 2}))
	stopCleanly(t, node)
	dumpMoved(t, java, first, second)

	next, err := node.Successor(harness.Kafka, "successor", workDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	restart(t, next)
	defer explain(t, next)
	compareTopics(t, "by Apache Kafka on the directories", before, readAll(t, next, map[string]int{"quiet": 2}))
	judgeAgain(t, next, loads)
	tools.node = next
	if found := describeDirs(tools); len(found.futures) != 0 || len(found.at) < 4 {
		t.Errorf("Apache Kafka finds %+v", found)
	}
	stopCleanly(t, next)
}

// dumpMoved gives the files of the quiet topic to DumpLogSegments; the others are too long for it.
func dumpMoved(t *testing.T, java *driver.Process, dirs ...string) {
	t.Helper()
	files := func(pattern string) (found []string) {
		for _, dir := range dirs {
			more, err := filepath.Glob(filepath.Join(dir, "quiet-[01]", pattern))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, more...)
		}
		return found
	}
	dump(t, java, files("*.log"), "--deep-iteration")
	dump(t, java, files("*index"), "--verify-index-only")
	dump(t, java, files("*.snapshot"))
}

const reassignCommand = "reassign.ReassignPartitionsCommand"

// dirsFound is where LogDirsCommand finds the partitions of the test.
type dirsFound struct {
	at      map[string]string // partition → directory
	futures map[string]string
}

func describeDirs(t *toolT) dirsFound {
	t.Helper()
	out := t.ok("LogDirsCommand", "--describe", "--topic-list", "quiet,crash-0,crash-1")
	var described struct {
		Brokers []struct {
			LogDirs []struct {
				LogDir     string
				Partitions []struct {
					Partition string
					OffsetLag int64
					IsFuture  bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.Split(out, "\n")[2]), &described); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	found := dirsFound{at: map[string]string{}, futures: map[string]string{}}
	for _, dir := range described.Brokers[0].LogDirs {
		for _, p := range dir.Partitions {
			if p.IsFuture {
				found.futures[p.Partition] = dir.LogDir
			} else {
				found.at[p.Partition] = dir.LogDir
			}
			if p.OffsetLag < 0 || p.OffsetLag > 0 && !p.IsFuture {
				t.Errorf("%s in %s lags by %d", p.Partition, dir.LogDir, p.OffsetLag)
			}
		}
	}
	return found
}

// planMoves writes a plan that moves every partition to the other directory.
func planMoves(t *toolT, first, second string) string {
	t.Helper()
	var moves []map[string]any
	for partition, dir := range describeDirs(t).at {
		to := first
		if dir == first {
			to = second
		}
		at := strings.LastIndex(partition, "-")
		var number int
		if _, err := fmt.Sscan(partition[at+1:], &number); err != nil {
			t.Fatal(err)
		}
		moves = append(moves, map[string]any{"topic": partition[:at], "partition": number, "replicas": []int{1}, "log_dirs": []string{to}})
	}
	return t.jsonFile("plan", map[string]any{"version": 1, "partitions": moves})
}

// finishMoves waits until the tool says that every replica of a plan has moved, and looks that it has.
func finishMoves(t *toolT, plan string) {
	t.Helper()
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	var wanted struct {
		Partitions []struct {
			Topic     string
			Partition int
			LogDirs   []string `json:"log_dirs"`
		}
	}
	if err := json.Unmarshal(text, &wanted); err != nil {
		t.Fatal(err)
	}
	out := ""
	for ctx := cellContext(t.T); ; {
		out = t.ok(reassignCommand, "--verify", "--reassignment-json-file", plan)
		if strings.Count(out, "completed successfully") == len(wanted.Partitions) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the moves do not end:\n%s", out)
		}
	}
	found := describeDirs(t)
	for _, p := range wanted.Partitions {
		name := fmt.Sprintf("%s-%d", p.Topic, p.Partition)
		if found.at[name] != p.LogDirs[0] || found.futures[name] != "" {
			t.Errorf("%s is in %s, on its way to %q; it was to be in %s", name, found.at[name], found.futures[name], p.LogDirs[0])
		}
	}
}

func compareTopics(t *testing.T, when string, want, got map[string][]suite.Record) {
	t.Helper()
	for topic := range want {
		if len(got[topic]) != len(want[topic]) {
			t.Errorf("%s %s has %d records, not %d", when, topic, len(got[topic]), len(want[topic]))
			continue
		}
		for i := range want[topic] {
			if fmt.Sprint(got[topic][i]) != fmt.Sprint(want[topic][i]) {
				t.Errorf("%s offset %d of %s-%d differs", when, want[topic][i].Offset, topic, want[topic][i].Partition)
				break
			}
		}
	}
}

// judgeAgain reads the loads' topics of another server: what was acknowledged, in order.
func judgeAgain(t *testing.T, node *harness.Node, loads []*crashLoad) {
	t.Helper()
	for i, l := range loads {
		log, err := franz.New(node.Addr()).Consume(cellContext(t), suite.ConsumeOptions{Topic: l.topic, From: map[int32]int64{0: 0}})
		if err != nil {
			t.Fatal(err)
		}
		if len(log) != len(l.acks) {
			t.Errorf("%s: %d records, %d were acknowledged", l.topic, len(log), len(l.acks))
			continue
		}
		for n := range log {
			if want := strings.Repeat("p", i*40) + fmt.Sprint(n); string(log[n].Value) != want {
				t.Errorf("%s: offset %d holds %q, not %q", l.topic, n, log[n].Value, want)
				break
			}
		}
	}
}
