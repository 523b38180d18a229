//go:build compat

package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// TestDump loads a node of the target kind, stops it, runs Apache Kafka's DumpLogSegments over every file it left, and then starts
// Apache Kafka on the directory: no fault, no warning about files, all records there.
func TestDump(t *testing.T) {
	need(t)
	node := startNode(t, "loaded", smallIndexes)
	topics := load(t, node)
	before := readAll(t, node, topics)
	stopCleanly(t, node)
	checkFiles(t, "the loaded node has left", node.DataDir())

	java := startJava(t, t.TempDir())
	t.Run("DumpLogSegments", func(t *testing.T) { dumpEveryFile(t, java, node.Kind(), node.DataDir()) })
	t.Run("ApacheKafkaOnTheDirectory", func(t *testing.T) { handOver(t, node, harness.Kafka, topics, before) })
}

// TestAdopt is the other direction: Apache Kafka writes, and the target opens its directory.
func TestAdopt(t *testing.T) {
	need(t)
	node := startNodeIn(t, harness.Options{Kind: harness.Kafka, Name: "left-by-kafka", Dir: workDir(t), Properties: smallIndexes})
	topics := load(t, node)
	before := readAll(t, node, topics)
	stopCleanly(t, node)
	checkFiles(t, "Apache Kafka has left", node.DataDir())
	handOver(t, node, target(t), topics, before)
}

// smallIndexes makes index entries and cleaner checkpoints frequent enough to be worth looking at.
var smallIndexes = map[string]string{"log.index.interval.bytes": "2048"}

// loadTopics are the topics that load fills, with their configuration.
var loadTopics = []struct {
	name       string
	partitions int
	codec      string
	configs    map[string]string
}{
	{"load-none", 2, "none", map[string]string{"segment.bytes": "1048576"}},
	{"load-gzip", 1, "gzip", map[string]string{"segment.bytes": "1048576"}},
	{"load-snappy", 1, "snappy", nil},
	{"load-lz4", 1, "lz4", nil},
	{"load-zstd", 1, "zstd", map[string]string{"segment.index.bytes": "1024"}},
	{"load-converted", 1, "zstd", map[string]string{"compression.type": "gzip"}},
	{"load-append-time", 2, "gzip", map[string]string{"message.timestamp.type": "LogAppendTime", "segment.bytes": "1048576"}},
	{"load-compact", 1, "none", map[string]string{"cleanup.policy": "compact"}},
	{"load-deleted-records", 1, "none", map[string]string{"segment.bytes": "1048576"}},
	{"load-wide", 30, "none", nil},
	{"load.with-dots_and-dashes", 1, "none", nil},
}

// load fills a node: once before it is killed, once before it is stopped and started, and once more.
func load(t *testing.T, node *harness.Node) map[string]int {
	t.Helper()
	ctx := cellContext(t)
	ref := franz.New(node.Addr())
	topics := map[string]int{}
	for _, topic := range loadTopics {
		if err := ref.CreateTopic(ctx, topic.name, topic.partitions, topic.configs); err != nil {
			t.Fatal(err)
		}
		topics[topic.name] = topic.partitions
	}
	if err := ref.CreateTopic(ctx, "load-gone", 3, nil); err != nil {
		t.Fatal(err)
	}
	fill(t, ctx, ref, 1)
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	restart(t, node)
	fill(t, ctx, ref, 2)
	stopCleanly(t, node)
	restart(t, node)
	fill(t, ctx, ref, 3)
	if err := ref.DeleteTopic(ctx, "load-gone"); err != nil {
		t.Fatal(err)
	}
	if err := ref.CreatePartitions(ctx, "load-wide", 33); err != nil {
		t.Fatal(err)
	}
	topics["load-wide"] = 33
	for _, before := range []int64{10, 400} {
		if _, err := ref.DeleteRecords(ctx, "load-deleted-records", 0, before); err != nil {
			t.Fatal(err)
		}
	}
	return topics
}

