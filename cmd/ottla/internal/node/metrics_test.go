package node_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/broker"
	"ottla/cmd/ottla/internal/metrics"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/replica"
	"ottla/storage/vfs"
)

// scraped is a page of metrics: the values by series, and its size.
type scraped struct {
	*testing.T
	values    map[string]float64
	sizeBytes int
}

// scrape asks as Prometheus does.
func (s *stepped) scrape(collector *metrics.Collector) scraped {
	s.Helper()
	registry := prometheus.NewPedanticRegistry()
	s.must(registry.Register(collector))
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		s.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	page := scraped{T: s.T, values: map[string]float64{}, sizeBytes: answer.Body.Len()}
	s.samePage(answer.Body.String(), collector.Page())
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		s.must(err)
		page.values[line[:at]] = value
	}
	return page
}

// samePage compares the text that is served with what a registry makes of the same.
func (s *stepped) samePage(want string, got metrics.Page) {
	s.Helper()
	sorted := func(text string) []string { return slices.Sorted(strings.Lines(text)) }
	a, b := sorted(want), sorted(string(bytes.Join(got, nil)))
	if slices.Equal(a, b) {
		return
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			s.Errorf("the page differs from the registry's: %q, want %q", b[i], a[i])
			return
		}
	}
	s.Errorf("the page has %d lines, the registry's %d", len(b), len(a))
}

func (p scraped) want(series string, value float64) {
	p.Helper()
	got, found := p.values[series]
	if !found || got != value && !(math.IsNaN(got) && math.IsNaN(value)) {
		p.Errorf("%s is %v (%v), want %v", series, got, found, value)
	}
}

func (p scraped) absent(prefix string) {
	p.Helper()
	for series := range p.values {
		if strings.HasPrefix(series, prefix) {
			p.Errorf("%s is there", series)
		}
	}
}

func (s *stepped) collector() *metrics.Collector {
	return s.node.Metrics(nil, func() time.Time { return s.now })
}

// topic makes a topic and gives its partitions leaders.
func (s *stepped) topic(name string, partitions int32) {
	s.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	s.change(topicRequest(topic))
}

// produce appends one batch of records with these ages.
func (s *stepped) produce(topic string, codec compress.Codec, ages ...time.Duration) (sizeBytes int) {
	s.Helper()
	options := record.PlainOptions()
	options.Codec = codec
	b := record.NewBuilder(options)
	for _, age := range ages {
		b.Append(s.now.Add(-age).UnixMilli(), nil, []byte("some value"), nil)
	}
	batch := b.Build(compress.NewPool())
	s.append(topic, batch)
	return len(batch)
}

func (s *stepped) append(topic string, batch []byte) (code protocol.ErrorCode) {
	s.Helper()
	answered := false
	s.node.Replicas().Append(s.now, replica.AppendRequest{
		Partition: protocol.TopicPartition{Topic: topic}, Records: batch, Origin: log.OriginClient, RequiredAcks: replica.AcksAll, Timeout: time.Second,
	}, func(result replica.AppendResult) { answered, code = true, protocol.CodeOf(result.Err) })
	if !answered {
		s.Fatal("a replica alone answers at once")
	}
	return code
}

// batchAt makes a batch of one record.
func batchAt(at time.Time, valueBytes int) []byte {
	b := record.NewBuilder(record.PlainOptions())
	b.Append(at.UnixMilli(), nil, make([]byte, valueBytes), nil)
	return b.Build(compress.NewPool())
}

// consume reads a partition from an offset on, and gives how many bytes it got.
func (s *stepped) consume(topic string, offset protocol.Offset) (sizeBytes int64) {
	s.node.Replicas().Fetch(s.now, replica.FetchRequest{
		Partitions: []replica.FetchPartition{{
			Partition: protocol.TopicPartition{Topic: topic}, Offset: offset, MaxBytes: 1 << 20,
			CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, FollowerLogStart: -1,
		}},
		Replica: replica.Consumer, ReplicaEpoch: -1, MaxBytes: 1 << 20, Version: 17,
	}, func(results []replica.FetchResult) {
		sizeBytes = results[0].Records.Len()
		results[0].Records.Release()
	})
	return sizeBytes
}

func (s *stepped) bootWithGroups() {
	s.Helper()
	s.boot()
	s.change(topicRequest(broker.InternalTopic(s.config, protocol.ConsumerOffsetsTopic)))
	s.run(time.Second, func() bool {
		_, active, _ := s.node.Groups().Counts()
		return active == 50
	})
}

func newStepped(t *testing.T) *stepped {
	return &stepped{T: t, now: time.UnixMilli(1_800_000_000_000), disk: vfs.NewMem(rand.New(rand.NewPCG(1, 1)).Uint64)}
}

