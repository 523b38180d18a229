package broker

import (
	"testing"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// TestThrottles: a rate limits what the topic lists for this broker, and no rate nothing.
func TestThrottles(t *testing.T) {
	f := newFixture(t)
	f.applier.Throttles = NewThrottles(1)
	f.make("orders", 1)
	set := func(kind int8, name, key, value string) {
		r := schema.NewConfigRecord()
		r.ResourceType, r.ResourceName, r.Name, r.Value = kind, name, key, &value
		f.write(r)
	}
	tp := protocol.TopicPartition{Topic: "orders"}
	expect := func(leader, follower bool) {
		t.Helper()
		if f.applier.Throttles.Leader(tp, 2) != leader || f.applier.Throttles.Follower(tp) != follower {
			t.Errorf("limited as a leader: %v, as a follower: %v", !leader, !follower)
		}
	}
	const broker, topic = 4, 2
	set(topic, "orders", "leader.replication.throttled.replicas", "1:1, 0:1,0:2")
	set(topic, "orders", "follower.replication.throttled.replicas", "*")
	expect(false, false)
	set(broker, "1", "leader.replication.throttled.rate", "1000")
	set(broker, "", "follower.replication.throttled.rate", "1000")
	expect(true, true)
	set(topic, "orders", "leader.replication.throttled.replicas", "0:2,1:1")
	expect(false, true)
}
