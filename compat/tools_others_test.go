//go:build compat

package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/kcat"
	"ottla/compat/suite"
)

func consoleCases() []toolCase {
	return []toolCase{
		{"ConsoleProducer", "a real file, read by ConsoleConsumer", consoleFile},
		{"kcat", "a real file", kcatFile},
		{"ConsoleProducer", "to a topic that it creates", func(t *toolT) {
			r := t.runWith("ConsoleProducer", "first\nsecond\n", "--bootstrap-server", t.node.Addr(), "--topic", "console-created")
			if r.Exit != 0 {
				t.Fatal(r)
			}
			out := t.ok("consumer.ConsoleConsumer", "--topic", "console-created", "--partition", "0", "--offset", "earliest", "--max-messages", "2")
			if out != "first\nsecond\n" {
				t.Fatalf("read %q", out)
			}
		}},
		{"ConsoleProducer", "with a key separator", func(t *toolT) {
			r := t.runWith("ConsoleProducer", "a:1\nb:2\n", "--bootstrap-server", t.node.Addr(), "--topic", "console-keys",
				"--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
			if r.Exit != 0 {
				t.Fatal(r)
			}
			out := t.ok("consumer.ConsoleConsumer", "--topic", "console-keys", "--partition", "0", "--offset", "0", "--max-messages", "2",
				"--formatter-property", "print.key=true", "--formatter-property", "key.separator==")
			if out != "a=1\nb=2\n" {
				t.Fatalf("read %q", out)
			}
		}},
		{"ConsoleProducer", "to an invalid topic", func(t *toolT) {
			r := t.runWith("ConsoleProducer", "x\n", "--bootstrap-server", t.node.Addr(), "--topic", "bad/name")
			t.says(r.Stderr, "InvalidTopicException")
		}},
		{"ConsoleConsumer", "until its timeout", func(t *toolT) {
			t.create("console-timeout", 1, nil)
			t.produce("console-timeout", 5)
			read := func(timeoutMs string) driver.ToolResult {
				return t.run("consumer.ConsoleConsumer", "--topic", "console-timeout", "--partition", "0", "--offset", "2", "--timeout-ms", timeoutMs)
			}
			r := read("3000")
			if r.Exit == 0 && !strings.Contains(r.Stderr, "Processed a total of 3 messages") { // a busy machine was slower than its timeout
				r = read("60000")
			}
			if r.Exit != 0 || strings.Count(r.Stdout, "\n") != 3 || !strings.Contains(r.Stderr, "Processed a total of 3 messages") {
				t.Fatal(r)
			}
		}},
	}
}

// produce writes n records by the reference client.
func (t *toolT) produce(topic string, n int) {
	t.Helper()
	acks, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: topic}, suite.Values("value", n, 30))
	if err != nil || acks[n-1].Err != "" {
		t.Fatalf("produce: %v %v", err, acks)
	}
}

// license is a real text file that every checkout has.
func (t *toolT) license() string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func consoleFile(t *toolT) {
	text := t.license()
	t.create("console-file", 1, nil)
	r := t.runWith("ConsoleProducer", text, "--bootstrap-server", t.node.Addr(), "--topic", "console-file", "--compression-codec", "zstd")
	if r.Exit != 0 {
		t.Fatal(r)
	}
	lines := strings.Count(text, "\n")
	out := t.ok("consumer.ConsoleConsumer", "--topic", "console-file", "--partition", "0", "--offset", "earliest", "--max-messages", strconv.Itoa(lines))
	if out != text {
		t.Fatalf("%d bytes went in, other %d came out", len(text), len(out))
	}
}

func kcatFile(t *toolT) {
	path := filepath.Join(harness.Root(), "LICENSE")
	t.create("kcat-file", 1, nil)
	c := kcat.New(t.node.Addr())
	// The whole file is one message.
	if _, diag, exit, err := c.Run(t.ctx, nil, "-P", "-t", "kcat-file", "-z", "gzip", path); err != nil || exit != 0 {
		t.Fatalf("kcat -P exit %d (%v): %s", exit, err, diag)
	}
	out, diag, exit, err := c.Run(t.ctx, nil, "-C", "-t", "kcat-file", "-o", "beginning", "-e", "-q", "-f", "%s")
	if err != nil || exit != 0 || out != t.license() {
		t.Fatalf("kcat -C exit %d (%v), %d bytes: %s", exit, err, len(out), diag)
	}
}

func offsetShellCases() []toolCase {
	const tool = "GetOffsetShell"
	return []toolCase{
		{tool, "latest, earliest and by time", func(t *toolT) {
			t.create("shell", 2, map[string]string{"retention.ms": "-1"})
			records := suite.Values("shell", 10, 20)
			for i := range records {
				records[i].Timestamp = 1_700_000_000_000 + int64(i)*1000
			}
			if _, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: "shell"}, records); err != nil {
				t.Fatal(err)
			}
			for at, want := range map[string]string{
				"latest": "shell:0:10\nshell:1:0\n", "-1": "shell:0:10\nshell:1:0\n",
				"earliest": "shell:0:0\nshell:1:0\n", "-2": "shell:0:0\nshell:1:0\n",
				"max-timestamp": "shell:0:9\n", "-3": "shell:0:9\n",
				"earliest-local": "shell:0:0\nshell:1:0\n", "latest-tiered": "", "earliest-pending-upload": "",
				"1700000004500": "shell:0:5\n", "1": "shell:0:0\n", "1800000000000": "",
			} {
				if out := t.ok(tool, "--topic", "shell", "--time", at); out != want {
					t.Errorf("--time %s printed %q, want %q", at, out, want)
				}
			}
		}},
		{tool, "by topic-partitions", func(t *toolT) {
			t.create("shell-parts", 3, nil)
			t.produce("shell-parts", 4)
			if out := t.ok(tool, "--topic-partitions", "shell-parts:0,shell-parts:2"); out != "shell-parts:0:4\nshell-parts:2:0\n" {
				t.Fatalf("printed %q", out)
			}
			if out := t.ok(tool, "--topic", "shell-parts", "--partitions", "1"); out != "shell-parts:1:0\n" {
				t.Fatalf("printed %q", out)
			}
		}},
		{tool, "no match", func(t *toolT) {
			r := t.run(tool, "--topic", "no-such-topic")
			if r.Exit != 1 || r.Stdout != "" || r.Stderr == "" {
				t.Fatalf("want exit 1 and text on standard error, got %s", r)
			}
		}},
	}
}

