//go:build compat

package compat

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// hung suspends followers of each kind under leaders of each kind: of four brokers two at once, of three each in turn.
func (p *placed) hung(t *testing.T) {
	if len(p.Brokers) == 4 {
		p.hang(t, 2, 4)
		return
	}
	for _, id := range p.all() {
		p.hang(t, id)
	}
}

// hang suspends brokers that follow both others: they leave the ISR, writes go on, they come back. Meanwhile the
// leaders hold records above the high watermark, of which nobody may read, from them or from the other followers.
func (p *placed) hang(t *testing.T, hung ...int32) {
	var servers []string
	leaders, topics, writers := p.but(hung...), map[string][]int32{}, map[string]*writer{}
	for n, id := range leaders {
		servers = append(servers, p.broker(int(id)).Addr())
		topics[fmt.Sprintf("hung-%d-under-%d", hung[0], id)] = append([]int32{id, leaders[1-n]}, hung...)
	}
	for topic, replicas := range topics {
		p.create(t, topic, nil, replicas...)
		writers[topic] = &writer{client: clusterClient(t, servers, kgo.RequiredAcks(kgo.AllISRAcks())), topic: topic}
		writers[topic].write(t, 100)
	}
	for _, id := range hung {
		b := p.broker(int(id))
		if err := b.Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Resume() })
	}
	above := 0
	for topic, replicas := range topics {
		w := writers[topic]
		soon := &writer{client: clusterClient(t, servers, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()), topic: topic, next: w.next}
		soon.write(t, 100)
		w.next = soon.next
		for _, follower := range replicas[:2] {
			above += p.nothingAbove(t, topic, p.broker(int(replicas[0])), p.broker(int(follower)), int64(w.next))
		}
	}
	for topic, replicas := range topics {
		w := writers[topic]
		w.write(t, 100)
		eventually(t, "the ISR of "+topic+" without those that hang", func(ctx context.Context) error {
			found, err := metadataOf(ctx, p.at(p.broker(int(replicas[0]))), topic)
			if isr := found.Partitions[0].ISR; err == nil && (len(isr) != 2 || slices.ContainsFunc(isr, func(id int32) bool { return slices.Contains(hung, id) })) {
				err = fmt.Errorf("it is %v", isr)
			}
			return err
		})
		w.write(t, 100)
	}
	for _, id := range hung {
		if err := p.broker(int(id)).Resume(); err != nil {
			t.Fatal(err)
		}
	}
	for topic, w := range writers {
		w.write(t, 100)
		p.sameReplicas(t, topic)
		w.expect(t, p.Bootstrap())
	}
	harness.Progress("followers %v that hang: %d of 4 reads were answered while records lay above the high watermark", hung, above)
}

// nothingAbove reads from a replica as a consumer does: it gets what lies below the high watermark, which is not above its leader's. It
// returns 1 where the leader's log, which has grown to end, reaches beyond that.
func (p *placed) nothingAbove(t *testing.T, topic string, leader, replica *harness.Member, end int64) int {
	t.Helper()
	ctx := limited(t, clusterLimit)
	client := clusterClient(t, []string{replica.Addr(), leader.Addr()}, kgo.MaxVersions(kversion.V3_0_0())) // requests name topics
	fetch := func(from *harness.Member) (last, highWatermark int64) {
		req, asked, part := kmsg.NewPtrFetchRequest(), kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		req.MaxBytes, req.Rack, req.SessionEpoch = 1<<20, "elsewhere", -1
		asked.Topic, part.PartitionMaxBytes = topic, 1<<20
		asked.Partitions = append(asked.Partitions, part)
		req.Topics = append(req.Topics, asked)
		var found kmsg.FetchResponseTopicPartition
		eventually(t, "a fetch of "+topic+" from "+from.Name(), func(context.Context) error {
			resp, err := req.RequestWith(ctx, client.Broker(from.ID))
			if err != nil {
				return err
			}
			found = resp.Topics[0].Partitions[0]
			return kerr.ErrorForCode(found.ErrorCode)
		})
		last = -1
		for b := found.RecordBatches; len(b) >= 61; b = b[12+binary.BigEndian.Uint32(b[8:]):] {
			if 12+int(binary.BigEndian.Uint32(b[8:])) > len(b) {
				break
			}
			last = int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[23:]))
		}
		return last, found.HighWatermark
	}
	last, bound := fetch(replica)
	_, highest := fetch(leader)
	if last >= bound || bound > highest {
		t.Errorf("%s: %s gave offset %d and the high watermark %d, that of the leader was %d later", topic, replica.Name(), last, bound, highest)
	}
	if highest < end {
		return 1
	}
	return 0
}

