//go:build compat

package compat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// clusterLimit is how long a part of these tests may take on a busy machine.
const clusterLimit = 4 * time.Minute

// startCluster starts controllers of Apache Kafka; all of it ends with the test.
func startCluster(t *testing.T, o harness.ClusterOptions) *harness.Cluster {
	t.Helper()
	need(t)
	o.Dir = workDir(t)
	c, err := harness.NewCluster(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Cleanup(func() { tellCluster(t, c) })
	if err := c.Start(limited(t, clusterLimit)); err != nil {
		t.Fatal(err)
	}
	return c
}

// tellCluster prints what the members of a failed test have said last.
func tellCluster(t *testing.T, c *harness.Cluster) {
	if !t.Failed() {
		return
	}
	for _, m := range slices.Concat(c.Brokers, c.Controllers) {
		lines := strings.Split(m.LogTail(12), "\n")
		for i, line := range lines {
			lines[i] = line[:min(len(line), 300)]
		}
		t.Logf("%s:\n%s", m.Name(), strings.Join(lines, "\n"))
	}
}

func addBroker(t *testing.T, c *harness.Cluster, kind harness.Kind, properties map[string]string) *harness.Member {
	t.Helper()
	m, err := c.AddBroker(kind, properties)
	if err != nil {
		t.Fatal(err)
	}
	startMember(t, m)
	return m
}

func startMember(t *testing.T, m *harness.Member) {
	t.Helper()
	if err := m.Start(limited(t, clusterLimit)); err != nil {
		t.Fatal(err)
	}
}

func stopMember(t *testing.T, m *harness.Member) {
	t.Helper()
	if code, err := m.Stop(); err != nil || code != 0 && code != 143 {
		t.Fatalf("%s ended with %d: %v\n%s", m.Name(), code, err, m.LogTail(30))
	}
}

func killMember(t *testing.T, m *harness.Member) {
	t.Helper()
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
}

// clusterClient lives through the end of servers.
func clusterClient(t *testing.T, servers []string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(servers...), kgo.MetadataMinAge(100 * time.Millisecond), kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF(),
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// eventually repeats try until it succeeds; what it waits for is printed if it does not.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	ctx := limited(t, clusterLimit)
	if err := suite.Eventually(ctx, func() error { return try(ctx) }); err != nil {
		t.Fatalf("waited in vain for %s: %v", what, err)
	}
}

func createTopic(t *testing.T, client *kgo.Client, topic string, partitions int32, replicas int16) {
	t.Helper()
	eventually(t, "topic "+topic, func(ctx context.Context) error {
		made, err := kadm.NewClient(client).CreateTopic(ctx, partitions, replicas, nil, topic)
		if errors.Is(made.Err, kerr.TopicAlreadyExists) {
			return nil
		}
		return cmp.Or(err, made.Err)
	})
}

// writer produces numbered records, each acknowledged by all.
type writer struct {
	client *kgo.Client
	topic  string
	next   int
}

func (w *writer) write(t *testing.T, count int) {
	t.Helper()
	var records []*kgo.Record
	for range count {
		records = append(records, &kgo.Record{Topic: w.topic, Value: fmt.Appendf(nil, "%s-%d", w.topic, w.next)})
		w.next++
	}
	if err := w.client.ProduceSync(limited(t, clusterLimit), records...).FirstErr(); err != nil {
		t.Fatalf("write %d records to %s: %v", count, w.topic, err)
	}
}

// expect reads the topic and finds each record exactly once.
func (w *writer) expect(t *testing.T, servers []string) {
	t.Helper()
	reader := clusterClient(t, servers, kgo.ConsumeTopics(w.topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	ctx, seen := limited(t, clusterLimit), map[string]int{}
	for read := 0; read < w.next; {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records of %s could be read", read, w.next, w.topic)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			read++
			if seen[string(r.Value)]++; seen[string(r.Value)] > 1 {
				t.Errorf("%s was read twice", r.Value)
			}
		})
	}
	for n := range w.next {
		if seen[fmt.Sprintf("%s-%d", w.topic, n)] != 1 {
			t.Fatalf("record %d of %s was read %d times", n, w.topic, seen[fmt.Sprintf("%s-%d", w.topic, n)])
		}
	}
}

// TestClusterBroker is a broker of Ottla under three controllers of Apache Kafka: what clients do, with the controllers
// failing over, and the broker stopped and killed.
func TestClusterBroker(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 3, Features: harness.LetIn, Properties: map[string]string{
		// Snapshots come soon, and the log before them goes.
		"metadata.log.max.record.bytes.between.snapshots": "20000", "metadata.log.segment.bytes": "8388608",
	}})
	broker := addBroker(t, c, harness.Ottla, nil)
	client := clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	createTopic(t, client, "first", 3, 1)
	w := &writer{client: client, topic: "first"}
	w.write(t, 1000)
	w.expect(t, c.Bootstrap())
	groupCommits(t, c, "first", 1000)
	transaction(t, c, "ledger")

	leader := activeController(t, c, client)
	killMember(t, leader)
	w.write(t, 500)
	createTopic(t, client, "second", 2, 1)
	for _, m := range c.Controllers {
		if m != leader {
			stopMember(t, m) // without a majority
			w.write(t, 500)
			startMember(t, m)
			break
		}
	}
	startMember(t, leader)
	createTopic(t, client, "third", 2, 1)

	hung := activeController(t, c, client)
	if err := hung.Pause(); err != nil {
		t.Fatal(err)
	}
	createTopic(t, client, "meanwhile", 2, 1)
	w.write(t, 500)
	if err := hung.Resume(); err != nil {
		t.Fatal(err)
	}
	w.expect(t, c.Bootstrap())

	stopMember(t, broker)
	startMember(t, broker)
	w.write(t, 500)
	killMember(t, broker)
	startMember(t, broker)
	w.write(t, 500)
	w.expect(t, c.Bootstrap())
	createTopic(t, client, "fourth", 2, 1)

	sameMetadata(t, c, broker)
	java := startJava(t, t.TempDir())
	dumpMetadata(t, java, broker)
}