// TestMetrics: every value of a small node that somebody used.
func TestMetrics(t *testing.T) {
	s := newStepped(t)
	s.bootWithGroups()
	s.topic("orders", 2)
	s.topic("bills", 1)
	in := s.produce("orders", compress.None, 9*time.Second, 8*time.Second, 7*time.Second)
	in += s.produce("orders", compress.Gzip, 6*time.Second, 5*time.Second)
	billsIn := s.produce("bills", compress.None, time.Second)
	out := s.consume("orders", 0) + s.consume("orders", 4)
	if code := s.append("orders", batchAt(s.now.Add(2*time.Hour), 10)); code != protocol.InvalidTimestamp {
		t.Errorf("of the future: %s", code)
	}
	refused := batchAt(s.now, 2<<20)
	if code := s.append("orders", refused); code != protocol.MessageTooLarge {
		t.Errorf("too large: %s", code)
	}
	if code := s.append("nowhere", batchAt(s.now, 10)); code != protocol.UnknownTopicOrPartition {
		t.Errorf("no topic: %s", code)
	}
	s.commit("reader", "orders", 1)
	s.commit("zipped", "orders", 4)
	s.commit("current", "orders", 5)
	s.commit("current", "bills", 0)
	s.commit("lost", "no-such-topic", 3)

	p := s.scrape(s.collector())
	orders, bills := `{topic="orders"}`, `{topic="bills"}`
	p.want("kafka_server_brokertopicmetrics_bytesin_total"+orders, float64(in))
	p.want("kafka_server_brokertopicmetrics_bytesin_total"+bills, float64(billsIn))
	p.want("kafka_server_brokertopicmetrics_messagesin_total"+orders, 5)
	p.want("kafka_server_brokertopicmetrics_messagesin_total", 5+1+5) // and five commits
	p.want("kafka_server_brokertopicmetrics_bytesin_total", float64(in+billsIn)+p.values[`kafka_server_brokertopicmetrics_bytesin_total{topic="__consumer_offsets"}`])
	p.want("kafka_server_brokertopicmetrics_bytesout_total"+orders, float64(out))
	p.want("kafka_server_brokertopicmetrics_bytesout_total", float64(out)) // what the coordinators and the metrics read does not count
	p.want("kafka_server_brokertopicmetrics_bytesrejected_total"+orders, float64(len(refused)))
	p.want("kafka_server_brokertopicmetrics_totalproducerequests_total"+orders, 4)
	p.want("kafka_server_brokertopicmetrics_failedproducerequests_total"+orders, 1)
	p.want("kafka_server_brokertopicmetrics_totalproducerequests_total", 4+1+5+1)
	p.want("kafka_server_brokertopicmetrics_totalfetchrequests_total"+orders, 2)
	p.want("kafka_server_brokertopicmetrics_failedfetchrequests_total", 0)

	p.want("kafka_server_replicamanager_partitioncount", 53)
	p.want("kafka_server_replicamanager_leadercount", 53)
	p.want("kafka_server_replicamanager_underreplicatedpartitions", 0)
	p.want("kafka_server_replicamanager_atminisrpartitioncount", 53)
	p.want("kafka_server_replicamanager_offlinereplicacount", 0)
	first := `{partition="0",topic="orders"}`
	p.want("kafka_log_log_logendoffset"+first, 5)
	p.want("kafka_log_log_logstartoffset"+first, 0)
	p.want("kafka_log_log_numlogsegments"+first, 1)
	p.want("kafka_log_log_size"+first, float64(in))
	p.want(`kafka_log_log_size{partition="1",topic="orders"}`, 0)
	p.want("kafka_log_logmanager_offlinelogdirectorycount", 0)
	p.want(`kafka_log_logmanager_logdirectoryoffline{logdirectory="/data"}`, 0)
	p.want("kafka_cluster_partition_underreplicated"+first, 0)
	p.want("kafka_cluster_partition_atminisr"+first, 1)
	p.want("kafka_cluster_partition_insyncreplicascount"+first, 1)
	p.want("kafka_cluster_partition_laststableoffsetlag"+first, 0)
	p.want("kafka_topic_partition_current_offset"+first, 5)
	p.want("kafka_topic_partition_oldest_offset"+first, 0)
	p.want("kafka_topic_partition_leader"+first, 1)
	p.want("kafka_topic_partition_leader_is_preferred"+first, 1)
	p.want("kafka_topic_partition_under_replicated_partition"+first, 0)
	p.want(`kafka_topic_partitions{topic="orders"}`, 2)
	p.want("kafka_brokers", 1)
	p.want(`kafka_broker_info{address="h0:9092",id="1"}`, 1)

	p.want("kafka_controller_kafkacontroller_activecontrollercount", 1)
	p.want("kafka_controller_kafkacontroller_globaltopiccount", 3)
	p.want("kafka_controller_kafkacontroller_globalpartitioncount", 53)
	p.want("kafka_controller_kafkacontroller_offlinepartitionscount", 0)
	p.want("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", 0)
	p.want("kafka_controller_kafkacontroller_lastappliedrecordoffset", float64(s.node.Image().Provenance().Offset))
	p.want(`kafka_server_raftmetrics_current_state{current_state="leader"}`, 1)
	p.want("kafka_server_raftmetrics_current_leader", 1)
	p.want("kafka_server_raftmetrics_number_of_voters", 1)
	p.want("kafka_server_kafkaserver_brokerstate", 3)

	p.want("kafka_coordinator_group_groupmetadatamanager_numgroups", 4)
	p.want("kafka_coordinator_group_groupmetadatamanager_numgroupsempty", 4)
	p.want("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", 0)
	p.want(`kafka_server_group_coordinator_metrics_group_count{protocol="classic"}`, 4)
	p.want(`kafka_server_group_coordinator_metrics_consumer_group_count{state="Stable"}`, 0)
	p.want("kafka_coordinator_group_groupmetadatamanager_numoffsets", 5)
	p.want(`kafka_server_group_coordinator_metrics_num_partitions{state="active"}`, 50)
	p.want(`kafka_server_group_coordinator_metrics_classic_group_count{state="Empty"}`, 4)
	p.want("kafka_server_group_coordinator_metrics_offset_count", 5)
	p.want("kafka_server_replicamanager_partitionswithlatetransactionscount", 0)
	p.want(`ottla_transaction_coordinator_partitions{state="active"}`, 0)
	p.want("ottla_transactions_ending", 0)
	p.want("kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize", 0)
	p.want("kafka_server_addpartitionstotxnmanager_verificationfailurerate_count_total", 0)
	p.want("ottla_metrics_groups_unanswered", 0)
	p.want(`ottla_metrics_partition_series{of="partitions"}`, 1)
	p.want(`ottla_metrics_partition_series{of="offsets"}`, 1)
	of := func(group, topic string) string {
		return fmt.Sprintf(`{consumergroup="%s",partition="0",topic="%s"}`, group, topic)
	}
	age := func(group, topic string) string {
		return fmt.Sprintf(`{group="%s",partition="0",topic="%s"}`, group, topic)
	}
	p.want("kafka_consumergroup_members"+`{consumergroup="reader"}`, 0)
	p.want("kafka_consumergroup_current_offset"+of("reader", "orders"), 1)
	p.want("kafka_consumergroup_lag"+of("reader", "orders"), 4)
	p.want("kafka_consumergroup_group_lag_seconds"+age("reader", "orders"), 8)
	p.want("kafka_consumergroup_lag"+of("zipped", "orders"), 1)
	p.want("kafka_consumergroup_group_lag_seconds"+age("zipped", "orders"), 5)
	p.want("kafka_consumergroup_lag"+of("current", "orders"), 0)
	p.want("kafka_consumergroup_group_lag_seconds"+age("current", "orders"), 0)
	p.want(`kafka_consumergroup_lag_sum{consumergroup="current",topic="bills"}`, 1)
	p.want(`kafka_consumergroup_lag_sum{consumergroup="current",topic="orders"}`, 0)
	p.want(`kafka_consumergroup_current_offset_sum{consumergroup="current",topic="orders"}`, 5)
	p.want(`kafka_consumergroup_group_max_lag_seconds{group="current"}`, 1)
	p.want("kafka_consumergroup_lag"+of("lost", "no-such-topic"), math.NaN())
	p.want("kafka_consumergroup_group_lag_seconds"+age("lost", "no-such-topic"), math.NaN())
	p.want(`kafka_consumergroup_group_max_lag_seconds{group="lost"}`, math.NaN())
	p.absent(`kafka_consumergroup_lag{consumergroup="reader",partition="1"`) // never committed
	p.absent(`kafka_consumergroup_lag{consumergroup="reader",partition="0",topic="bills"`)

	out += s.consume("orders", 0)
	s.now = s.now.Add(time.Minute)
	p = s.scrape(s.collector())
	p.want("kafka_server_brokertopicmetrics_bytesout_total", float64(out))
	p.want("kafka_consumergroup_group_lag_seconds"+age("zipped", "orders"), 65)
}

