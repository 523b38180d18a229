package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// memorySource is a RegionSource over bytes that counts what is done to it.
type memorySource struct {
	*bytes.Reader
	generation uint64
	released   int
	onRead     func()
}

func (s *memorySource) Fd() (uintptr, bool) { return 0, false }
func (s *memorySource) Generation() uint64  { return s.generation }
func (s *memorySource) Release()            { s.released++ }
func (s *memorySource) ReadAt(p []byte, offset int64) (int, error) {
	if s.onRead != nil {
		s.onRead()
	}
	return s.Reader.ReadAt(p, offset)
}

// fileRegion gives data as a region in the middle of a file.
func fileRegion(data []byte) (Region, *memorySource) {
	file := append(append([]byte("before"), data...), "after"...)
	source := &memorySource{Reader: bytes.NewReader(file), generation: 3}
	return Region{Source: source, Position: 6, Length: int64(len(data)), Generation: 3}, source
}

// join writes chunks out as one message, without the length.
func join(t *testing.T, chunks []Chunk) []byte {
	t.Helper()
	var out []byte
	for i, c := range chunks {
		if (c.Region == nil) == (len(c.Bytes) == 0) {
			t.Fatalf("chunk %d is neither bytes nor a region: %+v", i, c)
		}
		out = append(out, c.Bytes...)
		if c.Region != nil {
			data, err := c.Region.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, data...)
		}
	}
	if got := int(out[0])<<24 | int(out[1])<<16 | int(out[2])<<8 | int(out[3]); got != len(out)-4 {
		t.Fatalf("length %d for %d bytes", got, len(out)-4)
	}
	return out[4:]
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// goldenFetch builds what testdata/Golden.java builds.
func goldenFetch(version int16, variant string, region func([]byte) Region) *FetchResponse {
	r := &FetchResponse{Version: version, ThrottleMs: 17, ErrorCode: protocol.InvalidFetchSessionEpoch, SessionID: 123456789}
	if variant == "empty" {
		return r
	}
	rack := "r1"
	r.NodeEndpoints = []NodeEndpoint{{9, "broker-9", 9092, &rack}, {10, "broker-10", 9093, nil}}
	preferred := protocol.NoNode
	if version >= 11 {
		preferred = 2
	}
	id := protocol.TopicID{}
	for i := range id {
		id[i] = byte(i)
	}
	r.Topics = []FetchTopic{{Topic: "orders", TopicID: id, Partitions: []FetchPartition{
		{
			Partition: 3, HighWatermark: 100, LastStableOffset: 90, LogStartOffset: 5, Records: region(pattern(300)),
			AbortedTransactions: []AbortedTransaction{{7, 50}, {8, 60}}, PreferredReadReplica: preferred, SnapshotID: &SnapshotID{77, 6},
		},
		{
			Partition: 4, ErrorCode: protocol.NotLeaderOrFollower, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1,
			PreferredReadReplica: -1, CurrentLeader: &LeaderIDAndEpoch{9, 33}, DivergingEpoch: &EpochEndOffset{4, 1 << 40},
		},
	}}, {Topic: "x", TopicID: protocol.MetadataTopicID, Partitions: []FetchPartition{{
		HighWatermark: 1, LastStableOffset: 1, Records: region(pattern(4500)), AbortedTransactions: []AbortedTransaction{},
		PreferredReadReplica: -1, CurrentLeader: &LeaderIDAndEpoch{-1, -1}, DivergingEpoch: &EpochEndOffset{-1, -1}, SnapshotID: &SnapshotID{-1, -1},
	}}}}
	return r
}

func TestFetchResponseAsApacheKafkaWritesIt(t *testing.T) {
	text, err := os.ReadFile("testdata/fetch.golden")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var version int16
		var variant, want string
		if _, err := fmt.Sscan(line, &version, &variant, &want); err != nil {
			t.Fatal(err)
		}
		inMemory := func(data []byte) Region { return Region{Bytes: data} }
		inFile := func(data []byte) Region { r, _ := fileRegion(data); return r }
		for _, region := range []func([]byte) Region{inMemory, inFile} {
			out := join(t, goldenFetch(version, variant, region).Chunks(0x01020304))
			header := "01020304"
			if version >= 12 {
				header += "00"
			}
			if got := hex.EncodeToString(out); got != header+want {
				t.Errorf("version %d %s:\ngot  %s\nwant %s", version, variant, got, header+want)
			}
		}
	}
}