// groupCommits has two members of a group read a topic and commit; a later member finds nothing left.
func groupCommits(t *testing.T, c *harness.Cluster, topic string, count int) {
	t.Helper()
	ctx := limited(t, clusterLimit)
	read := 0
	member := clusterClient(t, c.Bootstrap(), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	for read < count {
		fetches := member.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("the group read %d of %d records", read, count)
		}
		read += fetches.NumRecords()
	}
	if err := member.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	member.Close()
	offsets, err := kadm.NewClient(clusterClient(t, c.Bootstrap())).FetchOffsets(ctx, "readers")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	offsets.Each(func(o kadm.OffsetResponse) { total += o.At })
	if total != int64(count) {
		t.Fatalf("the group has committed %d records, want %d", total, count)
	}
}

// transaction commits one and aborts one; who reads committed records sees the first.
func transaction(t *testing.T, c *harness.Cluster, topic string) {
	t.Helper()
	client := clusterClient(t, c.Bootstrap(), kgo.TransactionalID("ledger-writer"))
	createTopic(t, client, topic, 2, 1)
	ctx := limited(t, clusterLimit)
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		w := &writer{client: client, topic: topic}
		if end == kgo.TryAbort {
			w.next = 1_000_000
		}
		w.write(t, 100)
		if err := client.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	(&writer{topic: topic, next: 100}).expect(t, c.Bootstrap())
}

// activeController finds the leader of the quorum by what the broker forwards.
func activeController(t *testing.T, c *harness.Cluster, client *kgo.Client) (leader *harness.Member) {
	t.Helper()
	eventually(t, "the leader of the quorum", func(ctx context.Context) error {
		id, err := quorumLeader(ctx, client)
		for _, m := range c.Controllers {
			if m.ID == int(id) {
				leader = m
				return nil
			}
		}
		return fmt.Errorf("leader %d, %w", id, err)
	})
	return leader
}

