//go:build compat

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ottla/compat/chaos"
	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// setting is a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := harness.Setting(name, otherwise)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// chaosPause is about how long it is between two faults. A start of Apache Kafka takes ten seconds and more, with what its clients
// need until they are at work again: as many faults as Ottla bears would leave no time for any work.
func chaosPause(kind harness.Kind) time.Duration {
	if kind == harness.Kafka {
		return 25 * time.Second
	}
	return 5 * time.Second
}

// runChaos runs one seed on a node of its own.
func runChaos(t *testing.T, seed uint64, duration time.Duration) *chaos.Result {
	t.Helper()
	node := startNode(t, "chaos", map[string]string{"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"})
	defer explain(t, node)
	disk, err := harness.NewDiskCgroup("ottla-chaos", node.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), duration+8*time.Minute)
	defer cancel()
	result, err := chaos.Run(ctx, chaos.Options{
		Node: node, Seed: seed, Duration: duration, Pause: chaosPause(node.Kind()), SlowDisk: disk, Copiers: copiersOf(t, node.Addr()),
	})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, node.LogTail(15))
	}
	harness.Progress("chaos on %s, %s: %s", serverName(node.Kind()), duration, result)
	if !result.Sound() && node.Kind() == harness.Ottla { // what Apache Kafka does is recorded
		t.Errorf("chaos on %s: %s", serverName(node.Kind()), result)
	}
	if path := os.Getenv("OTTLA_CHAOS_HISTORY"); path != "" {
		writeHistory(t, path, result)
	}
	stopCleanly(t, node)
	if err := disk.Remove(); err != nil {
		t.Error(err)
	}
	return result
}

// copiersOf are the copy loops of other clients, those that OTTLA_CHAOS_CLIENTS names if it is there.
func copiersOf(t *testing.T, servers string) (copiers []chaos.Copier) {
	t.Helper()
	for name, start := range map[string]func(string) (*driver.Process, error){scenario.Java: driver.StartJava, scenario.Confluent: driver.StartPython} {
		if wanted := os.Getenv("OTTLA_CHAOS_CLIENTS"); wanted != "" && !strings.Contains(wanted, name) {
			continue
		}
		var process *driver.Process
		begin := func() (suite.Copier, error) {
			started, err := start(workDir(t))
			if err != nil {
				return nil, err
			}
			process = started
			return driver.NewClient(process, name, servers), nil
		}
		first, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Close() })
		renew := func() (suite.Copier, error) {
			_ = process.Close() // it is killed
			return begin()
		}
		copiers = append(copiers, chaos.Copier{Name: name, Copier: first, Renew: renew})
	}
	return copiers
}

// writeHistory keeps all that the clients saw, an operation a line, with its number.
func writeHistory(t *testing.T, path string, r *chaos.Result) {
	t.Helper()
	var text bytes.Buffer
	for n, op := range r.Ops {
		fmt.Fprintf(&text, "%d %+v\n", n, op)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Error(err)
	}
}

// TestChaos lets clients work on a node that is killed, stopped, suspended and slowed down, and judges what they saw.
// OTTLA_CHAOS_SECONDS and OTTLA_CHAOS_SEED choose another length and other faults; OTTLA_CHAOS_HISTORY names a file for what they saw.
func TestChaos(t *testing.T) {
	need(t, "python")
	runChaos(t, uint64(setting(t, "OTTLA_CHAOS_SEED", 1)), time.Duration(setting(t, "OTTLA_CHAOS_SECONDS", 45))*time.Second)
}

// soakLine is what is kept of one round of the long form.
type soakLine struct {
	Server, Date                        string
	Seed                                uint64
	Seconds                             int
	Faults                              map[string]int
	Operations                          int
	Committed, Aborted, Unknown, Copied int
	CopiedByOthers                      map[string]int
	Hung                                []string `json:",omitempty"` // clients that did not end, and were replaced
	DownSeconds, SettledSeconds         float64
	Anomalies                           int
	Found                               []string `json:",omitempty"`
}

// soakPath is where the lines of a long run are kept: those of Apache Kafka in its column.
func soakPath(t *testing.T, name string) string {
	if target(t) == harness.Kafka {
		return filepath.Join(harness.Root(), "testdata", "control", name)
	}
	return filepath.Join(harness.Root(), "testdata", "soak", name)
}