// nearest has consumers in the rack b read what is led in the rack a: franz-go and Java, from each replica there (of each kind in a cluster
// of four) under a leader of the other kind. Then the replica goes away, and Java goes on with the leader; when it is back it is read from again. franz-go 1.22.3 stays
// with a replica that is gone, whatever kind of broker it is, until it is back or RecheckPreferredReplicaInterval is over: it reads before.
func (p *placed) nearest(t *testing.T) {
	for _, kind := range []harness.Kind{harness.Ottla, harness.Kafka} {
		if len(p.of(kind)) < 2 {
			continue // it is in the rack a
		}
		topic, near := "nearest-"+string(kind), p.broker(int(p.of(kind)[1]))
		replicas := []int32{p.of(other(kind))[0], p.of(kind)[0], int32(near.ID)}
		p.create(t, topic, nil, replicas...)
		w := &writer{client: p.client, topic: topic}
		const before, after = 2000, 1000
		for range 20 {
			w.write(t, before/20)
		}
		inSync(t, p.client, topic, 3)
		var readers sync.WaitGroup
		var read [2]atomic.Int64
		ctx, cancel := context.WithTimeout(context.Background(), clusterLimit)
		t.Cleanup(func() {
			cancel()
			readers.Wait()
		})
		readers.Go(func() { p.readNear(ctx, t, topic, near, before, &read[0]) })
		readers.Go(func() { p.readNearByJava(ctx, t, topic, near, before+after, &read[1]) })
		eventually(t, "what is there of "+topic+" to be read", func(context.Context) error {
			if a, b := read[0].Load(), read[1].Load(); a < before || b < before {
				return fmt.Errorf("franz-go has read %d, Java %d", a, b)
			}
			return nil
		})
		stopMember(t, near)
		w.write(t, after)
		readers.Wait()
		startMember(t, near)
		inSync(t, p.client, topic, 3)
		p.readNear(limited(t, clusterLimit), t, topic, near, before+after, &read[0])
		p.sameReplicas(t, topic)
	}
}

// fetched counts what each broker has answered to fetches.
type fetched struct {
	mu    sync.Mutex
	bytes map[int32]int
}

// OnBrokerE2E is told of every request.
func (f *fetched) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key == 1 {
		f.bytes[meta.NodeID] += e2e.BytesRead
	}
}

// mostly says what is wrong when not most of what was read came from a broker.
func mostly(near *harness.Member, bytes map[int32]int) error {
	all := 0
	for _, n := range bytes {
		all += n
	}
	if of := bytes[int32(near.ID)]; of*2 < all {
		return fmt.Errorf("%d of %d bytes were read from %s: %v", of, all, near.Name(), bytes)
	}
	return nil
}

// readNear reads records in their order by franz-go.
func (p *placed) readNear(ctx context.Context, t *testing.T, topic string, near *harness.Member, count int, read *atomic.Int64) {
	from := &fetched{bytes: map[int32]int{}}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Bootstrap()...), kgo.Rack("b"), kgo.WithHooks(from), kgo.FetchMaxPartitionBytes(2000), kgo.MetadataMinAge(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	for n := 0; n < count; read.Store(int64(n)) {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Errorf("franz-go has read %d of %d records of %s", n, count, topic)
			return
		}
		for _, r := range fetches.Records() {
			if want := fmt.Sprintf("%s-%d", topic, n); string(r.Value) != want {
				t.Errorf("franz-go read %q at offset %d, want %s", r.Value, r.Offset, want)
				return
			}
			n++
		}
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if err := mostly(near, from.bytes); err != nil {
		t.Errorf("franz-go, %s: %v", topic, err)
	}
}

