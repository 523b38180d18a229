package group

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// TestSurvey: groups with members and without, their offsets in order, and the bound.
func TestSurvey(t *testing.T) {
	r := newRig(t, settings())
	commit := func(group, topic string, partition int32, offset int64) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = partition, offset
		m := kmsg.NewPtrOffsetCommitRequest()
		m.Version, m.Group, m.Generation = 8, group, -1
		m.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		r.send(m, "c")
	}
	commit("b", "t", 1, 11)
	commit("b", "t", 0, 10)
	commit("b", "s", 0, 9)
	r.send(joinOf("a", "", 3), "c")
	survey := func(most int) *Surveyed {
		t.Helper()
		result, err := r.c.Handle(r.turn(), Survey{MaxOffsets: most})
		if err != nil || len(result.Records) > 0 || len(result.Effects) > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.Reply.(*Surveyed)
	}
	if reply := r.send(consumerBeat("c", "m", 0, "t"), "c").reply.(*kmsg.ConsumerGroupHeartbeatResponse); reply.ErrorCode != 0 {
		t.Fatalf("%+v", reply)
	}
	joining := SurveyedGroup{Name: "a", State: "PreparingRebalance", Kind: "classic", Members: 1}
	consumers := SurveyedGroup{Name: "c", State: "Stable", Kind: "consumer", Members: 1}
	offsets := []SurveyedOffset{
		{protocol.TopicPartition{Topic: "s"}, 9}, {protocol.TopicPartition{Topic: "t"}, 10}, {protocol.TopicPartition{Topic: "t", Partition: 1}, 11},
	}
	want := &Surveyed{Groups: []SurveyedGroup{joining, {Name: "b", State: "Empty", Kind: "classic", Offsets: offsets}, consumers}}
	if got := survey(3); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = &Surveyed{Groups: []SurveyedGroup{joining, {Name: "b", State: "Empty", Kind: "classic"}, consumers}, TooMany: true}
	if got := survey(2); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