// TestChaosSoak goes on where the last one ended: OTTLA_CHAOS_ROUNDS rounds of OTTLA_CHAOS_SECONDS, each of the next seed, each
// appended to testdata/soak/chaos.jsonl (of Apache Kafka: testdata/control/) when it is over.
func TestChaosSoak(t *testing.T) {
	need(t, "python")
	duration := time.Duration(setting(t, "OTTLA_CHAOS_SECONDS", 300)) * time.Second
	soak(t, "chaos.jsonl", 100, func(t *testing.T, seed uint64) any { return soakLineOf(t, seed, duration, runChaos(t, seed, duration)) })
}

func soakLineOf(t *testing.T, seed uint64, duration time.Duration, r *chaos.Result) soakLine {
	t.Helper()
	return soakLine{
		serverName(target(t)), time.Now().UTC().Format(time.DateOnly), seed, int(duration.Seconds()), r.Faults, r.Report.Operations,
		r.Report.Committed, r.Report.Aborted, r.Report.Unknown, r.Copied, r.Copiers, r.Hung, r.Down.Seconds(), r.Settled.Seconds(),
		r.Report.Found() + len(r.Copy) + len(r.Strange), r.Found(),
	}
}

// soak runs OTTLA_CHAOS_ROUNDS rounds and appends what each gives to a file, whose number of lines says with which seed it goes on. It
// ends with the first round that fails, whose line is kept too.
func soak(t *testing.T, name string, seed uint64, round func(*testing.T, uint64) any) {
	path := soakPath(t, name)
	if text, err := os.ReadFile(path); err == nil {
		seed += uint64(bytes.Count(text, []byte{'\n'}))
	}
	for range setting(t, "OTTLA_CHAOS_ROUNDS", 10) {
		ok := t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			appendJSON(t, name, round(t, seed))
		})
		if !ok {
			return
		}
		seed++
	}
}

// appendJSON appends a line to a record of long runs.
func appendJSON(t *testing.T, name string, of any) {
	t.Helper()
	line, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	appendLine(t, soakPath(t, name), line)
}

func appendLine(t *testing.T, path string, line []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// TestHeld lets requests come past the next transaction, on Ottla and on Apache Kafka. With transactions v2 they do nothing; with
// v1, which cannot tell them apart, nothing that they do not do there.
func TestHeld(t *testing.T) {
	need(t)
	ctx := cellContext(t)
	results := map[harness.Kind]map[bool][]chaos.Late{}
	for _, kind := range []harness.Kind{harness.Kafka, target(t)} {
		if results[kind] != nil {
			continue
		}
		node := startNodeIn(t, harness.Options{Kind: kind, Name: "held", Dir: workDir(t)})
		results[kind] = map[bool][]chaos.Late{}
		for _, second := range []bool{false, true} {
			all, err := chaos.HoldRequests(ctx, node.Addr(), second)
			if err != nil {
				t.Fatalf("%s, transactions v2 %t: %v\n%s", serverName(kind), second, err, node.LogTail(15))
			}
			results[kind][second] = all
			for _, late := range all {
				harness.Progress("held: %s, transactions v2 %t: %+v", serverName(kind), second, late)
			}
		}
		node.Close()
	}
	for second, all := range results[target(t)] {
		for i, late := range all {
			if second && !late.Sound() || late.Worse(results[harness.Kafka][second][i]) {
				t.Errorf("transactions v2 %t: %+v; Apache Kafka: %+v", second, late, results[harness.Kafka][second][i])
			}
		}
	}
}

// TestBeginCommit begins and commits OTTLA_BEGIN_COMMIT transactions while the node is restarted, by kill -9 and by SIGTERM: none
// hangs, and the last stable offset reaches the end.
func TestBeginCommit(t *testing.T) {
	need(t)
	node := startNode(t, "begin-commit", nil)
	defer explain(t, node)
	count := setting(t, "OTTLA_BEGIN_COMMIT", 5000)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute+time.Duration(count)*20*time.Millisecond)
	defer cancel()
	result, err := chaos.BeginCommit(ctx, node, count, max(3, count/10_000))
	if err != nil {
		t.Fatal(err)
	}
	harness.Progress("%s: %s", serverName(node.Kind()), result)
	stopCleanly(t, node)
}
