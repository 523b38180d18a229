//go:build compat

package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// crashLoad is one idempotent producer that never stops, on a topic of its own.
type crashLoad struct {
	topic string
	acked chan int
	done  chan error
	acks  []suite.Ack
}

// startLoads starts endless producers with acks=all.
func startLoads(t *testing.T, node *harness.Node, n int, stop <-chan struct{}) []*crashLoad {
	t.Helper()
	ctx := cellContext(t)
	ref := franz.New(node.Addr())
	var loads []*crashLoad
	for i := range n {
		l := &crashLoad{topic: "crash-" + strconv.Itoa(i), acked: make(chan int, 1), done: make(chan error, 1)}
		if err := ref.CreateTopic(ctx, l.topic, 1, map[string]string{"segment.bytes": "1048576"}); err != nil {
			t.Fatal(err)
		}
		go func() {
			var err error
			l.acks, err = franz.New(node.Addr()).Stream(ctx, suite.StreamOptions{
				ProduceOptions: suite.ProduceOptions{Topic: l.topic, Acks: "all", Idempotent: true, LingerMs: i % 2, Codec: []string{"none", "lz4", "zstd"}[i%3]},
				Prefix:         strings.Repeat("p", i*40), Window: 200,
				OnAck: func(n int) {
					select {
					case <-l.acked:
					default:
					}
					l.acked <- n
				},
			}, stop)
			l.done <- err
		}()
		loads = append(loads, l)
	}
	return loads
}

// goOn waits until every load had n more records acknowledged.
func goOn(t *testing.T, loads []*crashLoad, n int) {
	t.Helper()
	var group sync.WaitGroup
	for _, l := range loads {
		group.Go(func() {
			first := -1
			for {
				select {
				case now := <-l.acked:
					if first < 0 {
						first = now
					}
					if now >= first+n {
						return
					}
				case err := <-l.done:
					t.Errorf("%s: the producer ended: %v", l.topic, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// judgeLoads reads the topics: every acknowledged record once, at the offset of its acknowledgement, in order.
func judgeLoads(t *testing.T, node *harness.Node, loads []*crashLoad) {
	t.Helper()
	ctx := cellContext(t)
	total := 0
	for i, l := range loads {
		if err := <-l.done; err != nil {
			t.Fatalf("%s: %v\n%s", l.topic, err, node.LogTail(15))
		}
		log, err := franz.New(node.Addr()).Consume(ctx, suite.ConsumeOptions{Topic: l.topic, From: map[int32]int64{0: 0}})
		if err != nil {
			t.Fatal(err)
		}
		if len(log) != len(l.acks) {
			t.Errorf("%s: %d records in the log, %d were sent and acknowledged", l.topic, len(log), len(l.acks))
			continue
		}
		for n, ack := range l.acks {
			want := strings.Repeat("p", i*40) + strconv.Itoa(n)
			if ack.Err != "" || string(log[n].Value) != want || ack.Offset >= 0 && ack.Offset != int64(n) {
				t.Fatalf("%s: offset %d holds %q, want %q; acknowledged at %d with error %q", l.topic, n, log[n].Value, want, ack.Offset, ack.Err)
			}
		}
		total += len(log)
	}
	harness.Progress("%d acknowledged records, each there once and in order", total)
}

// TestCrash kills the node five times under idempotent load with acks=all.
func TestCrash(t *testing.T) {
	need(t)
	node := startNode(t, "crash", nil)
	defer explain(t, node)
	stop := make(chan struct{})
	loads := startLoads(t, node, 6, stop)
	for range 5 {
		goOn(t, loads, 2000)
		if t.Failed() {
			return
		}
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		checkFiles(t, "a kill has left", node.DataDir())
		restart(t, node)
	}
	goOn(t, loads, 500)
	close(stop)
	judgeLoads(t, node, loads)
	stopCleanly(t, node)
	checkFiles(t, "a clean stop has left", node.DataDir())
}

// TestCrashLarge kills a node that holds 1 GB of log, under load, and prints how long it takes to answer again.
func TestCrashLarge(t *testing.T) {
	need(t)
	node := startNode(t, "crash-large", nil)
	defer explain(t, node)
	const partitions, records = 4, 1_024
	large(t, node, partitions, records)
	stop := make(chan struct{})
	loads := startLoads(t, node, 3, stop)
	goOn(t, loads, 500)
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	bytes := directoryMB(t, node.DataDir())
	first, err := node.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	harness.Progress("measured: %s answers %d ms after its start with %d MB of log, killed under load", node.Kind(), first.Milliseconds(), bytes)
	goOn(t, loads, 500)
	close(stop)
	judgeLoads(t, node, loads)
	ctx := cellContext(t)
	for p := range int32(partitions) {
		end, _, err := franz.New(node.Addr()).ListOffset(ctx, "large", p, suite.Latest)
		if err != nil || end != records/partitions {
			t.Errorf("large-%d ends at %d (%v), want %d", p, end, err, records/partitions)
		}
	}
	stopCleanly(t, node)
}

// large writes records of 1 MB, not compressed.
func large(t *testing.T, node *harness.Node, partitions, records int) {
	t.Helper()
	ctx := cellContext(t)
	ref := franz.New(node.Addr())
	if err := ref.CreateTopic(ctx, "large", partitions, nil); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(1048588), kgo.MaxBufferedRecords(64))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	value := make([]byte, 1_048_000)
	var failed error
	var once sync.Once
	for i := range records {
		client.Produce(ctx, &kgo.Record{Topic: "large", Partition: int32(i % partitions), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// directoryMB is the size of the files in a directory.
func directoryMB(t *testing.T, dir string) int64 {
	t.Helper()
	var total int64
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total >> 20
}

// TestMeasure prints what a first impression is made of: start to first answer on an empty directory and again, memory when
// idle, size of the program. Nothing is asserted; the machine may be busy.
func TestMeasure(t *testing.T) {
	need(t)
	node, err := harness.NewNode(harness.Options{Kind: target(t), Name: "measure", Dir: workDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	first, err := node.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	stopCleanly(t, node)
	again, err := node.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	memory, err := node.ResidentMB()
	if err != nil {
		t.Fatal(err)
	}
	program := "jars of the class path"
	size := directorySize(t, filepath.Dir(strings.Split(harness.KafkaClassPath(), string(os.PathListSeparator))[0]))
	if node.Kind() == harness.Ottla {
		program = "binary"
		info, err := os.Stat(harness.OttlaBinary())
		if err != nil {
			t.Fatal(err)
		}
		size = info.Size()
	}
	harness.Progress("measured: %s\n%s", serverName(node.Kind()), fmt.Sprintf(
		"  start to first answer, empty directory  %6d ms\n  start to first answer, again            %6d ms\n  resident memory when idle               %6.1f MB\n  %-38s  %6.1f MB",
		first.Milliseconds(), again.Milliseconds(), memory, program, float64(size)/(1<<20)))
	stopCleanly(t, node)
}

func directorySize(t *testing.T, dir string) int64 {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}