// TestDeletedTopics: their series go, and the sums stay.
func TestDeletedTopics(t *testing.T) {
	s := newStepped(t)
	s.boot()
	s.topic("orders", 1)
	in := s.produce("orders", compress.None, 0)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis = 6, 1000
	name := kmsg.NewDeleteTopicsRequestTopic()
	name.Topic = kmsg.StringPtr("orders")
	remove.Topics = append(remove.Topics, name)
	s.change(remove)
	p := s.scrape(s.collector())
	p.absent(`kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}`)
	p.absent(`kafka_log_log_size{`)
	p.want("kafka_server_brokertopicmetrics_bytesin_total", float64(in))
	p.want("kafka_server_replicamanager_partitioncount", 0)
}

// TestLagOfManyGroups: what the metrics show is what the groups have committed.
func TestLagOfManyGroups(t *testing.T) {
	s := newStepped(t)
	s.bootWithGroups()
	s.topic("orders", 1)
	ages := make([]time.Duration, 100)
	for i := range ages {
		ages[i] = time.Duration(100-i) * time.Second
		s.produce("orders", compress.None, ages[i])
	}
	random := rand.New(rand.NewPCG(7, 7))
	for n := range 200 {
		s.commit(fmt.Sprint("group-", n), "orders", random.Int64N(101))
	}
	collector := s.collector()
	for range 2 { // the second time most is remembered
		for n := range 50 {
			s.commit(fmt.Sprint("group-", n), "orders", random.Int64N(101))
		}
		p := s.scrape(collector)
		for n := range 200 {
			name := fmt.Sprint("group-", n)
			committed := s.committed(name)["orders"]
			seconds := 0.0
			if committed < 100 {
				seconds = ages[committed].Seconds()
			}
			p.want(fmt.Sprintf(`kafka_consumergroup_current_offset{consumergroup="%s",partition="0",topic="orders"}`, name), float64(committed))
			p.want(fmt.Sprintf(`kafka_consumergroup_lag{consumergroup="%s",partition="0",topic="orders"}`, name), float64(100-committed))
			p.want(fmt.Sprintf(`kafka_consumergroup_group_lag_seconds{group="%s",partition="0",topic="orders"}`, name), seconds)
		}
	}
}

