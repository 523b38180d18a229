//go:build compat

package compat

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"ottla/compat/franz"
	"ottla/compat/harness"
)

// aged is what is done to one topic, one step after the other; the topic is shared.
type aged func(a *aging, topic string)

// retentionCases are hostile timestamps and what retention makes of them. Segments are rolled by the timestamps of the
// records (segment.ms is an hour) or by size; nothing is deleted until the configuration asks for it. What is left is written
// "start: bases of segments", and is what Apache Kafka 4.4.0 leaves (OTTLA_COMPAT_TARGET=kafka).
var retentionCases = []struct {
	name    string
	configs map[string]string
	steps   []aged
	left    string
}{
	{"far-past", nil, []aged{written(1000, 2000, 3000), twoHours}, "3: 3"},
	{"zero", nil, []aged{written(0, 0, 0), twoHours}, "3: 3"},
	{"none", nil, []aged{written(-1, -1, -1), twoHours}, "0: 0"},
	{"before-1970", nil, []aged{written(-1_000_000_000_000, -5), twoHours}, "0: 0"},
	{"none-and-zero", nil, []aged{written(-1, 0, -1), twoHours}, "3: 3"},
	{"none-and-now", nil, []aged{written(-1, now, -1), twoHours}, "0: 0"},
	{"year-3000", nil, []aged{written(year3000, year3000), twoHours}, "0: 0"},
	{"largest", nil, []aged{written(math.MaxInt64, math.MaxInt64-1, now), twoHours}, "0: 0"},
	{"future-first", nil, []aged{written(year3000, now, year3000, 0), twoHours}, "0: 0"},
	{"future-later", nil, []aged{written(now, year3000, now, year3000, now), twoHours}, "0: 0 1"},
	{"past-then-future", nil, []aged{written(0, year3000, 0), twoHours}, "1: 1"},
	{"past-then-now", nil, []aged{written(0, now, 0), twoHours}, "1: 1"},
	{"back-and-forth", nil, []aged{written(0, now, year3000, 0, now, year3000), twoHours}, "1: 1 2"},
	{"future-pins", nil, []aged{big(year3000), big(0), big(0), written(0), twoHours}, "0: 0 1 2"},
	{"past-behind-future", nil, []aged{big(0), big(year3000), big(0), written(0), twoHours}, "1: 1 2"},
	{"future-and-size", nil, []aged{big(year3000), big(0), big(0), written(0), changed("retention.bytes", "1000000")}, "1: 1 2"},
	{"by-size", nil, []aged{big(now), big(now), big(now), written(now), changed("retention.bytes", "1000000")}, "1: 1 2"},
	{"by-size-of-nothing", nil, []aged{big(now), big(now), written(now), changed("retention.bytes", "1")}, "1: 1"},
	{"append-time", map[string]string{"message.timestamp.type": "LogAppendTime"}, []aged{written(0, year3000, -1), twoHours}, "0: 0"},
	{"append-time-later", nil, []aged{written(0, 0), changed("message.timestamp.type", "LogAppendTime"), written(0, 0), twoHours}, "2: 2"},
	{"append-time-no-more", map[string]string{"message.timestamp.type": "LogAppendTime"}, []aged{
		written(0, 0), changed("message.timestamp.type", "CreateTime"), written(0, 0), twoHours,
	}, "0: 0"},
	{"append-time-expires", map[string]string{"message.timestamp.type": "LogAppendTime"}, []aged{written(now, now), changed("retention.ms", "1")}, "2: 2"},
	{"kept-for-ever", nil, []aged{written(0, 0)}, "0: 0"},
	{"no-more-for-ever", nil, []aged{written(0, 0), fenced, twoHours}, "2: 2"},
	{"written-after", nil, []aged{twoHours, written(0, 0)}, "2: 2"},
	{"for-ever-again", nil, []aged{twoHours, fenced, changed("retention.ms", "-1"), written(0, 0)}, "0: 0"},
	{"compacted", map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}, []aged{written(0, 0), twoHours}, "0: 0"},
	{"compacted-no-more", map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}, []aged{
		written(0, 0), twoHours, fenced, changed("cleanup.policy", "delete"),
	}, "2: 2"},
	{"roll-at-once", nil, []aged{written(now, now+100), changed("segment.ms", "10"), written(now+200, now+300)}, "0: 0 2 3"},
	{"records-deleted", nil, []aged{written(year3000, year3000, year3000), cutBefore(2)}, "2: 0"},
	{"records-all-deleted", nil, []aged{written(year3000, year3000), cutBefore(2)}, "2: 0"},
	{"segments-deleted", nil, []aged{big(year3000), big(year3000), written(year3000), cutBefore(2)}, "2: 1"},
}

const (
	year3000 = 32503680000000
	now      = math.MinInt64 // the moment, and counted from it
)

// aging is the node under test.
type aging struct {
	*testing.T
	ctx    context.Context
	node   *harness.Node
	client *kgo.Client
	admin  *kadm.Client
	ref    *franz.Client
}

func (a *aging) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatalf("%v\n%s", err, a.node.LogTail(20))
	}
}