// metadataDir is the folder of the metadata log.
func metadataDir(m *harness.Member) string {
	return filepath.Join(m.DataDir(), "__cluster_metadata-0")
}

// sameMetadata waits until the metadata log of a broker ends as a controller's, and compares all bytes that both have.
func sameMetadata(t *testing.T, c *harness.Cluster, broker *harness.Member) {
	t.Helper()
	for _, controller := range c.Controllers {
		eventually(t, "the metadata log of "+controller.Name()+" on "+broker.Name(), func(context.Context) error {
			theirs, err := batchesOf(metadataDir(controller))
			if err != nil {
				return err
			}
			ours, err := batchesOf(metadataDir(broker))
			if err != nil {
				return err
			}
			return compareBatches(ours, theirs)
		})
	}
}

// batchesOf reads the batches of a log by their base offset.
func batchesOf(dir string) (map[int64][]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no segment in %s: %w", dir, err)
	}
	batches := map[int64][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for len(content) >= 12 {
			base, size := int64(binary.BigEndian.Uint64(content)), 12+int(binary.BigEndian.Uint32(content[8:]))
			if size > len(content) || size == 12 {
				break // it is being written, or preallocated
			}
			batches[base] = content[:size]
			content = content[size:]
		}
	}
	return batches, nil
}

// compareBatches wants the batches to be the same bytes from where the later log begins to where theirs ends.
func compareBatches(ours, theirs map[int64][]byte) error {
	a, b := slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs))
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	if len(a) == 0 || len(b) == 0 {
		return fmt.Errorf("%d and %d batches", len(a), len(b))
	}
	end := b[len(b)-1]
	if ours[end] == nil {
		return fmt.Errorf("the logs end with the batches %d and %d", a[len(a)-1], end)
	}
	for base, batch := range ours {
		if base >= b[0] && base <= end && !bytes.Equal(batch, theirs[base]) {
			return fmt.Errorf("the batch of offset %d is not the same", base)
		}
	}
	for base := range theirs {
		if base >= a[0] && ours[base] == nil {
			return fmt.Errorf("the batch of offset %d is missing", base)
		}
	}
	return nil
}

// equalReplicas waits until the replicas of a partition are the same bytes.
func equalReplicas(t *testing.T, topic string, partition int, members []*harness.Member) {
	t.Helper()
	name := fmt.Sprintf("%s-%d", topic, partition)
	for _, other := range members[1:] {
		eventually(t, fmt.Sprintf("equal replicas of %s on %s and %s", name, members[0].Name(), other.Name()), func(context.Context) error {
			return sameReplica(members[0].ReplicaDir(name), other.ReplicaDir(name))
		})
	}
}

// sameReplica compares two folders of one partition.
func sameReplica(dir, other string) error {
	first, err := batchesOf(dir)
	if err != nil {
		return err
	}
	second, err := batchesOf(other)
	if err != nil {
		return err
	}
	return errors.Join(compareBatches(first, second), compareBatches(second, first))
}

// dumpMetadata gives the broker's metadata log and snapshots to DumpLogSegments.
func dumpMetadata(t *testing.T, java *driver.Process, m *harness.Member) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.log", "*.checkpoint"} {
		found, err := filepath.Glob(filepath.Join(metadataDir(m), pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	result, err := java.Tool(limited(t, clusterLimit), "DumpLogSegments", "", "--cluster-metadata-decoder", "--deep-iteration", "--files", strings.Join(files, ","))
	if err != nil || result.Exit != 0 || dumpFaults.MatchString(result.Stdout+result.Stderr) {
		t.Fatalf("DumpLogSegments of the metadata: %v, %v", err, result)
	}
}
