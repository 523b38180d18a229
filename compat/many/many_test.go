//go:build compat

package many

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/harness"
)

// The limits of an idle partition, on any number of them.
const (
	manyMostFiles = 2000
	manyMostBytes = 10 << 10 // of resident memory, a partition
	// With fewer than manyEnough the buffers of the load itself, and garbage, are seen beside the partitions.
	manyEnough     = 20_000
	manyFixedBytes = 16 << 20
)

// manyTopicPartitions is how many partitions one of many topics has.
const manyTopicPartitions = 100

// fromEnv is a number from the environment, or what CI takes.
func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := harness.Setting(name, otherwise)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startNode starts a node of the target kind; it is ended with the test.
func startNode(t *testing.T, name string, properties map[string]string) *harness.Node {
	t.Helper()
	kind, err := harness.TargetKind()
	if err != nil {
		t.Fatal(err)
	}
	programs := []string{"ottla"}
	if kind == harness.Kafka {
		programs = []string{"java"}
		delete(properties, "ottla.debug.pprof.listener")
	}
	if err := harness.CheckInstalled(programs...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if keep := os.Getenv("OTTLA_COMPAT_KEEP"); keep != "" {
		if dir, err = os.MkdirTemp(keep, name+"-"); err != nil {
			t.Fatal(err)
		}
	}
	node, err := harness.NewNode(harness.Options{Kind: kind, Name: name, Dir: dir, Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last log lines of %s:\n%s", node.Kind(), node.LogTail(15))
		}
	})
	if _, err := node.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return node
}

// stopCleanly ends the node by SIGTERM.
func stopCleanly(t *testing.T, node *harness.Node) {
	t.Helper()
	code, err := node.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[harness.Kind]int{harness.Kafka: 143}[node.Kind()]; code != want {
		t.Errorf("exit code after SIGTERM is %d, want %d", code, want)
	}
}

// manyNode is a node with many partitions.
type manyNode struct {
	*harness.Node
	partitions int
	client     *kgo.Client // for raw requests
}

func newMany(t *testing.T, node *harness.Node, partitions int) *manyNode {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()), kgo.RequestTimeoutOverhead(2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &manyNode{Node: node, partitions: partitions, client: client}
}

func (m *manyNode) topics() int {
	return (m.partitions + manyTopicPartitions - 1) / manyTopicPartitions
}

func manyTopic(i int) string { return "many-" + strconv.Itoa(i) }

