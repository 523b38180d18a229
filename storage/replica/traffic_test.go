package replica

import (
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/traffic"
)

// TestTraffic: what counts, once, for whom; and sums that outlive their topics.
func TestTraffic(t *testing.T) {
	f := newFixture(t)
	tp := protocol.TopicPartition{Topic: "counted"}
	id := protocol.TopicID{1}
	f.lead(tp, alone(id, 1))
	first, second := idempotent(7, 0, 3), idempotent(7, 3, 2)
	size := int64(len(first) + len(second))
	f.fill(tp, first, second, idempotent(7, 3, 2)) // the last is a duplicate
	if f.append(request(tp, idempotent(7, 9, 1), AcksAll)).Err == nil {
		t.Fatal("a gap in the sequence was taken")
	}
	elsewhere := protocol.TopicPartition{Topic: "elsewhere"}
	f.append(request(elsewhere, batch(1, 1), AcksAll))

	waiting, _ := f.poll(consumer(at(tp, 5))) // is answered once, by the deadline
	f.now = f.now.Add(time.Second)
	f.manager.Tick(f.now)
	for _, result := range append(waiting.get(), f.fetch(consumer(at(tp, 0)))...) {
		result.Records.Release()
	}
	debugging := consumer(at(tp, 0))
	debugging.Replica = Debugging
	f.fetch(debugging)[0].Records.Release()

	check := func(wantTopic bool) {
		t.Helper()
		seen := false
		f.manager.EachTraffic(func(topic string, c *traffic.Counters) {
			own := int64(0)
			if topic == "" {
				own = 1 // the request for a topic that is not here
			} else {
				seen = true
			}
			if c.BytesIn.Load() != size || c.MessagesIn.Load() != 5 || c.ProduceRequests.Load() != 4+own || c.ProduceFailed.Load() != 1 ||
				c.FetchRequests.Load() != 2 || c.BytesOut.Load() != size || c.ReplicatedOut.Load() != 0 || c.BytesRejected.Load() != 0 || c.FetchFailed.Load() != 0 {
				t.Errorf("%q: in %d bytes, %d records, %d requests, %d failed; out %d requests, %d bytes", topic,
					c.BytesIn.Load(), c.MessagesIn.Load(), c.ProduceRequests.Load(), c.ProduceFailed.Load(), c.FetchRequests.Load(), c.BytesOut.Load())
			}
		})
		if seen != wantTopic {
			t.Errorf("the topic is there: %v", seen)
		}
	}
	check(true)
	f.must(f.manager.Remove(f.now, tp, true))
	check(false)
}
