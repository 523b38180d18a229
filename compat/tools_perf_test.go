//go:build compat

package compat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/suite"
)

// perfToolCases are the tools that Apache Kafka's own system tests drive clients with, and those that measure.
func perfToolCases() []toolCase {
	return []toolCase{
		{"VerifiableProducer", "and VerifiableConsumer", verifiable},
		{"EndToEndLatency", "plain, and with keys and headers", endToEndLatency},
		{"ConsumerPerformance", "every option", consumerPerformance},
		{"ClientCompatibilityTest", "everything is supported", clientCompatibility},
		{"TransactionalMessageCopier", "copies in transactions", transactionalCopier},
	}
}

// events are the lines of JSON that the verifiable clients print.
func (t *toolT) events(text string) []map[string]any {
	t.Helper()
	var events []map[string]any
	for line := range strings.Lines(text) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, event)
	}
	return events
}

// names are the names of events in order, equal neighbours only once.
func names(events []map[string]any) string {
	var list []string
	for _, e := range events {
		if name := fmt.Sprint(e["name"]); len(list) == 0 || list[len(list)-1] != name {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// alone runs a tool that does its work while its JVM goes down, and so needs one of its own; it must exit with 0.
func (t *toolT) alone(class string, args ...string) string {
	t.Helper()
	r := t.process(class, append([]string{"--bootstrap-server", t.node.Addr()}, args...)...)
	if r.Exit != 0 {
		t.Fatalf("%s %v: %s", class, args, r)
	}
	return r.Stdout
}

func verifiable(t *toolT) {
	const n = 60
	t.create("verifiable", 1, nil)
	produced := t.events(t.alone("VerifiableProducer", "--topic", "verifiable", "--max-messages", strconv.Itoa(n), "--throughput", "5000",
		"--value-prefix", "7", "--repeating-keys", "5", "--message-create-time", "1700000000000", "--acks", "-1"))
	if got := names(produced); got != "startup_complete producer_send_success shutdown_complete tool_data" {
		t.Errorf("VerifiableProducer told %s", got)
	}
	stored, err := t.ref.Consume(t.ctx, suite.ConsumeOptions{Topic: "verifiable", From: map[int32]int64{0: 0}})
	if err != nil || len(stored) != n {
		t.Fatalf("%d records are there, want %d: %v", len(stored), n, err)
	}
	for i, r := range stored {
		value, key := fmt.Sprintf("7.%d", i), strconv.Itoa(i%5)
		e := produced[i+1]
		if string(r.Value) != value || string(r.Key) != key || r.Timestamp < 1700000000000 || r.Timestamp > 1800000000000 {
			t.Errorf("record %d is %s=%s of %d, want %s=%s", i, r.Key, r.Value, r.Timestamp, key, value)
		}
		if e["value"] != value || e["key"] != key || e["offset"] != float64(i) || e["topic"] != "verifiable" || e["partition"] != 0.0 {
			t.Errorf("event %d is %v", i, e)
		}
	}
	last := produced[len(produced)-1]
	if last["sent"] != float64(n) || last["acked"] != float64(n) {
		t.Errorf("VerifiableProducer sums up %v", last)
	}

	consumed := t.events(t.alone("VerifiableConsumer", "--topic", "verifiable", "--group-id", "verifiable", "--max-messages", strconv.Itoa(n),
		"--verbose", "--session-timeout", "30000", "--reset-policy", "earliest", "--assignment-strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor"))
	// It says that it was asked to go down from the JVM's hook, before or after the last of these.
	if got := strings.ReplaceAll(names(consumed), " shutdown_requested", ""); got != "startup_complete partitions_assigned record_data records_consumed offsets_committed partitions_revoked shutdown_complete" {
		t.Errorf("VerifiableConsumer told %s", got)
	}
	i := 0
	for _, e := range consumed {
		if e["name"] == "record_data" {
			if e["value"] != fmt.Sprintf("7.%d", i) || e["offset"] != float64(i) {
				t.Errorf("record %d is %v", i, e)
			}
			i++
		}
	}
	if i != n || t.committed("verifiable", "verifiable") != n {
		t.Errorf("%d records were consumed and %d committed, want %d", i, t.committed("verifiable", "verifiable"), n)
	}
}

// committed is the sum of what a group has committed of a topic.
func (t *toolT) committed(group, topic string) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(t.node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(t.ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic {
			sum += o.At
		}
	})
	return sum
}

func endToEndLatency(t *toolT) {
	const figures = `(?m)^Avg latency: [0-9.]+ ms\n+Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+\s*$`
	for _, acks := range []string{"1", "all"} {
		r := t.runWith("EndToEndLatency", "", "--bootstrap-server", t.node.Addr(), "--topic", "latency-"+acks, "--num-records", "200",
			"--producer-acks", acks, "--record-size", "100", "--record-key-size", "10", "--num-headers", "3",
			"--record-header-key-size", "4", "--record-header-size", "6")
		if r.Exit != 0 {
			t.Fatal(r)
		}
		t.says(r.Stdout, figures)
		if end, _, err := t.ref.ListOffset(t.ctx, "latency-"+acks, 0, suite.Latest); err != nil || end != 200 {
			t.Errorf("%d records were sent with acks=%s: %v", end, acks, err)
		}
	}
	r := t.runWith("EndToEndLatency", "", t.node.Addr(), "latency-plain", "100", "1", "20")
	if r.Exit != 0 {
		t.Fatal(r)
	}
	t.says(r.Stdout, figures)
	if r := t.runWith("EndToEndLatency", "", "--bootstrap-server", t.node.Addr(), "--topic", "latency-0", "--num-records", "1", "--producer-acks", "0", "--record-size", "1"); r.Exit != 1 {
		t.Errorf("acks=0: %s", r)
	}
}

func consumerPerformance(t *toolT) {
	const tool, n = "ConsumerPerformance", 3000
	t.create("consume-performance", 3, nil)
	t.ok("ProducerPerformance", "--topic", "consume-performance", "--num-records", strconv.Itoa(n), "--record-size", "1000", "--throughput", "-1",
		"--command-property", "compression.type=lz4")
	const header = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
	line := fmt.Sprintf(`^[-0-9]+ [:0-9]+, [-0-9]+ [:0-9]+, 2\.861\d, [0-9.]+, %d, [0-9.]+, \d+, -?\d+, -?[0-9.]+, -?[0-9.]+\n$`, n)
	out := t.ok(tool, "--topic", "consume-performance", "--num-records", strconv.Itoa(n), "--group", "consume-performance", "--timeout", "60000")
	row, found := strings.CutPrefix(out, header)
	if !found {
		t.Fatalf("no header in\n%s", out)
	}
	t.says(row, line)
	if got := t.committed("consume-performance", "consume-performance"); got != n {
		t.Errorf("%d were committed", got)
	}
	t.says(t.ok(tool, "--include", "consume-perf.*", "--num-records", strconv.Itoa(n), "--hide-header", "--command-property", "max.poll.records=100",
		"--fetch-size", "100000", "--socket-buffer-size", "65536", "--timeout", "60000"), line)
	detailed := t.ok(tool, "--topic", "consume-performance", "--num-records", strconv.Itoa(n), "--show-detailed-stats", "--reporting-interval", "1", "--print-metrics", "--timeout", "60000",
		"--command-property", "max.poll.records=10")
	t.says(detailed, `^time, threadId, data\.consumed\.in\.MB, MB\.sec, data\.consumed\.in\.nMsg, nMsg\.sec, rebalance\.time\.ms, fetch\.time\.ms, fetch\.MB\.sec, fetch\.nMsg\.sec\n`)
	if rows := len(regexp.MustCompile(`(?m)^[-0-9]+ [:0-9]+, 0, `).FindAllString(detailed, -1)); rows < 3 {
		t.Errorf("%d lines of detail in\n%s", rows, detailed)
	}
	// Records are counted when all of a fetch have been handed over, which may be none yet; fetches when they are answered.
	t.says(detailed, `(?m)^consumer-fetch-manager-metrics:records-consumed-total:\{.*\} +: \d+\.000`)
	t.says(detailed, `(?m)^consumer-fetch-manager-metrics:fetch-total:\{.*\} +: [1-9]\d*\.000`)
	nothing := t.run(tool, "--topic", "consume-performance", "--num-records", "10", "--from-latest", "--timeout", "1000", "--hide-header")
	if nothing.Exit != 0 || !strings.Contains(nothing.Stdout, "WARNING: Exiting before consuming the expected number of records") {
		t.Errorf("from the end, where nothing comes: %s", nothing)
	}
}

func clientCompatibility(t *toolT) {
	args := []string{"--topic", "client-compatibility", "--num-cluster-nodes", "1", "--expect-record-too-large-exception", "False"}
	for _, what := range []string{"offsets-for-times", "cluster-id", "create-topics", "describe-acls", "describe-configs", "idempotent-producer"} {
		args = append(args, "--"+what+"-supported", "True")
	}
	t.create("client-compatibility", 1, nil)
	r := t.run("ClientCompatibilityTest", args...)
	if r.Exit != 0 || !strings.Contains(r.Stdout, "All tests passed") && !strings.Contains(r.Stdout, "SUCCESS") {
		t.Fatal(r)
	}
}

// transactionalCopier copies a partition into another topic by transactions, and looks at what readers of the committed see.
func transactionalCopier(t *toolT) {
	const n = 500
	t.create("copier-in", 1, nil)
	t.create("copier-out", 1, nil)
	t.produce("copier-in", n)
	r := t.runWith("TransactionalMessageCopier", "", "--broker-list", t.node.Addr(), "--input-topic", "copier-in", "--input-partition", "0",
		"--output-topic", "copier-out", "--consumer-group", "copier", "--transactional-id", "copier", "--transaction-size", "50",
		"--enable-random-aborts", "--use-group-metadata")
	if r.Exit != 0 {
		t.Fatal(r)
	}
	want, err := t.ref.Consume(t.ctx, suite.ConsumeOptions{Topic: "copier-in", From: map[int32]int64{0: 0}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := t.ref.Consume(t.ctx, suite.ConsumeOptions{Topic: "copier-out", From: map[int32]int64{0: 0}, ReadCommitted: true, Count: n})
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d records were copied of %d: %v", len(got), len(want), err)
	}
	for i := range want {
		if string(got[i].Value) != string(want[i].Value) {
			t.Fatalf("record %d is %s, want %s", i, got[i].Value, want[i].Value)
		}
	}
	if c := t.committed("copier", "copier-in"); c != n {
		t.Errorf("%d were committed", c)
	}
}