func otherToolCases() []toolCase {
	return []toolCase{
		{"DeleteRecordsCommand", "before an offset and up to the end", deleteRecordsTool},
		{"ProducerPerformance", "every codec and acks", producerPerformance},
		{"BrokerApiVersionsCommand", "every version of the APIs of one node", brokerAPIVersions},
	}
}

// deletion writes the JSON file that DeleteRecordsCommand reads.
func (t *toolT) deletion(topic string, offsets ...int64) string {
	t.Helper()
	var partitions []map[string]any
	for p, offset := range offsets {
		partitions = append(partitions, map[string]any{"topic": topic, "partition": p, "offset": offset})
	}
	data, err := json.Marshal(map[string]any{"version": 1, "partitions": partitions})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.dir, "delete.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func deleteRecordsTool(t *toolT) {
	const tool = "DeleteRecordsCommand"
	t.create("delete-tool", 2, nil)
	t.produce("delete-tool", 10)
	out := t.ok(tool, "--offset-json-file", t.deletion("delete-tool", 4, -1))
	t.says(out, `partition: delete-tool-0\tlow_watermark: 4`)
	t.says(out, `partition: delete-tool-1\tlow_watermark: 0`)
	if out := t.ok("GetOffsetShell", "--topic", "delete-tool", "--time", "earliest"); out != "delete-tool:0:4\ndelete-tool:1:0\n" {
		t.Fatalf("earliest offsets %q", out)
	}
	t.says(t.ok(tool, "--offset-json-file", t.deletion("delete-tool", 1000)), "error: .*OffsetOutOfRangeException")
	t.says(t.ok(tool, "--offset-json-file", t.deletion("delete-tool", -1)), `partition: delete-tool-0\tlow_watermark: 10`)
}

func producerPerformance(t *toolT) {
	const tool = "ProducerPerformance"
	t.create("performance", 3, nil)
	const n = 2000
	runs := 0
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, acks := range []string{"all", "1", "0"} {
			out := t.ok(tool, "--topic", "performance", "--num-records", strconv.Itoa(n), "--record-size", "300", "--throughput", "-1",
				"--command-property", "acks="+acks, "compression.type="+codec)
			t.says(out, fmt.Sprintf(`(?m)^%d records sent, .* records/sec`, n))
			runs++
		}
	}
	// What was sent with acks=0 may still be on its way.
	err := suite.Eventually(t.ctx, func() error {
		var total int64
		for p := range int32(3) {
			end, _, err := t.ref.ListOffset(t.ctx, "performance", p, suite.Latest)
			if err != nil {
				return err
			}
			total += end
		}
		if total != int64(n*runs) {
			return fmt.Errorf("%d records are there, want %d", total, n*runs)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nodeAPIs are the APIs that one node without groups and transactions serves to clients, with the versions of Apache Kafka 4.4.0.
var nodeAPIs = map[string]string{
	"Produce": "0 to 13", "Fetch": "4 to 18", "ListOffsets": "1 to 11", "Metadata": "0 to 13", "ApiVersions": "0 to 5",
	"CreateTopics": "2 to 7", "DeleteTopics": "1 to 6", "DeleteRecords": "0 to 2", "InitProducerId": "0 to 5",
	"OffsetForLeaderEpoch": "2 to 4", "DescribeConfigs": "1 to 4", "CreatePartitions": "0 to 3", "DescribeCluster": "0 to 2",
	"DescribeTopicPartitions": "0",
	"IncrementalAlterConfigs": "0 to 1", "AlterConfigs": "0 to 2", "ListConfigResources": "0 to 1", "DescribeLogDirs": "1 to 5",
	"DescribeQuorum": "0 to 2", "DescribeProducers": "0", "ElectLeaders": "0 to 2", "AlterPartitionReassignments": "0 to 1",
	"ListPartitionReassignments": "0", "UpdateFeatures": "0 to 2", "UnregisterBroker": "0",
	"DescribeUserScramCredentials": "0", "DescribeClientQuotas": "0 to 1", "DescribeAcls": "1 to 3",
}

func brokerAPIVersions(t *toolT) {
	out := t.ok("BrokerApiVersionsCommand")
	t.says(out, `^`+regexp.QuoteMeta(t.node.Addr())+` \(id: 1 rack: null isFenced: false\) -> \(`)
	line := regexp.MustCompile(`(?m)^\t(\w+)\(\d+\): (\d+(?: to \d+)?) \[usable: \d+\]`)
	found := map[string]string{}
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		found[m[1]] = m[2]
	}
	for name, versions := range nodeAPIs {
		if found[name] != versions {
			t.Errorf("%s: versions %q, want %q", name, found[name], versions)
		}
	}
	if t.Failed() {
		t.Logf("the tool printed:\n%s", out)
	}
}