// TestScrapeOfManyPartitions: beyond the limit no series is of one partition, so a
// page stays small, and making it allocates little.
func TestScrapeOfManyPartitions(t *testing.T) {
	const partitions = 10_000
	s := newStepped(t)
	s.boot()
	for n := range 4 {
		s.topic(fmt.Sprint("wide-", n), partitions/4)
	}
	collector := s.collector()
	s.scrape(collector)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := s.scrape(collector)
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d partitions: a page of %d bytes, %d bytes allocated", partitions, p.sizeBytes, allocated)
	p.want("kafka_server_replicamanager_partitioncount", partitions)
	p.want(`ottla_metrics_partition_series{of="partitions"}`, 0)
	for series := range p.values {
		if strings.Contains(series, "partition=") {
			t.Fatalf("%s is there", series)
		}
	}
	if p.sizeBytes > 32<<10 || allocated > 16<<20 {
		t.Errorf("a scrape has %d bytes, and allocated %d", p.sizeBytes, allocated)
	}
}

// TestScrapeAtTheLimit: what the largest page costs that has series of partitions.
func TestScrapeAtTheLimit(t *testing.T) {
	s := newStepped(t)
	s.boot()
	s.topic("narrow", 2000)
	p := s.scrape(s.collector())
	t.Logf("2000 partitions: a page of %d series and %d bytes", len(p.values), p.sizeBytes)
	p.want(`ottla_metrics_partition_series{of="partitions"}`, 1)
	p.want(`kafka_log_log_size{partition="1999",topic="narrow"}`, 0)
	if p.sizeBytes > 4<<20 {
		t.Errorf("a page of %d bytes", p.sizeBytes)
	}
}

// TestReadiness follows a node's life.
func TestReadiness(t *testing.T) {
	s := newStepped(t)
	s.boot()
	collector := s.collector()
	s.must(collector.Ready())
	s.must(collector.Healthy())
	s.change(topicRequest(broker.InternalTopic(s.config, protocol.ConsumerOffsetsTopic)))
	if err := collector.Ready(); err == nil || !strings.Contains(err.Error(), "50 are being loaded") {
		t.Errorf("while the coordinators load: %v", err)
	}
	s.run(time.Second, func() bool { return collector.Ready() == nil })
	s.node.Leave()
	s.run(time.Second, func() bool { return s.node.State() == broker.Stopped })
	if err := collector.Ready(); err == nil || err.Error() != "the broker is stopped" {
		t.Errorf("it left: %v", err)
	}
	p := s.scrape(collector)
	p.want("kafka_server_kafkaserver_brokerstate", 7)
	s.must(collector.Healthy())
	s.disk.SetCapacity(1)
	if err := collector.Healthy(); err == nil || err.Error() != "the metadata log directory /data is full" {
		t.Errorf("full: %v", err)
	}
}
