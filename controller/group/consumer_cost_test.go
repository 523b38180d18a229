package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
)

// steadyGroup is a group whose members have everything that they want. requests
// are the heartbeats that they send from then on.
func steadyGroup(t testing.TB, members, partitions int) (c *Coordinator, requests []Request) {
	r := &rig{t: t, image: metadata.Empty()}
	r.addTopic("t", topicID("t"), int32(partitions))
	s := settings()
	s.Consumer.MaxSize = 10_000
	words := uint64(0)
	c = New(Options{Settings: s, Random: func() uint64 { words++; return words }, Image: func() *metadata.Image { return r.image }})
	now := began
	if _, err := c.Activate(machine.Turn{Now: now}, 1); err != nil {
		t.Fatal(err)
	}
	send := func(m *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
		result, err := c.Handle(machine.Turn{Now: now}, Request{Message: m, ClientID: "c", ClientHost: "/127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(0, 1, 0, result.Records); err != nil {
			t.Fatal(err)
		}
		reply := result.Reply.(*kmsg.ConsumerGroupHeartbeatResponse)
		if reply.ErrorCode != 0 {
			t.Fatal(protocol.ErrorCode(reply.ErrorCode))
		}
		return reply
	}
	// Only the last one's target is made, as with an interval between them.
	c.options.Settings.Consumer.AssignmentInterval.Ms = 1000
	epochs, has := make([]int32, members), make([][]int32, members)
	name := func(i int) string { return fmt.Sprintf("member-%06d", i) }
	learn := func(i int, reply *kmsg.ConsumerGroupHeartbeatResponse) {
		epochs[i] = reply.MemberEpoch
		if reply.Assignment != nil {
			has[i] = nil
			for _, topic := range reply.Assignment.Topics {
				has[i] = topic.Partitions
			}
		}
	}
	for i := range members {
		learn(i, send(consumerBeat("g", name(i), 0, "t")))
	}
	for range 4 {
		now = now.Add(2 * time.Second)
		for i := range members {
			m := consumerBeat("g", name(i), epochs[i])
			m.Topics = owns(topicID("t"), has[i]...)
			learn(i, send(m))
		}
	}
	if state := c.lookup("g").consumer.State(); state != "Stable" {
		t.Fatalf("the group is %s", state)
	}
	for i := range members {
		requests = append(requests, Request{Message: consumerBeat("g", name(i), epochs[i]), ClientID: "c", ClientHost: "/127.0.0.1"})
	}
	return c, requests
}

// TestHeartbeatIsCheap bounds what a heartbeat allocates that changes nothing, and
// wants no record of it.
func TestHeartbeatIsCheap(t *testing.T) {
	c, requests := steadyGroup(t, 200, 20_000)
	i := 0
	allocations := testing.AllocsPerRun(1000, func() {
		result, err := c.Handle(machine.Turn{Now: began.Add(10 * time.Second)}, requests[i%len(requests)])
		if err != nil || len(result.Records) > 0 {
			t.Fatal(err, len(result.Records))
		}
		i++
	})
	if allocations > 12 {
		t.Errorf("a heartbeat allocates %v times", allocations)
	}
}

// BenchmarkConsumerHeartbeat is a heartbeat that changes nothing.
func BenchmarkConsumerHeartbeat(b *testing.B) {
	for _, size := range []struct{ members, partitions int }{{1000, 1000}, {100, 100_000}} {
		b.Run(fmt.Sprintf("%d members %d partitions", size.members, size.partitions), func(b *testing.B) {
			c, requests := steadyGroup(b, size.members, size.partitions)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := c.Handle(machine.Turn{Now: began.Add(10 * time.Second)}, requests[i%len(requests)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkConsumerRebalance is one more member that joins and brings a new target about,
// and the heartbeat of another by which it learns of it.
func BenchmarkConsumerRebalance(b *testing.B) {
	for _, size := range []struct{ members, partitions int }{{1000, 1000}, {100, 100_000}} {
		b.Run(fmt.Sprintf("%d members %d partitions", size.members, size.partitions), func(b *testing.B) {
			c, requests := steadyGroup(b, size.members, size.partitions)
			c.options.Settings.Consumer.AssignmentInterval.Ms = 0
			records := 0
			for b.Loop() {
				result, err := c.Handle(machine.Turn{Now: began.Add(10 * time.Second)}, Request{Message: consumerBeat("g", "zz", 0, "t")})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Handle(machine.Turn{Now: began.Add(10 * time.Second)}, requests[0]); err != nil {
					b.Fatal(err)
				}
				records = len(result.Records)
			}
			b.ReportMetric(float64(records), "records")
		})
	}
}