// randomFetch gives the same random response in both forms.
func randomFetch(random *rand.Rand, version int16) (*FetchResponse, *kmsg.FetchResponse) {
	ours := &FetchResponse{Version: version, ThrottleMs: random.Int32(), ErrorCode: protocol.ErrorCode(random.IntN(100)), SessionID: random.Int32()}
	theirs := kmsg.NewPtrFetchResponse()
	theirs.Version, theirs.ThrottleMillis, theirs.ErrorCode, theirs.SessionID = version, ours.ThrottleMs, int16(ours.ErrorCode), ours.SessionID
	for range random.IntN(4) {
		name := strings.Repeat("t", random.IntN(200))
		topic, theirTopic := FetchTopic{Topic: name, TopicID: protocol.NewUUID(random.Uint64)}, kmsg.NewFetchResponseTopic()
		theirTopic.Topic, theirTopic.TopicID = name, topic.TopicID
		for range random.IntN(4) {
			p, theirPartition := randomPartition(random)
			topic.Partitions = append(topic.Partitions, p)
			theirTopic.Partitions = append(theirTopic.Partitions, theirPartition)
		}
		ours.Topics = append(ours.Topics, topic)
		theirs.Topics = append(theirs.Topics, theirTopic)
	}
	for range random.IntN(3) {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port = random.Int32(), strings.Repeat("h", random.IntN(150)), random.Int32()
		if random.IntN(2) == 0 {
			b.Rack = kmsg.StringPtr("rack")
		}
		theirs.Brokers = append(theirs.Brokers, b)
		ours.NodeEndpoints = append(ours.NodeEndpoints, NodeEndpoint{protocol.NodeID(b.NodeID), b.Host, b.Port, b.Rack})
	}
	return ours, theirs
}

func randomPartition(random *rand.Rand) (FetchPartition, kmsg.FetchResponseTopicPartition) {
	q := kmsg.NewFetchResponseTopicPartition()
	q.Partition, q.ErrorCode = random.Int32(), int16(random.IntN(100))
	q.HighWatermark, q.LastStableOffset, q.LogStartOffset = random.Int64(), random.Int64(), random.Int64()
	q.PreferredReadReplica, q.RecordBatches = random.Int32(), pattern(random.IntN(3)*random.IntN(9000))
	p := FetchPartition{
		Partition: q.Partition, ErrorCode: protocol.ErrorCode(q.ErrorCode), HighWatermark: protocol.Offset(q.HighWatermark),
		LastStableOffset: protocol.Offset(q.LastStableOffset), LogStartOffset: protocol.Offset(q.LogStartOffset),
		PreferredReadReplica: protocol.NodeID(q.PreferredReadReplica), Records: Region{Bytes: q.RecordBatches},
	}
	if random.IntN(2) == 0 {
		p.Records, _ = fileRegion(q.RecordBatches)
	}
	if random.IntN(2) == 0 {
		q.DivergingEpoch.Epoch, q.DivergingEpoch.EndOffset = random.Int32(), random.Int64()
		p.DivergingEpoch = &EpochEndOffset{protocol.LeaderEpoch(q.DivergingEpoch.Epoch), protocol.Offset(q.DivergingEpoch.EndOffset)}
	}
	if random.IntN(2) == 0 {
		q.CurrentLeader.LeaderID, q.CurrentLeader.LeaderEpoch = random.Int32(), -1
		p.CurrentLeader = &LeaderIDAndEpoch{protocol.NodeID(q.CurrentLeader.LeaderID), -1}
	}
	if random.IntN(2) == 0 {
		q.SnapshotID.EndOffset, q.SnapshotID.Epoch = random.Int64(), random.Int32()
		p.SnapshotID = &SnapshotID{protocol.Offset(q.SnapshotID.EndOffset), protocol.LeaderEpoch(q.SnapshotID.Epoch)}
	}
	if n := random.IntN(4); n > 0 {
		q.AbortedTransactions, p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}, []AbortedTransaction{}
		for i := range n - 1 {
			a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			a.ProducerID, a.FirstOffset = random.Int64(), int64(i)
			q.AbortedTransactions = append(q.AbortedTransactions, a)
			p.AbortedTransactions = append(p.AbortedTransactions, AbortedTransaction{protocol.ProducerID(a.ProducerID), protocol.Offset(i)})
		}
	}
	return p, q
}

func TestFetchResponseEqualsKmsg(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for version := int16(4); version <= 18; version++ {
		for range 200 {
			ours, theirs := randomFetch(random, version)
			want := AppendResponse(nil, 99, theirs)[LengthBytes:]
			if got := join(t, ours.Chunks(99)); !bytes.Equal(got, want) {
				t.Fatalf("version %d:\ngot  %x\nwant %x", version, got, want)
			}
		}
	}
}

func TestFetchResponseReleasesEveryRegionOnce(t *testing.T) {
	var sources []*memorySource
	r := goldenFetch(12, "full", func(data []byte) Region {
		region, source := fileRegion(data)
		sources = append(sources, source)
		return region
	})
	r.Chunks(1)
	r.Release()
	for i, source := range sources {
		if source.released != 1 {
			t.Errorf("region %d was released %d times", i, source.released)
		}
	}
}

// What Apache Kafka's FetchResponse.partitionResponse gives.
func TestFailedFetch(t *testing.T) {
	theirs := kmsg.NewPtrFetchResponse()
	theirs.Version = 11
	topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	partition.Partition, partition.ErrorCode, partition.HighWatermark, partition.RecordBatches = 3, 6, -1, []byte{}
	partition.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	topic.Partitions = append(topic.Partitions, partition)
	theirs.Topics = append(theirs.Topics, topic)
	ours := &FetchResponse{Version: 11, Topics: []FetchTopic{{Partitions: []FetchPartition{FailedFetch(3, protocol.NotLeaderOrFollower)}}}}
	if got, want := join(t, ours.Chunks(1)), AppendResponse(nil, 1, theirs)[LengthBytes:]; !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
