package scenario

import (
	"fmt"
	"slices"
	"strings"

	"ottla/compat/suite"
)

func topics() []Scenario {
	return []Scenario{
		{"topic-life", "create, describe, alter partitions, delete, create again; and each refused with its own error", topicLife},
		{"metadata", "the client sees a topic's partitions and their leaders", metadata},
		{"partitions-500", "a topic of 500 partitions, a record in each", fiveHundredPartitions},
	}
}

func topicLife(t *T) {
	topic := t.TopicName("")
	c, configs := as[suite.TopicAdmin](t), as[suite.ConfigReader](t)
	t.Must(c.CreateTopic(t.Ctx, topic, 3, map[string]string{"retention.ms": "86400000"}), "create")
	wantPartitions(t, topic, 3)
	names, err := c.Topics(t.Ctx)
	t.Must(err, "list topics")
	if !slices.Contains(names, topic) {
		t.Fatalf("the topic is not listed: %v", names)
	}
	values, err := configs.TopicConfigs(t.Ctx, topic)
	t.Must(err, "describe the configuration")
	for key, want := range map[string]string{"retention.ms": "86400000", "cleanup.policy": "delete", "min.insync.replicas": "1"} {
		if values[key] != want {
			t.Errorf("config %s = %q, want %q", key, values[key], want)
		}
	}
	t.FailsWith(c.CreateTopic(t.Ctx, topic, 3, nil), "TOPIC_ALREADY_EXISTS", "create it again")
	t.FailsWith(c.CreateTopic(t.Ctx, strings.Repeat("x", 250), 1, nil), "INVALID_TOPIC_EXCEPTION", "create a name of 250 characters")
	t.FailsWith(c.CreateTopic(t.Ctx, topic+"-bad", 1, map[string]string{"retention.ms": "soon"}), "INVALID_CONFIG", "create with a bad config")
	t.Must(c.CreatePartitions(t.Ctx, topic, 5), "raise the partitions to 5")
	wantPartitions(t, topic, 5)
	t.FailsWith(c.CreatePartitions(t.Ctx, topic, 2), "INVALID_PARTITIONS", "lower the partitions to 2")

	sent := suite.Values("life", 10, 20)
	t.Produce(suite.ProduceOptions{Topic: topic}, sent)
	t.Must(c.DeleteTopic(t.Ctx, topic), "delete")
	t.FailsWith(c.DeleteTopic(t.Ctx, topic), "UNKNOWN_TOPIC_OR_PARTITION", "delete it again")
	t.Must(c.CreateTopic(t.Ctx, topic, 1, nil), "create it anew")
	wantPartitions(t, topic, 1) // until then the broker may still write to the one that was deleted
	t.Produce(suite.ProduceOptions{Topic: topic}, sent[:3])
	t.ReadBack(topic, sent[:3])
}

// wantPartitions asks until the client sees so many partitions, each with a leader: a broker learns of a new topic a little after
// the controller has answered.
func wantPartitions(t *T, topic string, want int) {
	t.Helper()
	c := as[suite.Describer](t)
	t.Must(suite.Eventually(t.Ctx, func() error {
		n, err := c.Partitions(t.Ctx, topic)
		if err == nil && n != want {
			err = fmt.Errorf("the topic has %d partitions, want %d", n, want)
		}
		return err
	}), "describe the topic")
}

func metadata(t *T) {
	t.Topic("", 7)
	wantPartitions(t, t.TopicName(""), 7)
}

func fiveHundredPartitions(t *T) {
	topic := t.TopicName("")
	c := as[suite.TopicAdmin](t)
	t.Must(c.CreateTopic(t.Ctx, topic, 500, nil), "create 500 partitions")
	wantPartitions(t, topic, 500)
	var sent []suite.Record
	from := map[int32]int64{}
	for p := range int32(500) {
		sent = append(sent, suite.Record{Partition: p, Value: fmt.Appendf(nil, "partition-%d", p)})
		from[p] = suite.Earliest
	}
	t.Produce(suite.ProduceOptions{Topic: topic, LingerMs: 20}, sent)
	checkByPartition(t, t.ConsumeWith(suite.ConsumeOptions{Topic: topic, From: from}), sent)
	t.Must(c.DeleteTopic(t.Ctx, topic), "delete")
}