// readNearByJava reads records in their order by the Java consumer.
func (p *placed) readNearByJava(ctx context.Context, t *testing.T, topic string, near *harness.Member, count int, read *atomic.Int64) {
	records, bytes, err := driver.NewClient(p.java, scenario.Java, p.servers()).ConsumeNear(ctx, "b", suite.ConsumeOptions{
		Topic: topic, From: map[int32]int64{0: suite.Earliest}, Count: count, MaxFetchBytes: 2000, OnRecord: func(n int) { read.Store(int64(n)) },
	})
	if err != nil {
		t.Errorf("Java reads %s: %v", topic, err)
		return
	}
	for i, r := range records {
		if want := fmt.Sprintf("%s-%d", topic, i); string(r.Value) != want || r.Offset != int64(i) {
			t.Errorf("Java read %q at offset %d, want %s", r.Value, r.Offset, want)
			return
		}
	}
	if err := mostly(near, bytes); err != nil {
		t.Errorf("Java, %s: %v", topic, err)
	}
}

// throttled moves a topic from each kind of broker to the other by kafka-reassign-partitions with a throttle, which holds until it is
// lifted.
func (p *placed) throttled(t *testing.T) {
	const rate, records = 400_000, 24_000 // of 1 KB: a minute, of which a busy machine may take much to ask
	moves := map[string][2]int{}
	for _, kind := range []harness.Kind{harness.Ottla, harness.Kafka} {
		to := p.of(kind)
		moves["throttled-to-"+string(kind)] = [2]int{int(p.of(other(kind))[0]), int(to[len(to)-1])}
	}
	before, plan := map[string]map[int64][]byte{}, []map[string]any{}
	for topic, move := range moves {
		p.create(t, topic, map[string]string{"min.insync.replicas": "1"}, int32(move[0]))
		p.fill(t, topic, records)
		var err error
		if before[topic], err = batchesOf(filepath.Join(p.broker(move[0]).DataDir(), topic+"-0")); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, map[string]any{"topic": topic, "partition": 0, "replicas": []int{move[1]}})
	}
	text, err := json.Marshal(map[string]any{"version": 1, "partitions": plan})
	file := filepath.Join(t.TempDir(), "plan.json")
	if err = cmp.Or(err, os.WriteFile(file, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	tool := func(args ...string) string {
		t.Helper()
		args = append(args, "--bootstrap-server", p.servers(), "--reassignment-json-file", file)
		result, err := p.java.Tool(limited(t, clusterLimit), "reassign.ReassignPartitionsCommand", "", args...)
		if err != nil || result.Exit != 0 {
			t.Fatalf("ReassignPartitionsCommand %v: %v, %s", args, err, result)
		}
		return result.Stdout
	}
	began := time.Now()
	tool("--execute", "--throttle", fmt.Sprint(rate))
	eventually(t, "the throttle to be seen", func(context.Context) error {
		least := int64(records * 1000)
		for topic, move := range moves {
			size, allowed := sizeOf(filepath.Join(p.broker(move[1]).DataDir(), topic+"-0")), int64(2*rate*time.Since(began).Seconds())+3<<20
			if size > allowed {
				t.Fatalf("%s: %d bytes were copied in %s, at %d bytes a second", topic, size, time.Since(began), rate)
			}
			least = min(least, size)
		}
		if least < 3<<20 {
			return fmt.Errorf("%d bytes of one topic were copied", least)
		}
		return nil
	})
	seen := time.Since(began)
	if said := tool("--verify"); !strings.Contains(said, "is still in progress") {
		t.Errorf("it is complete although it was throttled:\n%s", said)
	}
	tool("--execute", "--additional", "--throttle", "1000000000")
	eventually(t, "the end of the reassignment", func(context.Context) error {
		if said := tool("--verify"); strings.Contains(said, "still in progress") || !strings.Contains(said, "Clearing topic-level throttles") {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
	for topic, move := range moves {
		eventually(t, topic+" on the other broker", func(context.Context) error {
			after, err := batchesOf(filepath.Join(p.broker(move[1]).DataDir(), topic+"-0"))
			if err != nil {
				return err
			}
			return compareBatches(after, before[topic])
		})
	}
	harness.Progress("throttled to %d bytes a second, the first 3 MB took %.1f s", rate, seen.Seconds())
}

// fill writes records of 1 KB that cannot be compressed.
func (p *placed) fill(t *testing.T, topic string, records int) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	var all []*kgo.Record
	for range records {
		value := make([]byte, 1000)
		_, _ = random.Read(value) // it never fails
		all = append(all, &kgo.Record{Topic: topic, Value: value})
	}
	if err := p.client.ProduceSync(limited(t, clusterLimit), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// sizeOf is how long the segments in a folder are together; it may not be there yet.
func sizeOf(dir string) (total int64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	return total
}
