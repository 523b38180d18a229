package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var sourceNames = map[Source]string{
	SourceTopic: "DYNAMIC_TOPIC_CONFIG", SourceDynamicBroker: "DYNAMIC_BROKER_CONFIG",
	SourceDynamicBrokerDefault: "DYNAMIC_DEFAULT_BROKER_CONFIG", SourceStaticBroker: "STATIC_BROKER_CONFIG",
	SourceDefault: "DEFAULT_CONFIG",
}

// entryLine writes an entry in the form of Desc.java.
func entryLine(e Entry) string {
	text := func(v *string) string {
		if v == nil {
			return `\N`
		}
		return *v
	}
	line := e.Name + "\t" + text(e.Value) + "\t" + sourceNames[e.Source]
	line += "\t" + map[bool]string{true: "ro", false: "rw"}[e.ReadOnly]
	line += "\t" + map[bool]string{true: "sensitive", false: "plain"}[e.Sensitive] + "\t" + e.Type.String()
	for _, s := range e.Synonyms {
		line += fmt.Sprintf("\t%s|%s|%s", s.Name, text(s.Value), sourceNames[s.Source])
	}
	return line
}

// described reads a golden file: the lines of each resource.
func described(t *testing.T, file string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all, resource := map[string][]string{}, ""
	for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			resource = name
			continue
		}
		all[resource] = append(all[resource], line)
	}
	return all
}

func compareEntries(t *testing.T, what string, got []Entry, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d entries, Kafka's %d", what, len(got), len(want))
	}
	byName := map[string]string{}
	for _, line := range want {
		name, _, _ := strings.Cut(line, "\t")
		byName[name] = line
	}
	for _, e := range got {
		if line := entryLine(e); line != byName[e.Name] {
			t.Errorf("%s:\n got %s\nwant %s", what, line, byName[e.Name])
		}
		delete(byName, e.Name)
	}
	for name := range byName {
		t.Errorf("%s lacks %s", what, name)
	}
}

func brokerFrom(t *testing.T, file string) *BrokerConfig {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	broker, _, err := Broker(properties(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return broker
}

// TestDescribeLikeKafka: a broker as it is shipped, with two topics.
func TestDescribeLikeKafka(t *testing.T) {
	want := described(t, "describe-a-4.4.0.tsv")
	broker := brokerFrom(t, "describe-a.properties")
	// Kafka's controller sets this one itself when it turns on eligible leader
	// replicas (KIP-966).
	defaults := map[string]string{"min.insync.replicas": "1"}
	compareEntries(t, "the broker", DescribeBroker(broker, defaults, nil, nil), want["BROKER 1"])
	compareEntries(t, "all brokers", DescribeClusterDefaults(defaults, nil), want["BROKER "])
	topics := broker.TopicDefaults(defaults, nil)
	compareEntries(t, "topic t", DescribeTopic(topics.Topic("t", map[string]string{"cleanup.policy": "compact,delete"}), nil), want["TOPIC t"])
	compareEntries(t, "topic u", DescribeTopic(topics.Topic("u", nil), nil), want["TOPIC u"])
	if len(want["BROKER 1"]) != 350 || len(want["TOPIC u"]) != 37 {
		t.Errorf("the golden has %d and %d entries", len(want["BROKER 1"]), len(want["TOPIC u"]))
	}
}

// TestDescribeLayersLikeKafka: synonyms in the file, unknown, secret and
// listener-scoped keys, and settings made at run time.
func TestDescribeLayersLikeKafka(t *testing.T) {
	want := described(t, "describe-b-4.4.0.tsv")
	broker := brokerFrom(t, "describe-b.properties")
	defaults := map[string]string{
		"log.retention.ms": "7200000", "log.segment.bytes": "4194304", "min.insync.replicas": "1",
		"compression.type": "zstd", "max.connections": "700",
	}
	own := map[string]string{
		"log.segment.bytes": "8388608", "log.cleaner.threads": "2", "compression.zstd.level": "5",
		"leader.replication.throttled.rate":                    "1000",
		"listener.name.plaintext.ssl.truststore.password":      "xx",
		"listener.name.plaintext.ssl.truststore.type":          "PEM",
		"listener.name.plaintext.max.connection.creation.rate": "12",
	}
	compareEntries(t, "the broker", DescribeBroker(broker, defaults, own, nil), want["BROKER 1"])
	compareEntries(t, "all brokers", DescribeClusterDefaults(defaults, nil), want["BROKER "])
	overrides := map[string]string{
		"retention.ms": "1000", "cleanup.policy": "compact", "segment.bytes": "2097152", "min.cleanable.dirty.ratio": "0.75",
	}
	topic := ResolveTopic("t", overrides, defaults, own, broker)
	compareEntries(t, "topic t", DescribeTopic(topic, nil), want["TOPIC t"])
	compareEntries(t, "topic u", DescribeTopic(ResolveTopic("u", nil, defaults, own, broker), nil), want["TOPIC u"])
	if topic.Long("retention.ms") != 1000 || topic.Int("segment.bytes") != 2097152 || topic.String("compression.type") != "zstd" ||
		topic.Double("min.cleanable.dirty.ratio") != 0.75 || !topic.Bool("unclean.leader.election.enable") || topic.List("cleanup.policy")[0] != "compact" {
		t.Errorf("the topic's values are not those described")
	}
	if topic.Source("segment.bytes") != SourceTopic || topic.Source("flush.ms") != SourceStaticBroker || topic.Source("segment.ms") != SourceDefault {
		t.Errorf("the topic's sources are not those described")
	}
}

// TestDescribeByName: names restrict, and are the way to Ottla's own keys.
func TestDescribeByName(t *testing.T) {
	broker := brokerFrom(t, "describe-a.properties")
	got := DescribeBroker(broker, nil, nil, []string{"num.partitions", "ottla.auto.format", "none"})
	if len(got) != 2 || got[0].Name != "num.partitions" || got[1].Name != "ottla.auto.format" || *got[1].Value != "true" || got[1].Doc == "" {
		t.Errorf("described %+v", got)
	}
	topic := ResolveTopic("t", map[string]string{"no.such": "x", "internal.segment.bytes": "100"}, nil, nil, broker)
	entries := DescribeTopic(topic, []string{"no.such", "segment.ms"})
	if len(entries) != 2 || entries[0].Name != "no.such" || !entries[0].Sensitive || entries[0].Value != nil || entries[0].Source != SourceTopic {
		t.Errorf("described %+v", entries)
	}
	if topic.SegmentBytes() != 100 {
		t.Errorf("the segment size is %d", topic.SegmentBytes())
	}
}