func restart(t *testing.T, node *harness.Node) {
	t.Helper()
	if _, err := node.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// fill writes a round of records into every topic.
func fill(t *testing.T, ctx context.Context, ref *franz.Client, round int) {
	t.Helper()
	for _, topic := range loadTopics {
		for _, idempotent := range []bool{false, true} {
			var records []suite.Record
			for i := range 300 {
				records = append(records, suite.Record{
					Partition: int32(i % topic.partitions),
					Key:       fmt.Appendf(nil, "key-%d", i%50),
					Value:     fmt.Appendf(nil, "%s round %d record %d %s", topic.name, round, i, strings.Repeat("v", i*10)),
					Headers:   []suite.Header{{Key: "round", Value: fmt.Append(nil, round)}, {Key: "null", Value: nil}},
				})
			}
			records[7].Value = nil
			o := suite.ProduceOptions{Topic: topic.name, Codec: topic.codec, Idempotent: idempotent, BatchBytes: 20_000}
			acks, err := ref.Produce(ctx, o, records)
			if err != nil {
				t.Fatalf("fill %s: %v", topic.name, err)
			}
			if i := slices.IndexFunc(acks, func(a suite.Ack) bool { return a.Err != "" }); i >= 0 {
				t.Fatalf("fill %s: record %d: %s", topic.name, i, acks[i].Err)
			}
		}
	}
}

// readAll reads every record of the topics.
func readAll(t *testing.T, node *harness.Node, topics map[string]int) map[string][]suite.Record {
	t.Helper()
	ctx := cellContext(t)
	all := map[string][]suite.Record{}
	ref := franz.New(node.Addr())
	for topic, partitions := range topics {
		from := map[int32]int64{}
		for p := range int32(partitions) {
			from[p] = suite.Earliest
		}
		records, err := ref.Consume(ctx, suite.ConsumeOptions{Topic: topic, From: from})
		if err != nil {
			t.Fatalf("read %s from %s: %v\n%s", topic, node.Kind(), err, node.LogTail(15))
		}
		slices.SortFunc(records, func(a, b suite.Record) int {
			if a.Partition != b.Partition {
				return int(a.Partition - b.Partition)
			}
			return int(a.Offset - b.Offset)
		})
		all[topic] = records
	}
	return all
}

// dumpFaults is what DumpLogSegments prints about a file it does not like.
var dumpFaults = regexp.MustCompile(`(?i)isvalid: false|invalid bytes at the end|Non-consecutive offsets|Mismatches in|are not found in|` +
	`out of order timestamp|timestamp mismatch|Error at|Ignoring unknown file|exception|Could not`)

// dumpEveryFile gives every segment, index, snapshot and checkpoint file of the directories to DumpLogSegments.
func dumpEveryFile(t *testing.T, java *driver.Process, kind harness.Kind, dirs ...string) {
	t.Helper()
	var logs, indexes, others, metadata []string
	sort := func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inMetadata := strings.Contains(path, "__cluster_metadata-0")
		switch filepath.Ext(path) {
		case ".log":
			if inMetadata {
				metadata = append(metadata, path)
			} else {
				logs = append(logs, path)
			}
		case ".checkpoint":
			metadata = append(metadata, path)
		case ".index", ".timeindex":
			if !preallocated(kind, entry) {
				indexes = append(indexes, path)
			}
		case ".snapshot", ".txnindex":
			others = append(others, path)
		}
		return nil
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, sort); err != nil {
			t.Fatal(err)
		}
	}
	harness.Progress("DumpLogSegments over %d log, %d index, %d snapshot and %d metadata files", len(logs), len(indexes), len(others), len(metadata))
	dump(t, java, logs, "--deep-iteration")
	dump(t, java, indexes, "--verify-index-only")
	dump(t, java, others)
	dump(t, java, metadata, "--cluster-metadata-decoder")
	sane := dump(t, java, indexes, "--index-sanity-check")
	for _, file := range indexes {
		if !strings.Contains(sane, file+" passed sanity check.") && !strings.Contains(sane, file+" is empty.") {
			t.Errorf("%s did not pass the index sanity check", file)
		}
	}
}

// preallocated tells whether an index file is one that Apache Kafka left at its full size, as it does where a log is not closed
// (deleted topics, the metadata log): DumpLogSegments cannot read those. Ottla's files are never preallocated.
func preallocated(kind harness.Kind, entry os.DirEntry) bool {
	info, err := entry.Info()
	return kind == harness.Kafka && err == nil && info.Size() >= 10<<20-12
}

