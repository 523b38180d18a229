package offsets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// entry is one thing that the log has, in a model that looks at all of it every
// time.
type entry struct {
	kind      string // put, pend, remove, end
	producer  protocol.ProducerID
	group     string
	topic     string
	partition int32
	committed bool
}

// committedIn finds by the log which record is the committed offset, -1 for none,
// and whether something is pending.
func committedIn(log []entry, group, topic string, partition int32) (record int, open bool) {
	record = -1
	pending := map[protocol.ProducerID]int{}
	for at, e := range log {
		here := e.group == group && e.topic == topic && e.partition == partition
		switch {
		case e.kind == "put" && here:
			record = at
		case e.kind == "pend" && here:
			pending[e.producer] = at
		case e.kind == "remove" && here:
			record = -1
			clear(pending)
		case e.kind == "end":
			if was, found := pending[e.producer]; found && e.committed {
				record = max(record, was)
			}
			delete(pending, e.producer)
		}
	}
	return record, len(pending) > 0
}

func TestStoreAgainstTheLog(t *testing.T) {
	groups, topics := []string{"g", "h"}, []string{"t", "u"}
	for seed := range uint64(50) {
		source, s := rand.New(rand.NewPCG(seed, 1)), NewStore()
		var log []entry
		for at := range 200 {
			e := entry{
				kind: []string{"put", "pend", "pend", "remove", "end"}[source.IntN(5)], producer: protocol.ProducerID(source.IntN(3)),
				group: groups[source.IntN(2)], topic: topics[source.IntN(2)], partition: int32(source.IntN(2)), committed: source.IntN(2) == 0,
			}
			o := Offset{Offset: protocol.Offset(at), Record: protocol.Offset(at)}
			switch e.kind {
			case "put":
				s.Put(e.group, e.topic, e.partition, o)
			case "pend":
				s.Pend(e.producer, e.group, e.topic, e.partition, o)
			case "remove":
				s.Remove(e.group, e.topic, e.partition)
			case "end":
				s.End(e.producer, e.committed)
			}
			log = append(log, e)
			compare(t, s, log, groups, topics)
		}
		for id := range protocol.ProducerID(3) {
			s.End(id, false)
		}
		if len(s.open) > 0 || len(s.pending) > 0 {
			t.Fatalf("seed %d: %v is open when every transaction has ended", seed, s.open)
		}
	}
}

func compare(t *testing.T, s *Store, log []entry, groups, topics []string) {
	t.Helper()
	count := 0
	var known []string
	for _, group := range groups {
		var any, want []string
		openOf := false
		for _, topic := range topics {
			for partition := range int32(2) {
				record, open := committedIn(log, group, topic, partition)
				got, found := s.Get(group, topic, partition)
				if found != (record >= 0) || found && int(got.Record) != record || s.Open(group, topic, partition) != open {
					t.Fatalf("%s %s-%d after %d: %v %v, open %v; not record %d, open %v", group, topic, partition, len(log), got, found, s.Open(group, topic, partition), record, open)
				}
				openOf = openOf || open
				if found {
					count++
				}
				if found || open {
					want = append(want, fmt.Sprint(topic, partition))
				}
			}
		}
		s.EachAny(group, func(topic string, partition int32) { any = append(any, fmt.Sprint(topic, partition)) })
		slices.Sort(any)
		if !slices.Equal(any, want) || s.OpenOf(group) != openOf {
			t.Fatalf("%s has %v, not %v; open %v", group, any, want, openOf)
		}
		if len(want) > 0 {
			known = append(known, group)
		}
	}
	if !slices.Equal(s.Groups(), known) || s.Count() != count {
		t.Fatalf("%d offsets of %v, not %d of %v", s.Count(), s.Groups(), count, known)
	}
}

// A topic that is gone takes what is pending with it, but not what belongs to a
// later one of the name.
func TestEachOfTopic(t *testing.T) {
	s := NewStore()
	of := func(id byte) Offset { return Offset{TopicID: protocol.TopicID{id}} }
	s.Put("g", "t", 0, of(1))
	s.Put("g", "t", 1, of(2))
	s.Put("g", "t", 2, of(0))
	s.Pend(7, "g", "t", 3, of(1))
	s.Pend(7, "g", "t", 0, of(1))
	s.Pend(7, "g", "t", 4, of(2))
	var visited []int32
	s.EachOfTopic("g", "t", protocol.TopicID{1}, func(partition int32) { visited = append(visited, partition) })
	if !slices.Equal(visited, []int32{0, 2, 3}) {
		t.Errorf("visited %v", visited)
	}
}

func TestRecord(t *testing.T) {
	for _, o := range []Offset{
		{Offset: 5, Epoch: 2, Metadata: "m", TopicID: protocol.TopicID{3}, CommitMs: 9, ExpireMs: -1, Record: 4},
		{Offset: 5, Epoch: protocol.NoLeaderEpoch, CommitMs: 9, ExpireMs: 11, Record: 4},
	} {
		r := Record("g", "t", 1, o)
		value, version, err := schema.DecodeValue(schema.GroupLog, 1, r.Value)
		if err != nil || (version == valueExpiresVersion) != (o.ExpireMs >= 0) {
			t.Fatalf("version %d: %v", version, err)
		}
		if got := Of(value.(*schema.OffsetCommitValue), 4); got != o {
			t.Errorf("%+v became %+v", o, got)
		}
	}
	if r := Tombstone("g", "t", 1); r.Value != nil || string(r.Key) != string(Record("g", "t", 1, Offset{}).Key) {
		t.Errorf("the tombstone is %+v", r)
	}
}

func TestFetch(t *testing.T) {
	s := NewStore()
	s.Put("g", "t", 0, Offset{Offset: 1, Epoch: 4, Metadata: "a", TopicID: protocol.TopicID{1}})
	s.Put("g", "u", 2, Offset{Offset: 2})
	s.Pend(7, "g", "t", 0, Offset{Offset: 9})
	show := func(topics []kmsg.OffsetFetchResponseGroupTopic) string {
		var b strings.Builder
		for _, topic := range topics {
			for _, p := range topic.Partitions {
				fmt.Fprintf(&b, "%s-%d %d/%d %q %v\n", topic.Topic, p.Partition, p.Offset, p.LeaderEpoch, *p.Metadata, protocol.ErrorCode(p.ErrorCode))
			}
		}
		return b.String()
	}
	asked := []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: protocol.TopicID{2}, Partitions: []int32{0, 1}}}
	for _, test := range []struct {
		asked  []kmsg.OffsetFetchRequestGroupTopic
		stable bool
		want   string
	}{
		{nil, false, "t-0 1/4 \"a\" NONE\nu-2 2/0 \"\" NONE\n"},
		{nil, true, "t-0 -1/-1 \"\" UNSTABLE_OFFSET_COMMIT\nu-2 2/0 \"\" NONE\n"},
		{asked, false, "t-0 -1/-1 \"\" NONE\nt-1 -1/-1 \"\" NONE\n"},
		{asked, true, "t-0 -1/-1 \"\" UNSTABLE_OFFSET_COMMIT\nt-1 -1/-1 \"\" NONE\n"},
		{[]kmsg.OffsetFetchRequestGroupTopic{}, true, ""},
	} {
		if got := show(s.Fetch("g", test.asked, test.stable)); got != test.want {
			t.Errorf("stable %v: %q, not %q", test.stable, got, test.want)
		}
	}
}
