package session

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

var topicIDs = map[string]protocol.TopicID{"a": {7: 1, 15: 1}, "b": {7: 2, 15: 2}, "c": {7: 3, 15: 3}}

func topicOf(id protocol.TopicID) string {
	for name, known := range topicIDs {
		if id == known {
			return name
		}
	}
	return ""
}

// replayer asks a cache what testdata/Sessions.java asked Apache Kafka's.
type replayer struct {
	t        *testing.T
	cache    *Cache
	nextID   int32 // that the random numbers lead to
	names    int   // how many topic ids are known: c comes late
	contexts map[string]*Context
	versions map[string]int16
}

// fields gives the key=value words of a line.
func fields(text string) map[string]string {
	values := map[string]string{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	return values
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// parts splits "a:0:6,b:1:7," into lists of words.
func parts(text string) (lists [][]string) {
	for item := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		if item != "" {
			lists = append(lists, strings.Split(item, ":"))
		}
	}
	return lists
}

func (r *replayer) topicName(id protocol.TopicID) string {
	name := topicOf(id)
	if name == "c" && r.names < 3 {
		return ""
	}
	return name
}

func (r *replayer) request(q map[string]string) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = int16(number(q["version"]))
	req.SessionID, req.SessionEpoch = int32(number(q["session"])), int32(number(q["epoch"]))
	if q["follower"] == "true" {
		req.ReplicaID, req.ReplicaState.ID = 5, 5
	}
	for _, item := range parts(q["want"]) {
		topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		topic.Topic, topic.TopicID = item[0], topicIDs[item[0]]
		partition.Partition, partition.FetchOffset = int32(number(item[1])), number(item[2])
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics = append(req.Topics, topic)
	}
	for _, item := range parts(q["forget"]) {
		topic := kmsg.NewFetchRequestForgottenTopic()
		topic.Topic, topic.TopicID = item[0], topicIDs[item[0]]
		topic.Partitions = []int32{int32(number(item[1]))}
		req.ForgottenTopics = append(req.ForgottenTopics, topic)
	}
	if req.Version >= 13 { // as decoded: names are not there
		for i := range req.Topics {
			req.Topics[i].Topic = ""
		}
		for i := range req.ForgottenTopics {
			req.ForgottenTopics[i].Topic = ""
		}
	} else {
		for i := range req.Topics {
			req.Topics[i].TopicID = [16]byte{}
		}
		for i := range req.ForgottenTopics {
			req.ForgottenTopics[i].TopicID = [16]byte{}
		}
	}
	return req
}

func (r *replayer) decide(label string, now time.Time, q map[string]string) string {
	r.names = int(number(q["names"]))
	req := r.request(q)
	x, err := r.cache.Decide(now, req, r.topicName)
	if err != nil {
		return fmt.Sprintf("error=%d", protocol.CodeOf(err))
	}
	r.contexts[label], r.versions[label] = x, req.Version
	out := "read="
	for _, p := range x.Partitions() {
		name := p.Topic
		if name == "" {
			name = topicOf(p.TopicID) + "?"
		}
		out += fmt.Sprintf("%s:%d:%d,", name, p.Partition, p.FetchOffset)
	}
	return out
}

func (r *replayer) results(label, text string) (results []Result) {
	for _, item := range parts(text) {
		name := strings.TrimSuffix(item[0], "?")
		result := Result{Topic: name, Data: wire.FetchPartition{
			Partition: int32(number(item[1])), HighWatermark: protocol.Offset(number(item[2])), LogStartOffset: protocol.Offset(number(item[3])),
			Records: wire.Region{Bytes: make([]byte, number(item[4]))}, PreferredReadReplica: protocol.NodeID(number(item[5])), ErrorCode: protocol.ErrorCode(number(item[6])),
		}}
		if epoch := number(item[7]); epoch >= 0 {
			result.Data.DivergingEpoch = &wire.EpochEndOffset{Epoch: protocol.LeaderEpoch(epoch)}
		}
		if r.versions[label] >= 13 {
			result.TopicID = topicIDs[name]
		}
		results = append(results, result)
	}
	return results
}

func (r *replayer) update(label string, now time.Time, q map[string]string) string {
	results := r.results(label, q["results"])
	reply := r.contexts[label].Update(now, results)
	if len(reply.Results)+len(reply.Dropped) != len(results) {
		r.t.Errorf("context %s: %d results became %d and %d", label, len(results), len(reply.Results), len(reply.Dropped))
	}
	out := fmt.Sprintf("error=%d session=%d reply=", protocol.CodeOf(reply.Err), reply.SessionID)
	for _, topic := range Topics(reply.Results) {
		name := topic.Topic
		if name == "" {
			name = topicOf(topic.TopicID)
		}
		out += name + "["
		for _, p := range topic.Partitions {
			out += fmt.Sprintf("%d,", p.Partition)
		}
		out += "]"
	}
	return out
}