// firstBatch is what DumpLogSegments says of every segment but a log's first: it counts offsets from zero.
var firstBatch = regexp.MustCompile(`(?m)^Non-consecutive offsets in .*\n  -1 is followed by \d+\n`)

// dump runs DumpLogSegments over files and fails on every fault in what it prints.
func dump(t *testing.T, java *driver.Process, files []string, flags ...string) string {
	t.Helper()
	if len(files) == 0 {
		t.Errorf("no file for DumpLogSegments %v", flags)
		return ""
	}
	result, err := java.Tool(cellContext(t), "DumpLogSegments", "", append(flags, "--files", strings.Join(files, ","))...)
	if err != nil {
		t.Fatal(err)
	}
	result.Stderr = firstBatch.ReplaceAllString(result.Stderr, "")
	if result.Exit != 0 || result.Stderr != "" {
		t.Errorf("DumpLogSegments %v: %s", flags, result)
	}
	file := ""
	for line := range strings.Lines(result.Stdout) {
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			file = strings.TrimSpace(name)
		}
		if dumpFaults.MatchString(line) {
			t.Errorf("DumpLogSegments %v, %s: %s", flags, file, strings.TrimSpace(line))
		}
	}
	if n := strings.Count(result.Stdout, "Dumping "); n != len(files) {
		t.Errorf("DumpLogSegments %v dumped %d of %d files", flags, n, len(files))
	}
	return result.Stdout
}

// logTrouble are warnings and errors of a server's log.
var logTrouble = regexp.MustCompile(`(?m)^.*\b(WARN|ERROR|FATAL)\b.*$`)

// harmless are warnings that have nothing to do with files: Apache Kafka gives them on its own directories too, and on a busy machine.
var harmless = regexp.MustCompile(`Performing controller activation|NetworkClient|KafkaNetworkChannel|properties|slow controller event|heartbeat`)

// lateRegistration is an error of a controller that registers itself before it is active, on a busy machine. It tries again, and says so.
const lateRegistration, registered = "Unexpected error handling request RequestHeader(apiKey=CONTROLLER_REGISTRATION,", "Our registration has been persisted to the metadata log"

// complaints are the warnings and errors of what a server has logged, but for the harmless ones.
func complaints(logged string) (lines []string) {
	for _, at := range logTrouble.FindAllStringIndex(logged, -1) {
		line := logged[at[0]:at[1]]
		if !harmless.MatchString(line) && !(strings.Contains(line, lateRegistration) && strings.Contains(logged[at[1]:], registered)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// aboutFiles picks Ottla's warnings about files. It warns besides of features that Apache Kafka has finalized and that it does not
// serve, which is as it should be.
var aboutFiles = regexp.MustCompile(`(?i)ERROR|\.log|index|snapshot|checkpoint|corrupt|truncat|rebuil|torn`)

// handOver starts a node of a kind on the directory that another has left: it must not complain about any file, show every record, and
// take more.
func handOver(t *testing.T, left *harness.Node, kind harness.Kind, topics map[string]int, before map[string][]suite.Record) {
	t.Helper()
	next, err := left.Successor(kind, "successor", workDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	restart(t, next)
	after := readAll(t, next, topics)
	for topic, want := range before {
		got := after[topic]
		if len(got) != len(want) {
			t.Errorf("%s: %d records, %d were written", topic, len(got), len(want))
			continue
		}
		for i := range want {
			if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
				t.Errorf("%s: partition %d offset %d differs: %v, written was %v", topic, want[i].Partition, want[i].Offset, got[i], want[i])
				break
			}
		}
	}
	fill(t, cellContext(t), franz.New(next.Addr()), 4)
	stopCleanly(t, next)
	text, err := os.ReadFile(next.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range complaints(string(text)) {
		if kind == harness.Kafka || aboutFiles.MatchString(line) {
			t.Errorf("%s on the directory of %s: %s", kind, left.Kind(), line)
		}
	}
	explain(t, next)
}
