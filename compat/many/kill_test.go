//go:build compat

package many

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
)

// killRecordBytes is the size of a record, killBatchBytes about that of a batch.
const (
	killRecordBytes = 1000
	killBatchBytes  = 16 << 10
)

// fill writes so many records to each partition, idempotently, all acknowledged.
func (m *manyNode) fill(t *testing.T, each int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(m.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(killBatchBytes), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	value := []byte(strings.Repeat("x", killRecordBytes))
	var mu sync.Mutex
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	}
	ctx := context.Background()
	const inOne = 16 // records of a partition that follow each other, so that batches are full
	for sent := 0; sent < each; sent += inOne {
		for p := range m.partitions {
			for range min(inOne, each-sent) {
				client.Produce(ctx, &kgo.Record{Topic: manyTopic(p / manyTopicPartitions), Partition: int32(p % manyTopicPartitions), Value: value}, done)
			}
		}
	}
	if err := client.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// TestKillWithManyPartitions fills partitions (OTTLA_KILL_PARTITIONS, OTTLA_KILL_MEGABYTES in all), kills the server and starts
// it again: every acknowledged record is there. How soon is printed.
func TestKillWithManyPartitions(t *testing.T) {
	partitions := fromEnv(t, "OTTLA_KILL_PARTITIONS", 500)
	megabytes := fromEnv(t, "OTTLA_KILL_MEGABYTES", 50)
	node := startNode(t, "kill", nil)
	m := newMany(t, node, partitions)
	m.create(t)
	each := max(megabytes*1_000_000/killRecordBytes/partitions, 1)
	begin := time.Now()
	m.fill(t, each)
	filled := time.Since(begin)
	want := int64(each) * int64(m.topics()) * manyTopicPartitions
	check := func(when string) {
		if got := m.served(t); got != want {
			t.Errorf("%s: the partitions end at %d in all, %d records were acknowledged", when, got, want)
		}
	}
	check("before")
	// As in a life that began earlier than a moment ago.
	if wait := fromEnv(t, "OTTLA_KILL_AFTER_SECONDS", 0); wait > 0 {
		<-time.After(time.Duration(wait) * time.Second)
	}
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	first, err := node.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	check("after kill -9")
	all, cpu := time.Since(begin), m.cpu(t)
	begin = time.Now()
	stopCleanly(t, node)
	harness.Progress("measured: %s, kill -9 with %d partitions and %d MB (written in %.0f s): first answer after %.2f s, all served after %.2f s (%.2f s of processor time), a clean stop then takes %.1f s",
		node.Kind(), partitions, megabytes, filled.Seconds(), first.Seconds(), all.Seconds(), cpu.Seconds(), time.Since(begin).Seconds())
	_, all = m.start(t)
	check("after the clean stop")
	harness.Progress("measured: %s, the next start serves all after %.2f s", node.Kind(), all.Seconds())
}
