//go:build compat

package compat

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// damagedIsTriedAgain garbles a byte of a sealed segment under a running node. The partition cannot be compacted, which log and metrics
// say; it serves what is whole, the other partitions are compacted, and when the byte is as it was the partition is, too.
func damagedIsTriedAgain(t *testing.T) {
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	properties := map[string]string{"ottla.metrics.listener": net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	for key, value := range compactionProperties {
		properties[key] = value
	}
	d := &damaged{T: t, node: startNode(t, "damaged", properties), metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", port)}
	defer explain(t, d.node)
	d.run()
}

type damaged struct {
	*testing.T
	node    *harness.Node
	metrics string
	client  *kgo.Client
	rounds  int
}

func (d *damaged) run() {
	ctx := limited(d.T, compactionLimit)
	var err error
	if d.client, err = producerOf(d.node.Addr(), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(30_000)); err != nil {
		d.Fatal(err)
	}
	defer d.client.Close()
	admin := kadm.NewClient(d.client)
	for topic, policy := range map[string]string{"good": "compact", "bad": "delete"} { // bad is damaged before the cleaner has seen it
		made, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"cleanup.policy": &policy}, topic)
		if err != nil || made.Err != nil {
			d.Fatal(err, made.Err)
		}
	}
	d.write("bad", 150)
	logs, err := filepath.Glob(filepath.Join(d.node.DataDir(), "bad-0", "*.log"))
	if err != nil || len(logs) < 2 {
		d.Fatalf("segments of bad: %v, %v", logs, err)
	}
	mend := d.garble(slices.Min(logs))
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "cleanup.policy", Value: kadm.StringPtr("compact")}}, "bad")
	if err != nil || altered[0].Err != nil {
		d.Fatal(err, altered)
	}
	const uncleanable = "kafka_log_logcleanermanager_uncleanable_partitions_count"
	d.until("a failure is counted", func() bool {
		return d.metric(uncleanable) == 1 && d.metric("ottla_log_cleaner_failures_total") >= 1 && d.metric("kafka_log_logcleanermanager_uncleanable_bytes") > 0
	})
	d.write("bad", 1)
	d.until("others are compacted meanwhile", func() bool { d.write("good", 50); return d.checkpoint("good") > 0 })
	if at := d.checkpoint("bad"); at != 0 {
		d.Fatalf("bad is compacted up to %d", at)
	}
	last, err := franz.New(d.node.Addr()).Consume(ctx, suite.ConsumeOptions{Topic: "bad", From: map[int32]int64{0: 150}})
	if err != nil || len(last) != 1 {
		d.Fatalf("of what is whole %d records are read, %v", len(last), err)
	}
	text, err := os.ReadFile(d.node.LogPath())
	if err != nil || !regexp.MustCompile(`level=WARN msg="a log cannot be compacted and is tried again later" partition=bad-0 failures=1 pause=15s error=".*00000000000000000000\.log`).Match(text) {
		d.Errorf("the server's log does not name it (%v):\n%s", err, d.node.LogTail(30))
	}
	mend()
	d.until("the mended one is compacted", func() bool { return d.checkpoint("bad") > 0 && d.metric(uncleanable) == 0 })
	harness.Progress("compaction: a garbled partition was tried again, the other one was compacted up to %d meanwhile", d.checkpoint("good"))
}

// write gives a topic large values of few keys.
func (d *damaged) write(topic string, n int) {
	d.Helper()
	d.rounds++
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "key %d", i%7), Value: fmt.Appendf(nil, "%d %d %s", d.rounds, i, strings.Repeat("x", 20_000)),
		})
	}
	for _, r := range records {
		d.client.Produce(limited(d.T, compactionLimit), r, nil)
	}
	if err := d.client.Flush(limited(d.T, compactionLimit)); err != nil {
		d.Fatal(err)
	}
}

// garble turns a byte in the middle of a file around; mend turns it back.
func (d *damaged) garble(file string) (mend func()) {
	d.Helper()
	turn := func() {
		d.Helper()
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			d.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			d.Fatal(err)
		}
		var b [1]byte
		if _, err := f.ReadAt(b[:], info.Size()/2); err != nil {
			d.Fatal(err)
		}
		b[0] = ^b[0]
		if _, err := f.WriteAt(b[:], info.Size()/2); err != nil {
			d.Fatal(err)
		}
	}
	turn()
	return turn
}

func (d *damaged) until(what string, is func() bool) {
	d.Helper()
	if !awaitFiles(limited(d.T, compactionLimit), is) {
		d.Fatalf("waited %v until %s", compactionLimit, what)
	}
}

// metric is the value of the only series of a name; 0 if there is none.
func (d *damaged) metric(name string) float64 {
	d.Helper()
	resp, err := http.Get(d.metrics) //nolint:noctx // ended by the test's own limit
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		d.Fatal(err)
	}
	return value
}

// checkpoint is how far a topic is compacted.
func (d *damaged) checkpoint(topic string) int {
	text, _ := os.ReadFile(filepath.Join(d.node.DataDir(), "cleaner-offset-checkpoint"))
	found := regexp.MustCompile(`(?m)^` + topic + ` 0 (\d+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}
