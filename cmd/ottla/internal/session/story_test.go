package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// storyteller runs testdata/stories: a Fetch, what it reads, and the reply of a
// log whose partitions are at high watermark 10 and log start 0, but where the
// story says otherwise.
type storyteller struct {
	now   time.Time
	next  uint64
	cache *Cache
}

func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &storyteller{now: time.UnixMilli(1_000_000)}
		s.newCache(1000)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "cache":
				var slots int
				d.ScanArgs(t, "slots", &slots)
				s.newCache(slots)
			case "pass":
				passed, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				s.now = s.now.Add(passed)
			case "fetch":
				return s.fetch(t, d)
			default:
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			return ""
		})
	})
}

func (s *storyteller) newCache(slots int) {
	s.next = 0
	s.cache = NewCache(Options{Slots: slots, Random: func() uint64 { s.next++; return s.next - 1 }})
}

// argument gives the items of an argument that may be missing: a:0:1 as words.
func argument(d *datadriven.TestData, name string) (items [][]string) {
	for _, arg := range d.CmdArgs {
		if arg.Key != name {
			continue
		}
		for _, value := range arg.Vals {
			items = append(items, parts(value)...)
		}
	}
	return items
}

func (s *storyteller) fetch(t *testing.T, d *datadriven.TestData) string {
	req := kmsg.NewPtrFetchRequest()
	d.ScanArgs(t, "version", &req.Version)
	d.ScanArgs(t, "session", &req.SessionID)
	d.ScanArgs(t, "epoch", &req.SessionEpoch)
	if d.HasArg("follower") {
		req.ReplicaID = 7
	}
	for _, item := range argument(d, "want") {
		topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		topic.Topic, partition.Partition, partition.FetchOffset = item[0], int32(number(item[1])), number(item[2])
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics = append(req.Topics, topic)
	}
	for _, item := range argument(d, "forget") {
		topic := kmsg.NewFetchRequestForgottenTopic()
		topic.Topic, topic.Partitions = item[0], []int32{int32(number(item[1]))}
		req.ForgottenTopics = append(req.ForgottenTopics, topic)
	}
	x, err := s.cache.Decide(s.now, req, topicOf)
	if err != nil {
		return protocol.CodeOf(err).String()
	}
	out, results := "read", []Result{}
	for _, p := range x.Partitions() {
		out += fmt.Sprintf(" %s:%d:%d", p.Topic, p.Partition, p.FetchOffset)
		results = append(results, readPartition(d, p))
	}
	reply := x.Update(s.now, results)
	if reply.Err != nil {
		return out + "\n" + reply.Err.Error()
	}
	out += "\nno session:"
	if reply.SessionID != 0 {
		out = strings.TrimSuffix(out, "no session:") + fmt.Sprintf("session %d:", reply.SessionID)
	}
	for _, topic := range Topics(reply.Results) {
		var numbers []int32
		for _, p := range topic.Partitions {
			numbers = append(numbers, p.Partition)
		}
		out += fmt.Sprintf(" %s%v", topic.Topic, numbers)
	}
	return out
}

// readPartition is the log of the story.
func readPartition(d *datadriven.TestData, p Partition) Result {
	data := wire.FetchPartition{Partition: p.Partition, HighWatermark: 10, PreferredReadReplica: protocol.NoNode}
	said := func(name string, set func(n int64)) {
		for _, item := range argument(d, name) {
			if item[0] == p.Topic && item[1] == fmt.Sprint(p.Partition) {
				set(number(item[2]))
			}
		}
	}
	said("have", func(n int64) { data.Records.Bytes = make([]byte, n) })
	said("highwatermark", func(n int64) { data.HighWatermark = protocol.Offset(n) })
	said("logstart", func(n int64) { data.LogStartOffset = protocol.Offset(n) })
	said("error", func(n int64) {
		data = wire.FetchPartition{Partition: p.Partition, ErrorCode: protocol.ErrorCode(n), HighWatermark: -1, LogStartOffset: -1, PreferredReadReplica: protocol.NoNode}
	})
	return Result{Topic: p.Topic, Data: data}
}
