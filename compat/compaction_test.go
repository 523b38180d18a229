//go:build compat

package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
)

// compactionLimit bounds each wait of these tests.
const compactionLimit = 5 * time.Minute

// compactionProperties have logs compacted soon.
var compactionProperties = map[string]string{
	"log.cleaner.backoff.ms": "300", "log.cleaner.min.cleanable.ratio": "0", "log.segment.bytes": "1048576",
	"log.cleaner.dedupe.buffer.size": "4000000", "log.index.interval.bytes": "1024", "log.retention.ms": "-1",
	"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1",
}

// TestCompaction gives Ottla and Apache Kafka the same input. What their cleaners leave is the same; each then opens what the other has
// left, finds it equal, goes on, and compacts what comes.
func TestCompaction(t *testing.T) {
	need(t)
	t.Run("both", func(t *testing.T) {
		c := &compaction{T: t}
		for _, kind := range []harness.Kind{target(t), harness.Kafka} {
			c.nodes = append(c.nodes, startNodeIn(t, harness.Options{Kind: kind, Name: string(kind), Dir: workDir(t), Properties: compactionProperties}))
		}
		defer func() {
			for _, node := range c.nodes {
				explain(t, node)
			}
		}()
		c.write(1)
		c.sameEverywhere("first")
		c.exchange(2)
		c.write(2)
		c.sameEverywhere("exchanged")
		c.leaveAndCheck()
	})
	t.Run("tester", func(t *testing.T) {
		node := startNode(t, "tester", compactionProperties)
		defer explain(t, node)
		runCompactionTester(t, node, 100_000)
	})
	t.Run("offsets", committedOffsetsStay)
	t.Run("side by side", sideBySide)
}

// compaction is the two servers.
type compaction struct {
	*testing.T
	nodes []*harness.Node
}

const compactedTopic = "compacted"

// write gives each server the same batches, one at a time, of all codecs, plain and in transactions, with tombstones, and waits until
// they are compacted.
func (c *compaction) write(round int) {
	c.Helper()
	for _, node := range c.nodes {
		if err := writeCompacted(limited(c.T, compactionLimit), node.Addr(), round); err != nil {
			c.Fatalf("%s: %v", node.Kind(), err)
		}
		c.compacted(node)
		// The last batch of each producer that was known then stayed. Now it is another one on both.
		if err := writeFiller(limited(c.T, compactionLimit), node.Addr(), round); err != nil {
			c.Fatalf("%s: %v", node.Kind(), err)
		}
		c.compacted(node)
	}
}

// batchWriter sends batches one by one.
type batchWriter struct {
	ctx    context.Context
	random *rand.Rand
	now    int64
	err    error
}

func (w *batchWriter) send(client *kgo.Client, n int, record func(*kgo.Record)) {
	promise := kgo.AbortingFirstErrPromise(client)
	for range n {
		w.now += int64(w.random.IntN(50))
		r := &kgo.Record{Topic: compactedTopic, Partition: 0, Timestamp: time.UnixMilli(w.now)}
		record(r)
		client.Produce(w.ctx, r, promise.Promise())
	}
	w.err = errors.Join(w.err, client.Flush(w.ctx), promise.Err())
}

func (w *batchWriter) record(r *kgo.Record) {
	r.Key = fmt.Appendf(nil, "key %d", w.random.IntN(700))
	if w.random.IntN(8) == 0 {
		return // a tombstone
	}
	r.Value = make([]byte, 100+w.random.IntN(700))
	for i := range r.Value {
		r.Value[i] = byte('a' + w.random.IntN(4+i%60))
	}
	if w.random.IntN(10) == 0 {
		r.Headers = []kgo.RecordHeader{{Key: "header", Value: []byte("value")}}
	}
}

func producerOf(addr string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ManualFlushing(), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerLinger(0),
	}, more...)...)
}

