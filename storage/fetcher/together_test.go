package fetcher

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/protocol/wire"
	"ottla/storage/log"
	"ottla/storage/logdir"
	"ottla/storage/partition"
	"ottla/storage/replica"
	"ottla/storage/segment"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// peer is a node with goroutines of its own.
type peer struct {
	id       protocol.NodeID
	store    *store.Store
	replicas *replica.Manager
	fetchers *Fetchers
	wakes    chan struct{}
}

func newPeer(t *testing.T, id protocol.NodeID, other func() *peer) *peer {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(uint64(id), 3))
	random := func() uint64 { mu.Lock(); defer mu.Unlock(); return source.Uint64() }
	mem := vfs.NewMem(random)
	must(t, mem.MkdirAll("/data"), mem.SyncDir(path.Dir("/data")), logdir.WriteMetaProperties(mem, "/data", logdir.MetaProperties{
		ClusterID: "cluster", NodeID: id, DirectoryID: protocol.DirectoryID{byte(id)},
	}))
	options := log.DefaultOptions()
	options.MinInSyncReplicas, options.SegmentBytes = 2, 20_000
	s, _, err := store.Open(time.Now(), store.Options{
		FS: mem, Dirs: []string{"/data"}, MetadataDir: "/data", NodeID: id, Files: segment.NewFileCache(mem, 100), Random: random,
		LogOptions: func(string) log.Options { return options },
	})
	must(t, err)
	p := &peer{id: id, store: s, wakes: make(chan struct{}, 1)}
	workers := func(task func()) { go task() }
	p.replicas = replica.New(time.Now(), replica.Options{NodeID: id, Store: s, Pool: compress.NewPool(), Workers: workers})
	p.fetchers = New(Options{
		NodeID: id, Replicas: p.replicas, Workers: workers, MaxWait: 20 * time.Millisecond, Backoff: time.Millisecond, MaxBytes: 2000,
		Send: func(_ protocol.NodeID, _ int, req kmsg.Request, done Done) { go other().serve(req, done) },
	})
	wake := func() {
		select {
		case p.wakes <- struct{}{}:
		default:
		}
	}
	p.fetchers.Wake, p.replicas.Wake = wake, wake
	return p
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pump ticks until stop is closed.
func (p *peer) pump(stop chan struct{}) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.wakes:
		case <-ticker.C:
		case <-stop:
			return
		}
		p.replicas.Tick(time.Now())
		p.fetchers.Tick(time.Now())
	}
}

// serve answers a Fetch as a leader does that keeps no sessions.
func (p *peer) serve(req kmsg.Request, done Done) {
	fetch := req.(*kmsg.FetchRequest)
	asked := replica.FetchRequest{
		Replica: protocol.NodeID(fetch.ReplicaState.ID), ReplicaEpoch: -1, MinBytes: 1, MaxBytes: 1 << 20, Version: 17,
		MaxWait: time.Duration(fetch.MaxWaitMillis) * time.Millisecond,
	}
	for _, topic := range fetch.Topics {
		for _, one := range topic.Partitions {
			asked.Partitions = append(asked.Partitions, replica.FetchPartition{
				Partition: orders(one.Partition), TopicID: topic.TopicID, Offset: protocol.Offset(one.FetchOffset), MaxBytes: int(one.PartitionMaxBytes),
				CurrentLeaderEpoch: protocol.LeaderEpoch(one.CurrentLeaderEpoch), LastFetchedEpoch: protocol.LeaderEpoch(one.LastFetchedEpoch),
			})
		}
	}
	p.replicas.Fetch(time.Now(), asked, func(results []replica.FetchResult) {
		resp := kmsg.NewPtrFetchResponse()
		topic := kmsg.NewFetchResponseTopic()
		topic.TopicID = topicID
		var frame *wire.Frame
		for i := range results {
			data := kmsg.NewFetchResponseTopicPartition()
			data.Partition, data.ErrorCode = asked.Partitions[i].Partition.Partition, int16(protocol.CodeOf(results[i].Err))
			data.HighWatermark, data.LogStartOffset = int64(results[i].HighWatermark), int64(results[i].LogStartOffset)
			if d := results[i].Diverging; d != nil {
				data.DivergingEpoch.Epoch, data.DivergingEpoch.EndOffset = int32(d.Epoch), int64(d.EndOffset)
			}
			bytes, err := results[i].Records.ReadAll()
			if err == nil && len(bytes) > 0 && frame == nil {
				frame = wire.NewFrame(len(bytes), nil)
				copy(frame.Bytes, bytes)
				data.RecordBatches = frame.Bytes
			}
			results[i].Records.Release()
			topic.Partitions = append(topic.Partitions, data)
		}
		resp.Topics = append(resp.Topics, topic)
		done(time.Now(), resp, frame, nil)
	})
}

