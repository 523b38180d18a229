package cluster

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// TestRecordsAreApacheKafkas drives our controller as a broker drove that of
// Apache Kafka 4.4.0: a first start, two topics, a stop in order, a start, a kill,
// a start and a stop. The records must be those that Kafka wrote.
func TestRecordsAreApacheKafkas(t *testing.T) {
	for _, c := range []struct {
		golden   string
		features map[string]int16
	}{
		{"elr", map[string]int16{metadata.MetadataVersionFeature: 33, metadata.ELRVersionFeature: 1, "group.version": 1, "share.version": 2, "streams.version": 1, "transaction.version": 2}},
		{"no-elr", map[string]int16{metadata.MetadataVersionFeature: 33, "group.version": 1, "share.version": 2, "streams.version": 1, "transaction.version": 2}},
		{"3.9", map[string]int16{metadata.MetadataVersionFeature: 21}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			text, err := os.ReadFile("testdata/apache-4.4.0/" + c.golden + ".records")
			if err != nil {
				t.Fatal(err)
			}
			var payloads []string
			for _, line := range strings.Split(string(text), "\n") {
				if payload, ok := strings.CutPrefix(line, "payload: "); ok {
					payloads = append(payloads, payload)
				}
			}
			want := normalise(t, payloads)
			got := normalise(t, lifeOfABroker(t, c.features))
			for i := range max(len(got), len(want)) {
				switch {
				case i >= len(got):
					t.Fatalf("record %d: none, want\n%s", i, want[i])
				case i >= len(want):
					t.Fatalf("record %d: too many:\n%s", i, got[i])
				case got[i] != want[i]:
					t.Fatalf("record %d:\n%s\nwant\n%s", i, got[i], want[i])
				}
			}
		})
	}
}

func lifeOfABroker(t *testing.T, features map[string]int16) []string {
	f := newFixtureWith(t, features)
	start := func(incarnation byte, previous int64) int64 {
		req := registration(1, incarnation)
		req.PreviousBrokerEpoch = previous
		registered := handle[*kmsg.BrokerRegistrationResponse](f, req)
		if registered.ErrorCode != 0 {
			t.Fatal(protocol.ErrorCode(registered.ErrorCode))
		}
		f.beat(1, registered.BrokerEpoch, false)
		return registered.BrokerEpoch
	}
	stop := func(epoch int64) {
		for range 2 {
			if f.beat(1, epoch, true).ShouldShutdown {
				return
			}
		}
		t.Fatal("not told to stop")
	}
	epoch := start(1, -1)
	f.create(createTopic("a", 3, 1))
	b := createTopic("b", 1, 1)
	b.Topics[0].Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: kmsg.StringPtr("10000000")}}
	f.create(b)
	stop(epoch)
	start(2, epoch)
	f.pass(10 * time.Second) // killed; Apache Kafka lets the session end
	epoch = start(3, -1)
	stop(epoch)
	return f.payloads()
}

// payloads are the records written so far, as DumpLogSegments prints them.
func (f *fixture) payloads() []string {
	var lines []string
	for _, r := range f.log {
		lines = append(lines, payload(f.t, r))
	}
	return lines
}

func payload(t *testing.T, r machine.Record) string {
	decoded, version, err := schema.DecodeMetadata(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	return schema.JSON(decoded, version)
}

// normalise drops what differs from run to run, or is the broker's and not the
// controller's, and sorts the changes of partitions that follow each other:
// Kafka's order of topics is that of a hash map.
func normalise(t *testing.T, payloads []string) []string {
	names := map[string]string{}
	var lines []string
	changes := 0 // that the lines end with
	for _, text := range payloads {
		var r struct {
			Type    string         `json:"type"`
			Version int            `json:"version"`
			Data    map[string]any `json:"data"`
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if id, ok := r.Data["topicId"].(string); ok {
			if r.Type == "TOPIC_RECORD" {
				names[id] = r.Data["name"].(string)
			}
			r.Data["topicId"] = names[id]
		}
		for _, key := range []string{"incarnationId", "features", "endPoints", "brokerEpoch", "directories", "logDirs"} {
			delete(r.Data, key)
		}
		if r.Type == "REGISTER_CONTROLLER_RECORD" {
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
		if changes++; r.Type != "PARTITION_CHANGE_RECORD" {
			changes = 0
		}
		slices.Sort(lines[len(lines)-changes:])
	}
	return lines
}