// Every decision of Apache Kafka, in thousands of random fetches, is ours.
func TestReplayOfApacheKafkasDecisions(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(paths) == 0 {
		t.Fatal("no goldens", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			replay(t, string(text))
		})
	}
}

func replay(t *testing.T, text string) {
	r := &replayer{t: t, contexts: map[string]*Context{}, versions: map[string]int16{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		question, want, _ := strings.Cut(line, " -> ")
		verb, rest, _ := strings.Cut(question, " ")
		if verb == "cache" {
			q := fields(rest)
			r.cache = NewCache(Options{Slots: int(number(q["slots"])), MinEviction: time.Duration(number(q["eviction"])) * time.Millisecond, Random: func() uint64 {
				return uint64(r.nextID - 1)
			}})
			continue
		}
		label, rest, _ := strings.Cut(rest, " ")
		q, answer := fields(rest), fields(want)
		now := time.UnixMilli(number(q["now"]))
		if id := answer["session"]; id != "" {
			r.nextID = int32(number(id))
		}
		var got string
		if verb == "decide" {
			got = r.decide(label, now, q)
		} else {
			got = r.update(label, now, q)
		}
		got += fmt.Sprintf(" sessions=%d partitions=%d", r.cache.Sessions(), r.cache.Partitions())
		if got != want {
			t.Fatalf("%s\ngot  %s\nwant %s", question, got, want)
		}
	}
}

func TestEpochs(t *testing.T) {
	for before, after := range map[int32]int32{0: 1, 1: 2, math.MaxInt32 - 1: math.MaxInt32, math.MaxInt32: 1, -1: -1, -7: -1} {
		if got := nextEpoch(before); got != after {
			t.Errorf("the epoch after %d is %d", before, got)
		}
	}
}

func TestSessionIDs(t *testing.T) {
	numbers := []uint64{0, math.MaxUint64, math.MaxInt32 - 1, math.MaxInt32 - 2, 0, 0, 41}
	c := NewCache(Options{Random: func() uint64 { n := numbers[0]; numbers = numbers[1:]; return n }})
	for _, want := range []int32{1, 1 + int32(math.MaxUint64%uint64(math.MaxInt32-1)), math.MaxInt32 - 1, 42} {
		s := c.create(time.UnixMilli(1), false, 0, true)
		if s.id != want {
			t.Errorf("session %d, want %d", s.id, want)
		}
	}
}

// The bound on partitions, which Kafka does not have: a full fetch that would
// pass it is served without a session, an incremental one closes its session.
func TestPartitionsAreBounded(t *testing.T) {
	next := uint64(0)
	c := NewCache(Options{MaxPartitions: 10, Random: func() uint64 { next++; return next }})
	now := time.UnixMilli(1)
	fetch := func(session, epoch int32, from, to int32) (*Context, error) {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.SessionID, req.SessionEpoch = 12, session, epoch
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = "a"
		for i := from; i < to; i++ {
			partition := kmsg.NewFetchRequestTopicPartition()
			partition.Partition = i
			topic.Partitions = append(topic.Partitions, partition)
		}
		req.Topics = append(req.Topics, topic)
		return c.Decide(now, req, nil)
	}
	answer := func(x *Context) Reply {
		var results []Result
		for _, p := range x.Partitions() {
			results = append(results, Result{Topic: p.Topic, Data: wire.FetchPartition{Partition: p.Partition, PreferredReadReplica: -1}})
		}
		return x.Update(now, results)
	}
	x, _ := fetch(0, 0, 0, 8)
	first := answer(x)
	if first.SessionID == 0 {
		t.Fatal("no session for eight partitions of ten")
	}
	x, _ = fetch(0, 0, 0, 3)
	if second := answer(x); second.SessionID != 0 || len(second.Results) != 3 {
		t.Errorf("eleven partitions: %+v", second)
	}
	if _, err := fetch(first.SessionID, 1, 5, 20); protocol.CodeOf(err) != protocol.FetchSessionIDNotFound {
		t.Errorf("a session grew beyond the bound: %v", err)
	}
	if c.Sessions() != 0 || c.Partitions() != 0 {
		t.Errorf("%d sessions, %d partitions are left", c.Sessions(), c.Partitions())
	}
}