// TestTogether: two nodes on real goroutines, whose roles change under load. What both have acknowledged stays, and in the
// end the logs are equal.
func TestTogether(t *testing.T) {
	var peers [2]*peer
	peers[0] = newPeer(t, 1, func() *peer { return peers[1] })
	peers[1] = newPeer(t, 2, func() *peer { return peers[0] })
	stop := make(chan struct{})
	var pumps, producers sync.WaitGroup
	for _, p := range peers {
		pumps.Go(func() { p.pump(stop) })
	}
	var leader atomic.Int64
	var ending atomic.Bool
	var acked atomic.Int64
	var mu sync.Mutex
	at := map[protocol.Offset]string{}
	for n := range 2 {
		producers.Go(func() {
			for count := 0; !ending.Load(); count++ {
				value := fmt.Sprintf("%d-%d", n, count)
				if offset, ok := produce(peers[leader.Load()], value); ok {
					mu.Lock()
					at[offset] = value
					mu.Unlock()
					acked.Add(1)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	for epoch := range protocol.LeaderEpoch(40) {
		leads := random.IntN(2)
		for _, i := range random.Perm(2) {
			assign(t, peers[i], protocol.NodeID(leads+1), epoch)
		}
		leader.Store(int64(leads))
		until(t, "acknowledgements", func() bool { return acked.Load() > int64(epoch)*10 })
	}
	ending.Store(true)
	producers.Wait()
	until(t, "equal logs", func() bool {
		first, second := peers[0].store.Log(orders(0)).View(), peers[1].store.Log(orders(0)).View()
		return first.LogEndOffset == second.LogEndOffset
	})
	one, two := values(t, peers[0]), values(t, peers[1])
	if !slices.Equal(one, two) {
		t.Errorf("the logs are not equal: %d and %d values", len(one), len(two))
	}
	for offset, value := range at {
		if one[offset] != value {
			t.Errorf("%s was acknowledged at %d, where there is %q", value, offset, one[offset])
		}
	}
	close(stop)
	pumps.Wait()
	for _, p := range peers {
		p.fetchers.Close()
		must(t, p.replicas.Close(time.Now()))
		must(t, p.store.Close(time.Now(), true, -1))
	}
}

func assign(t *testing.T, p *peer, leader protocol.NodeID, epoch protocol.LeaderEpoch) {
	t.Helper()
	must(t, p.replicas.Apply(time.Now(), orders(0), partition.State{
		TopicID: topicID, Leader: leader, LeaderEpoch: epoch, PartitionEpoch: int32(epoch),
		ISR: []protocol.NodeID{1, 2}, Replicas: []protocol.NodeID{1, 2},
	}, protocol.DirectoryUnassigned, true))
	if leader == p.id {
		p.fetchers.Unassign(orders(0))
		return
	}
	p.fetchers.Assign(time.Now(), orders(0), topicID, leader, epoch)
}

// produce appends one record and waits until both have it, or one of them is asked in vain.
func produce(p *peer, value string) (protocol.Offset, bool) {
	b := record.NewBuilder(record.PlainOptions())
	b.Append(time.Now().UnixMilli(), nil, []byte(value), nil)
	answer := make(chan replica.AppendResult, 1)
	p.replicas.Append(time.Now(), replica.AppendRequest{
		Partition: orders(0), Records: b.Build(nil), RequiredAcks: replica.AcksAll, Timeout: time.Second, AllowZstd: true,
	}, func(result replica.AppendResult) { answer <- result })
	result := <-answer
	return result.BaseOffset, result.Err == nil
}

func values(t *testing.T, p *peer) (list []string) {
	t.Helper()
	l := p.store.Log(orders(0))
	for from := protocol.Offset(0); from < l.View().LogEndOffset; {
		read, err := l.Read(from, 1<<20, l.View().LogEndOffset, true)
		must(t, err)
		bytes, err := read.Region.ReadAll()
		must(t, err)
		read.Region.Release()
		for len(bytes) > 0 {
			batch, rest, err := record.Next(bytes)
			must(t, err)
			for r, err := range record.Records(batch, nil, 1<<20) {
				must(t, err)
				list = append(list, string(r.Value))
			}
			from, bytes = batch.NextOffset(), rest
		}
	}
	return list
}

// until waits for what must come.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !come() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