// produce writes a batch of one record, which is encoded here: no client library sends every timestamp.
func (a *aging) produce(topic string, timestampMs int64, size int) {
	a.Helper()
	if timestampMs < math.MinInt64+1000 {
		timestampMs = time.Now().UnixMilli() + (timestampMs - now)
	}
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = oneRecord(timestampMs, make([]byte, size))
	reqTopic := kmsg.NewProduceRequestTopic()
	reqTopic.Topic, reqTopic.Partitions = topic, append(reqTopic.Partitions, part)
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis, req.Topics = 9, -1, 30_000, append(req.Topics, reqTopic)
	a.until("a record of "+topic+" is written", func() bool {
		resp, err := a.client.SeedBrokers()[0].RetriableRequest(a.ctx, req)
		a.must(err)
		err = kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
		if !kerr.IsRetriable(err) {
			a.must(err)
		}
		return err == nil
	})
}

func oneRecord(timestampMs int64, value []byte) []byte {
	record := []byte{0, 0, 0, 2, 'k'} // attributes, timestamp delta 0, offset delta 0, key
	record = binary.AppendVarint(record, int64(len(value)))
	record = append(append(record, value...), 0)
	tail := make([]byte, 2+4, 64+len(record)) // attributes, last offset delta
	for range 2 {                             // base timestamp, max timestamp
		tail = binary.BigEndian.AppendUint64(tail, uint64(timestampMs))
	}
	tail = append(tail, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...) // no producer
	tail = binary.BigEndian.AppendUint32(tail, 1)
	tail = binary.AppendVarint(tail, int64(len(record)))
	tail = append(tail, record...)
	batch := binary.BigEndian.AppendUint64(nil, 0)
	batch = binary.BigEndian.AppendUint32(batch, uint32(len(tail)+9))
	batch = append(batch, 0xff, 0xff, 0xff, 0xff, 2) // leader epoch, format
	batch = binary.BigEndian.AppendUint32(batch, crc32.Checksum(tail, crc32.MakeTable(crc32.Castagnoli)))
	return append(batch, tail...)
}

// written writes records with timestamps, each a batch.
func written(timestamps ...int64) aged {
	return func(a *aging, topic string) {
		for _, ms := range timestamps {
			a.produce(topic, ms, 10)
		}
	}
}

// big writes a record of which no two fit into a segment.
func big(timestampMs int64) aged {
	return func(a *aging, topic string) { a.produce(topic, timestampMs, 700_000) }
}

// changed changes the topic's configuration.
func changed(key, value string) aged {
	return func(a *aging, topic string) {
		a.Helper()
		_, err := a.admin.AlterTopicConfigs(a.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
		a.must(err)
	}
}

// twoHours begins to delete what is older than that.
var twoHours = changed("retention.ms", "7200000")

// fenced waits until retention has been at everything.
func fenced(a *aging, _ string) { a.fence() }

func cutBefore(before int64) aged {
	return func(a *aging, topic string) {
		_, err := a.ref.DeleteRecords(a.ctx, topic, 0, before)
		a.must(err)
	}
}

const fenceTopic = "fence"

// fence returns when retention has been at every log since it was called: it has deleted what was written meanwhile, twice.
func (a *aging) fence() {
	a.Helper()
	for range 2 {
		a.produce(fenceTopic, 0, 10)
		a.until("retention deletes an old record of the topic "+fenceTopic, func() bool {
			start, _, err := a.ref.ListOffset(a.ctx, fenceTopic, 0, -2)
			if err != nil {
				return false // a busy machine: no leader for a moment
			}
			end, _, err := a.ref.ListOffset(a.ctx, fenceTopic, 0, -1)
			return err == nil && start == end
		})
	}
}

func (a *aging) until(what string, done func() bool) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, cellLimit)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			a.Fatalf("waited in vain until %s\n%s", what, a.node.LogTail(20))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// left is the start of a topic's log and the bases of its segments.
func (a *aging) left(topic string) string {
	a.Helper()
	var start int64
	a.until("the start of "+topic+" is known", func() (known bool) {
		var err error
		start, _, err = a.ref.ListOffset(a.ctx, topic, 0, -2)
		return err == nil
	})
	entries, err := os.ReadDir(filepath.Join(a.node.DataDir(), topic+"-0"))
	a.must(err)
	text := fmt.Sprintf("%d:", start)
	for _, entry := range entries {
		if base, found := strings.CutSuffix(entry.Name(), ".log"); found {
			offset, err := strconv.ParseInt(base, 10, 64)
			a.must(err)
			text += fmt.Sprintf(" %d", offset)
		}
	}
	return text
}

// TestRetention lets retention judge records with timestamps that no clock gave, and changes of the configuration.
func TestRetention(t *testing.T) {
	need(t)
	node := startNode(t, "aging", map[string]string{
		"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300", "log.message.timestamp.after.max.ms": "9223372036854775807",
		"broker.session.timeout.ms": "60000",
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()), kgo.MaxVersions(kversion.V3_0_0())) // requests name topics
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := &aging{T: t, ctx: cellContext(t), node: node, client: client, admin: kadm.NewClient(client), ref: franz.New(node.Addr())}
	a.must(a.ref.CreateTopic(a.ctx, fenceTopic, 1, nil))
	for _, one := range retentionCases {
		configs := map[string]string{"retention.ms": "-1", "segment.ms": "3600000", "segment.bytes": "1048576"}
		maps.Copy(configs, one.configs)
		a.must(a.ref.CreateTopic(a.ctx, one.name, 1, configs))
		for _, step := range one.steps {
			step(a, one.name)
		}
	}
	a.fence()
	for _, one := range retentionCases {
		if left := a.left(one.name); left != one.left {
			t.Errorf("%s: left is %q, and Apache Kafka leaves %q", one.name, left, one.left)
		}
	}
	explain(t, node)
	checkFiles(t, "retention has left", node.DataDir())
}