func writeCompacted(ctx context.Context, addr string, round int) error {
	var clients []*kgo.Client
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	for _, more := range [][]kgo.Opt{
		{kgo.ProducerBatchCompression(kgo.NoCompression())},
		{kgo.ProducerBatchCompression(kgo.GzipCompression())},
		{kgo.ProducerBatchCompression(kgo.SnappyCompression())},
		{kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.TransactionalID("first")},
		{kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.TransactionalID("second")},
	} {
		client, err := producerOf(addr, more...)
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	if round == 1 {
		made, err := kadm.NewClient(clients[0]).CreateTopic(ctx, 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, compactedTopic)
		if err := errors.Join(err, made.Err); err != nil {
			return err
		}
	}
	w := &batchWriter{ctx: ctx, random: rand.New(rand.NewPCG(uint64(round), 1)), now: 1_700_000_000_000 + int64(round)*1e9}
	for range 300 {
		n := w.random.IntN(len(clients))
		client := clients[n]
		if n < 3 {
			w.send(client, 1+w.random.IntN(60), w.record)
		} else {
			w.err = errors.Join(w.err, client.BeginTransaction())
			for range 1 + w.random.IntN(3) {
				w.send(client, 1+w.random.IntN(40), w.record)
				if w.random.IntN(2) == 0 { // another one in between
					w.send(clients[w.random.IntN(3)], 1+w.random.IntN(5), w.record)
				}
			}
			w.err = errors.Join(w.err, client.EndTransaction(ctx, kgo.TransactionEndTry(w.random.IntN(3) != 0)), marked(ctx, clients[0]))
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// marked waits until the marker of the only transaction is written: the coordinator answers before.
func marked(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	for {
		ends, err := admin.ListEndOffsets(ctx, compactedTopic)
		if err != nil {
			return err
		}
		stable, err := admin.ListCommittedOffsets(ctx, compactedTopic)
		if err != nil {
			return err
		}
		end, _ := ends.Lookup(compactedTopic, 0)
		if is, _ := stable.Lookup(compactedTopic, 0); is.Offset == end.Offset {
			return nil
		}
	}
}

// writeFiller makes segments full.
func writeFiller(ctx context.Context, addr string, round int) error {
	client, err := producerOf(addr, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	if err != nil {
		return err
	}
	defer client.Close()
	w := &batchWriter{ctx: ctx, random: rand.New(rand.NewPCG(uint64(round), 2)), now: 1_700_000_500_000 + int64(round)*1e9}
	for i := range 50 {
		w.send(client, 1, func(r *kgo.Record) { r.Key, r.Value = fmt.Appendf(nil, "filler %d %d", round, i), make([]byte, 50_000) })
	}
	return w.err
}

// compacted waits until the checkpoint of the cleaner is where the active segment begins.
func (c *compaction) compacted(node *harness.Node) {
	c.Helper()
	var active int64
	var text []byte
	done := awaitFiles(limited(c.T, compactionLimit), func() bool {
		logs, err := filepath.Glob(filepath.Join(node.DataDir(), compactedTopic+"-0", "*.log"))
		if err != nil || len(logs) == 0 {
			c.Fatalf("no segments of %s: %v", node.Kind(), err)
		}
		active, _ = strconv.ParseInt(strings.TrimSuffix(filepath.Base(slices.Max(logs)), ".log"), 10, 64)
		text, _ = os.ReadFile(filepath.Join(node.DataDir(), "cleaner-offset-checkpoint"))
		return strings.Contains(string(text), fmt.Sprintf("\n%s 0 %d\n", compactedTopic, active)) && active > 0
	})
	if !done {
		c.Fatalf("waited %v for %s to compact up to %d; its checkpoint says\n%s", compactionLimit, node.Kind(), active, text)
	}
}

// awaitFiles looks at the files of a server until they are as wanted; false: ctx ended before.
func awaitFiles(ctx context.Context, wanted func() bool) bool {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !wanted() {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
	}
	return true
}

// view is every record that a consumer sees, a line each.
func (c *compaction) view(node *harness.Node, level kgo.IsolationLevel) []string {
	c.Helper()
	ctx := limited(c.T, compactionLimit)
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()), kgo.FetchIsolationLevel(level),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{compactedTopic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		c.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, compactedTopic)
	if err != nil {
		c.Fatal(err)
	}
	end, _ := ends.Lookup(compactedTopic, 0)
	// What is last may be a marker: a record of another topic's kind would not help, so one more is written.
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: compactedTopic, Key: []byte("the end"), Timestamp: time.UnixMilli(1_700_000_000_000)}).FirstErr(); err != nil {
		c.Fatal(err)
	}
	var seen []string
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			c.Fatalf("%s: %v after %d records", node.Kind(), err, len(seen))
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			r := iter.Next()
			if r.Offset >= end.Offset {
				return seen
			}
			sum := fnv.New64a()
			_, _ = sum.Write(r.Value)
			seen = append(seen, fmt.Sprintf("%d %d %s %v %d %x %d", r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value == nil, len(r.Value), sum.Sum64(), len(r.Headers)))
		}
	}
}

// sameEverywhere compares what is left on the two servers: records at both isolation levels, and the batches.
func (c *compaction) sameEverywhere(when string) {
	c.Helper()
	var batches [2][]string
	for i, node := range c.nodes {
		batches[i] = c.batches(node)
	}
	c.compare(when+": batches", batches[0], batches[1])
	for _, level := range []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()} {
		c.compare(fmt.Sprintf("%s: records, level %v", when, level), c.view(c.nodes[0], level), c.view(c.nodes[1], level))
	}
	harness.Progress("compaction, %s: %d batches are equal on both", when, len(batches[0]))
}

func (c *compaction) batches(node *harness.Node) (lines []string) {
	c.Helper()
	stored, err := harness.StoredBatches(node.DataDir(), compactedTopic, 0)
	if err != nil {
		c.Fatal(err)
	}
	for _, b := range stored {
		timestamp := b.MaxTimestamp
		if b.Control {
			timestamp = 0 // the server's
		}
		lines = append(lines, fmt.Sprintf("%d-%d %s txn %v control %v sequence %d records %d max %d",
			b.BaseOffset, b.LastOffset, b.Codec, b.Transactional, b.Control, b.BaseSequence, b.Records, timestamp))
	}
	return lines
}