// create makes all topics, some in each request.
func (m *manyNode) create(t *testing.T) time.Duration {
	t.Helper()
	const inOne = 10
	begin := time.Now()
	for first := 0; first < m.topics(); first += inOne {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis = 120_000
		for i := first; i < min(first+inOne, m.topics()); i++ {
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = manyTopic(i), manyTopicPartitions, 1
			req.Topics = append(req.Topics, topic)
		}
		resp, err := m.client.SeedBrokers()[0].Request(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range resp.(*kmsg.CreateTopicsResponse).Topics { //nolint:forcetypeassert // it answers that
			if topic.ErrorCode != 0 {
				t.Fatalf("%s: error %d", topic.Topic, topic.ErrorCode)
			}
		}
	}
	m.served(t)
	return time.Since(begin)
}

// served waits until every partition has told its end, and gives the sum of them.
func (m *manyNode) served(t *testing.T) (records int64) {
	t.Helper()
	const inOne = 10                             // topics a request
	deadline := time.Now().Add(20 * time.Minute) // Apache Kafka with ten thousand on a busy machine
	for first := 0; first < m.topics(); first += inOne {
		for {
			sum, failed := m.ends(first, min(first+inOne, m.topics()))
			if failed == "" {
				records += sum
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("not all partitions are served: %s\n%s", failed, m.LogTail(10))
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return records
}

// ends asks for the ends of all partitions of some topics.
func (m *manyNode) ends(first, beyond int) (sum int64, failed string) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	for i := first; i < beyond; i++ {
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = manyTopic(i)
		for p := range int32(manyTopicPartitions) {
			part := kmsg.NewListOffsetsRequestTopicPartition()
			part.Partition, part.Timestamp = p, -1
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := m.client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return 0, err.Error()
	}
	for _, topic := range resp.(*kmsg.ListOffsetsResponse).Topics { //nolint:forcetypeassert // it answers that
		for _, part := range topic.Partitions {
			if part.ErrorCode != 0 {
				return 0, fmt.Sprintf("%s-%d has error %d", topic.Topic, part.Partition, part.ErrorCode)
			}
			sum += part.Offset
		}
	}
	return sum, ""
}

// openFiles counts the descriptors of the server that are files, and what it has mapped of files below its directory.
func (m *manyNode) openFiles(t *testing.T) (files, mapped int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", m.Process().Pid())
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(open), strings.Count(string(maps), m.DataDir())
}

// cpu is the processor time of the server so far.
func (m *manyNode) cpu(t *testing.T) time.Duration {
	t.Helper()
	used, err := m.ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func (m *manyNode) resident(t *testing.T) float64 {
	t.Helper()
	megabytes, err := m.ResidentMB()
	if err != nil {
		t.Fatal(err)
	}
	return megabytes
}

func (m *manyNode) start(t *testing.T) (first, all time.Duration) {
	t.Helper()
	begin := time.Now()
	first, err := m.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m.served(t)
	return first, time.Since(begin)
}

// TestManyPartitions makes idle partitions (OTTLA_MANY_PARTITIONS of them) and looks at what they cost: resident memory and
// open files, which are asserted of Ottla, and times, which are printed.
func TestManyPartitions(t *testing.T) {
	partitions := fromEnv(t, "OTTLA_MANY_PARTITIONS", 2000)
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
		harness.Progress("%s", lines[len(lines)-1])
	}
	node := startNode(t, "many", map[string]string{"ottla.debug.pprof.listener": os.Getenv("OTTLA_MANY_PPROF")})
	m := newMany(t, node, partitions)
	empty := m.resident(t)
	say("creation            %8.1f s", m.create(t).Seconds())
	m.look(t, say, "after creation", empty)
	stop := func() {
		begin := time.Now()
		stopCleanly(t, node)
		say("clean stop          %8.1f s", time.Since(begin).Seconds())
	}
	stop()
	first, all := m.start(t)
	say("clean start         %8.2f s to the first answer, %.2f s to all, %.2f s of processor time", first.Seconds(), all.Seconds(), m.cpu(t).Seconds())
	files, grown := m.look(t, say, "after a clean start", empty)
	most := manyMostBytes
	if partitions < manyEnough {
		most += manyFixedBytes / partitions
	}
	if node.Kind() == harness.Ottla && (files > manyMostFiles || grown > most) {
		t.Errorf("%d files are open (most: %d), and a partition costs %d bytes (most: %d)", files, manyMostFiles, grown, most)
	}
	stop()
	m.start(t)
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	first, all = m.start(t)
	say("start after kill -9 %8.2f s to the first answer, %.2f s to all, %.2f s of processor time", first.Seconds(), all.Seconds(), m.cpu(t).Seconds())
	stop()
	harness.Progress("measured: %s, %d idle partitions\n  %s", node.Kind(), partitions, strings.Join(lines, "\n  "))
}

// look waits while the server is idle and says what it costs.
func (m *manyNode) look(t *testing.T, say func(string, ...any), when string, emptyMB float64) (files, bytesEach int) {
	t.Helper()
	idle := 2 * time.Second
	if m.partitions >= manyEnough {
		idle = 10 * time.Second
	}
	before := m.cpu(t)
	<-time.After(idle)
	used := m.cpu(t) - before
	files, mapped := m.openFiles(t)
	now := m.resident(t)
	bytesEach = int((now - emptyMB) * (1 << 20) / float64(m.partitions))
	say("%-19s %8.1f MB resident, %.1f empty: %d bytes a partition; %d files open, %d mapped; idle %.1f %% of a processor",
		when, now, emptyMB, bytesEach, files, mapped, 100*used.Seconds()/idle.Seconds())
	return files, bytesEach
}