func (c *compaction) compare(what string, ours, theirs []string) {
	c.Helper()
	for i := range max(len(ours), len(theirs)) {
		if i < len(ours) && i < len(theirs) && ours[i] == theirs[i] {
			continue
		}
		around := func(lines []string) string {
			return strings.Join(lines[min(max(i-2, 0), len(lines)):min(i+4, len(lines))], "\n")
		}
		c.Fatalf("%s differ at line %d of %d and %d:\n%s\n\nand\n%s", what, i, len(ours), len(theirs), around(ours), around(theirs))
	}
}

// exchange gives each server the directory of the other, where it finds what was there.
func (c *compaction) exchange(round int) {
	c.Helper()
	var before [2][2][]string
	levels := []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()}
	for i, node := range c.nodes {
		for j, level := range levels {
			before[i][j] = c.view(node, level)
		}
		stopCleanly(c.T, node)
	}
	for i, node := range c.nodes {
		checkFiles(c.T, fmt.Sprintf("%s has compacted and closed", node.Kind()), node.DataDir())
		dir := filepath.Join(filepath.Dir(node.LogPath()), fmt.Sprintf("round-%d", round))
		if err := os.Mkdir(dir, 0o755); err != nil {
			c.Fatal(err)
		}
		next, err := node.Successor(c.nodes[1-i].Kind(), fmt.Sprintf("%s-on-%s", c.nodes[1-i].Kind(), node.Kind()), dir)
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(next.Close)
		defer func() { c.nodes[i] = next }()
		restart(c.T, next)
		for j, level := range levels {
			after := c.view(next, level)
			after = after[:min(len(after), len(before[i][j]))] // the look before has written one more
			c.compare(fmt.Sprintf("what %s has left, and %s shows at level %v", node.Kind(), next.Kind(), level), before[i][j], after)
		}
	}
}

// leaveAndCheck ends both servers and has DumpLogSegments look at everything.
func (c *compaction) leaveAndCheck() {
	c.Helper()
	jvm := startJVM(c.T, harness.KafkaVersion, filepath.Join(workDir(c.T), "dump.log"))
	for _, node := range c.nodes {
		stopCleanly(c.T, node)
		checkFiles(c.T, fmt.Sprintf("%s has compacted and closed", node.Kind()), node.DataDir())
		(&handedOver{T: c.T, base: node, jvm: jvm, data: node.DataDir()}).dumpAll()
	}
}

// runCompactionTester runs Apache Kafka's own test of compaction.
func runCompactionTester(t *testing.T, node *harness.Node, messages int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-cp", harness.KafkaClassPath(), "org.apache.kafka.tools.LogCompactionTester",
		"--bootstrap-server", node.Addr(), "--messages", strconv.Itoa(messages), "--duplicates", "20", "--percent-deletes", "20", "--topics", "2",
		"--sleep", "3")
	cmd.Env = append(os.Environ(), "TMPDIR="+workDir(t))
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("Data verification is completed")) {
		t.Fatalf("LogCompactionTester: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "rows of data") || strings.Contains(line, "Validated") {
			harness.Progress("LogCompactionTester: %s", strings.TrimSpace(line))
		}
	}
}

// committedOffsetsStay has a group commit so often that __consumer_offsets is compacted, and starts the server again: offsets are
// those committed last, and the partition is small.
func committedOffsetsStay(t *testing.T) {
	properties := map[string]string{"offsets.topic.segment.bytes": "1048576"}
	for key, value := range compactionProperties {
		properties[key] = value
	}
	node := startNode(t, "offsets", properties)
	defer explain(t, node)
	ctx := limited(t, compactionLimit)
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 100, 1, nil, "committed"); err != nil {
		t.Fatal(err)
	}
	const commits = 300
	for i := range int64(commits) {
		offsets := kadm.Offsets{}
		for p := range int32(100) {
			offsets.AddOffset("committed", p, i*100+int64(p), -1)
		}
		if err := admin.CommitAllOffsets(ctx, "group", offsets); err != nil {
			t.Fatal(err)
		}
	}
	size := func() (bytes int64) { // of one active segment at most, and of the hundred offsets
		logs, _ := filepath.Glob(filepath.Join(node.DataDir(), "__consumer_offsets-0", "*.log"))
		for _, log := range logs {
			if info, err := os.Stat(log); err == nil {
				bytes += info.Size()
			}
		}
		return bytes
	}
	if !awaitFiles(ctx, func() bool { return size() <= 1_600_000 }) {
		t.Fatalf("waited %v for __consumer_offsets to be compacted; it has %d bytes", compactionLimit, size())
	}
	stopCleanly(t, node)
	restart(t, node)
	again, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	fetched, err := kadm.NewClient(again).FetchOffsets(ctx, "group")
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(100) {
		if got, _ := fetched.Lookup("committed", p); got.At != (commits-1)*100+int64(p) {
			t.Errorf("partition %d is committed at %d", p, got.At)
		}
	}
}
