//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

const (
	lagTopic      = "lagging"
	lagGroup      = "behind"
	lagPartitions = 3
	lagRounds     = 4
)

// scrapedPage is one page of metrics, by series: name{label="value",…} with the labels sorted.
type scrapedPage map[string]float64

// lagT is the node, and those that look at it.
type lagT struct {
	*testing.T
	ctx  context.Context
	node *harness.Node
	java *driver.Process
	ref  *franz.Client
	at   string // host:port of the metrics
}

func (l *lagT) get(path string) (status int, body string) {
	l.Helper()
	resp, err := http.Get("http://" + l.at + path)
	if err != nil {
		l.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		l.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// scrape reads the page with Prometheus's own parser.
func (l *lagT) scrape() scrapedPage {
	l.Helper()
	status, body := l.get("/metrics")
	if status != http.StatusOK {
		l.Fatalf("/metrics answers %d: %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		l.Fatalf("the page is not well formed: %v", err)
	}
	page := scrapedPage{}
	for name, family := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, family)
		if err != nil {
			l.Fatal(err)
		}
		page["of "+name] = float64(len(samples)) // how many there are
		for _, sample := range samples {
			page[sample.Metric.String()] = float64(sample.Value)
		}
	}
	return page
}

// position is one line of ConsumerGroupCommand --describe.
type position struct{ committed, end, lag int64 }

// describe runs ConsumerGroupCommand; a partition without a committed offset is left out.
func (l *lagT) describe(group string) map[int32]position {
	l.Helper()
	result, err := l.java.Tool(l.ctx, groupTool, "", "--bootstrap-server", l.node.Addr(), "--describe", "--group", group, "--offsets")
	if err != nil || result.Exit != 0 {
		l.Fatalf("%v\n%s", err, result)
	}
	positions := map[int32]position{}
	for line := range strings.Lines(result.Stdout) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[0] != group || fields[1] != lagTopic || fields[3] == "-" {
			continue
		}
		var numbers [4]int64
		for i := range numbers {
			if numbers[i], err = strconv.ParseInt(fields[2+i], 10, 64); err != nil {
				l.Fatalf("%q: %v", line, err)
			}
		}
		positions[int32(numbers[0])] = position{numbers[1], numbers[2], numbers[3]}
	}
	return positions
}

func lagSeries(name, label, group string, partition int32) string {
	return fmt.Sprintf(`%s{%s="%s", partition="%d", topic="%s"}`, name, label, group, partition, lagTopic)
}

// value finds a series of one partition of the group.
func (l *lagT) value(page scrapedPage, name string, group string, partition int32) float64 {
	l.Helper()
	label := "consumergroup"
	if strings.HasSuffix(name, "_seconds") {
		label = "group"
	}
	series := lagSeries(name, label, group, partition)
	value, found := page[series]
	if !found {
		l.Fatalf("%s is not there", series)
	}
	return value
}

// load produces until ctx ends.
func (l *lagT) load(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(l.node.Addr()), kgo.DefaultProduceTopic(lagTopic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for ctx.Err() == nil {
		<-every.C
		for range 3 {
			client.Produce(context.WithoutCancel(ctx), &kgo.Record{Value: []byte("some value")}, nil)
		}
	}
	return client.Flush(context.WithoutCancel(ctx))
}

// consume reads and commits, a few records at a time, until ctx ends.
func (l *lagT) consume(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(l.node.Addr()), kgo.ConsumerGroup(lagGroup), kgo.ConsumeTopics(lagTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for ctx.Err() == nil {
		<-every.C
		fetches := client.PollRecords(ctx, 10)
		if err := client.CommitRecords(context.WithoutCancel(ctx), fetches.Records()...); err != nil {
			return err
		}
	}
	return nil
}

// TestLag holds the metrics of a node against ConsumerGroupCommand: between two samples of it under load, equal when nothing moves.
func TestLag(t *testing.T) {
	if err := harness.CheckInstalled("java", "ottla"); err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("localhost:%d", port)
	node := startNodeIn(t, harness.Options{
		Kind: harness.Ottla, Name: "lag", Dir: workDir(t),
		Properties: map[string]string{"ottla.metrics.listener": at, "offsets.topic.num.partitions": "5"},
	})
	defer explain(t, node)
	java := startJava(t, t.TempDir())
	l := &lagT{T: t, ctx: cellContext(t), node: node, java: java, ref: franz.New(node.Addr()), at: at}
	if err := l.ref.CreateTopic(l.ctx, lagTopic, lagPartitions, nil); err != nil {
		t.Fatal(err)
	}
	l.health()
	l.underLoad()
	l.stopped()
	l.caughtUp()
	l.names()
	stopCleanly(t, node)
}

func (l *lagT) health() {
	for _, path := range []string{"/healthz", "/readyz"} {
		err := suite.Eventually(l.ctx, func() error {
			if status, body := l.get(path); status != http.StatusOK || strings.TrimSpace(body) != "ok" {
				return fmt.Errorf("%s answers %d %q", path, status, body)
			}
			return nil
		})
		if err != nil {
			l.Error(err)
		}
	}
}

// underLoad compares while producer and consumer run, and leaves the group behind.
func (l *lagT) underLoad() {
	producing, stopProducing := context.WithCancel(l.ctx)
	consuming, stopConsuming := context.WithCancel(l.ctx)
	var all sync.WaitGroup
	var errs [2]error
	all.Go(func() { errs[0] = l.load(producing) })
	all.Go(func() { errs[1] = l.consume(consuming) })
	for len(l.describe(lagGroup)) < lagPartitions { // until the group has committed everywhere
		if l.ctx.Err() != nil {
			l.Fatal("the group commits nothing")
		}
	}
	for round := 0; round < lagRounds; {
		before := l.describe(lagGroup)
		page := l.scrape()
		after := l.describe(lagGroup)
		moved := 0
		for p := range int32(lagPartitions) {
			committed := int64(l.value(page, "kafka_consumergroup_current_offset", lagGroup, p))
			lag := int64(l.value(page, "kafka_consumergroup_lag", lagGroup, p))
			a, b := before[p], after[p]
			if committed < a.committed || committed > b.committed {
				l.Errorf("partition %d: %d is committed by the metrics, %d and %d by the tool before and after", p, committed, a.committed, b.committed)
			}
			if end := committed + lag; end < a.end || end > b.end {
				l.Errorf("partition %d: the log ends at %d by the metrics, at %d and %d by the tool before and after", p, end, a.end, b.end)
			}
			if lag < a.end-b.committed || lag > b.end-a.committed {
				l.Errorf("partition %d: the lag is %d, by the tool it was between %d and %d", p, lag, a.end-b.committed, b.end-a.committed)
			}
			if b.end > a.end {
				moved++
			}
		}
		if moved == lagPartitions { // else it says less, and there is another round
			round++
			harness.Progress("lag under load, round %d: between the samples; %v", round, after)
		} else if l.ctx.Err() != nil {
			l.Fatal("nothing is produced between samples")
		}
	}
	stopConsuming()
	stopProducing()
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		l.Fatal(err)
	}
	var behind []suite.Record // which nobody consumes
	for i := range 10 * lagPartitions {
		behind = append(behind, suite.Record{Partition: int32(i % lagPartitions), Value: []byte("behind")})
	}
	if _, err := l.ref.Produce(l.ctx, suite.ProduceOptions{Topic: lagTopic, Idempotent: true}, behind); err != nil {
		l.Fatal(err)
	}
}

// stopped compares when nothing moves: equal in records, right in seconds; and a group that has committed one partition has series of
// that alone.
func (l *lagT) stopped() {
	const other = "other"
	if err := l.ref.Commit(l.ctx, other, lagTopic, map[int32]int64{0: 5}); err != nil {
		l.Fatal(err)
	}
	told := l.describe(lagGroup)
	begin := time.Now()
	page := l.scrape()
	end := time.Now()
	sum, most := int64(0), 0.0
	for p := range int32(lagPartitions) {
		if lag := l.value(page, "kafka_consumergroup_lag", lagGroup, p); int64(lag) != told[p].lag || told[p].lag == 0 {
			l.Errorf("partition %d: the lag is %v by the metrics, %d by the tool", p, lag, told[p].lag)
		}
		if committed := l.value(page, "kafka_consumergroup_current_offset", lagGroup, p); int64(committed) != told[p].committed {
			l.Errorf("partition %d: committed is %v by the metrics, %d by the tool", p, committed, told[p].committed)
		}
		sum += told[p].lag
		most = max(most, l.seconds(page, lagGroup, p, told[p].committed, begin, end))
	}
	if got := page[fmt.Sprintf(`kafka_consumergroup_lag_sum{consumergroup="%s", topic="%s"}`, lagGroup, lagTopic)]; int64(got) != sum {
		l.Errorf("the sum of the lags is %v by the metrics, %d by the tool", got, sum)
	}
	if got := page[fmt.Sprintf(`kafka_consumergroup_group_max_lag_seconds{group="%s"}`, lagGroup)]; got != most {
		l.Errorf("the largest lag in seconds is %v, of the partitions %v", got, most)
	}
	l.seconds(page, other, 0, 5, begin, end)
	for p := int32(1); p < lagPartitions; p++ {
		if _, found := page[lagSeries("kafka_consumergroup_lag", "consumergroup", other, p)]; found {
			l.Errorf("partition %d has a lag of a group that never committed it", p)
		}
	}
	harness.Progress("lag when nothing moves: equal; %v", told)
}

// seconds checks the lag in seconds against the timestamp of the first record that is not consumed.
func (l *lagT) seconds(page scrapedPage, group string, partition int32, committed int64, begin, end time.Time) float64 {
	l.Helper()
	records, err := l.ref.Consume(l.ctx, suite.ConsumeOptions{Topic: lagTopic, From: map[int32]int64{partition: committed}, Count: 1})
	if err != nil || len(records) != 1 || records[0].Offset != committed {
		l.Fatalf("reading partition %d at %d: %v %v", partition, committed, records, err)
	}
	first := time.UnixMilli(records[0].Timestamp)
	got := l.value(page, "kafka_consumergroup_group_lag_seconds", group, partition)
	// The node counts whole milliseconds.
	least, most := begin.Sub(first).Seconds()-0.001, end.Sub(first).Seconds()+0.001
	if math.IsNaN(got) || got < least || got > most {
		l.Errorf("group %s, partition %d: behind by %v s, by the record's timestamp between %v and %v", group, partition, got, least, most)
	}
	return got
}

// caughtUp lets the group commit the ends: nothing is left, in records and in seconds.
func (l *lagT) caughtUp() {
	ends := map[int32]int64{}
	for p, told := range l.describe(lagGroup) {
		ends[p] = told.end
	}
	if err := l.ref.Commit(l.ctx, lagGroup, lagTopic, ends); err != nil {
		l.Fatal(err)
	}
	page := l.scrape()
	for p := range int32(lagPartitions) {
		for _, name := range []string{"kafka_consumergroup_lag", "kafka_consumergroup_group_lag_seconds"} {
			if got := l.value(page, name, lagGroup, p); got != 0 {
				l.Errorf("%s of partition %d is %v after everything was committed", name, p, got)
			}
		}
	}
}

// dashboardNames are what dashboards and alerts for Apache Kafka ask for, under the names that Strimzi's rules and kafka_exporter give.
const dashboardNames = `
kafka_server_brokertopicmetrics_bytesin_total kafka_server_brokertopicmetrics_bytesout_total kafka_server_brokertopicmetrics_messagesin_total
kafka_server_brokertopicmetrics_totalfetchrequests_total kafka_server_brokertopicmetrics_totalproducerequests_total
kafka_server_brokertopicmetrics_failedproducerequests_total kafka_server_brokertopicmetrics_failedfetchrequests_total
kafka_server_replicamanager_underreplicatedpartitions kafka_server_replicamanager_underminisrpartitioncount
kafka_server_replicamanager_atminisrpartitioncount kafka_server_replicamanager_leadercount kafka_server_replicamanager_partitioncount
kafka_server_replicamanager_offlinereplicacount kafka_controller_kafkacontroller_activecontrollercount
kafka_controller_kafkacontroller_offlinepartitionscount kafka_controller_kafkacontroller_globaltopiccount
kafka_controller_kafkacontroller_globalpartitioncount kafka_cluster_partition_underreplicated kafka_cluster_partition_underminisr
kafka_cluster_partition_atminisr kafka_cluster_partition_replicascount kafka_cluster_partition_insyncreplicascount
kafka_log_log_size kafka_log_log_logendoffset kafka_log_log_logstartoffset kafka_log_log_numlogsegments
kafka_log_logmanager_offlinelogdirectorycount kafka_network_requestmetrics_totaltimems kafka_network_requestmetrics_totaltimems_count
kafka_network_requestmetrics_totaltimems_count_total kafka_network_requestmetrics_requests_total
kafka_server_socket_server_metrics_connection_count kafka_server_raftmetrics_current_state kafka_server_raftmetrics_current_leader
kafka_server_raftmetrics_current_epoch kafka_server_raftmetrics_high_watermark kafka_server_raftmetrics_log_end_offset
kafka_server_brokermetadatametrics_last_applied_record_offset kafka_server_kafkaserver_linux_disk_read_bytes
kafka_server_kafkaserver_linux_disk_write_bytes kafka_coordinator_group_groupmetadatamanager_numgroups
kafka_consumergroup_lag kafka_consumergroup_lag_sum kafka_consumergroup_current_offset kafka_consumergroup_members
kafka_consumergroup_group_lag_seconds kafka_consumergroup_group_max_lag_seconds kafka_topic_partition_current_offset
kafka_topic_partition_oldest_offset kafka_topic_partition_in_sync_replica kafka_topic_partition_leader
kafka_topic_partition_leader_is_preferred kafka_topic_partition_replicas kafka_topic_partition_under_replicated_partition
kafka_brokers kafka_broker_info process_open_fds process_resident_memory_bytes go_goroutines`

func (l *lagT) names() {
	page := l.scrape()
	for _, name := range strings.Fields(dashboardNames) {
		if page["of "+name] == 0 {
			l.Errorf("there is no series of %s", name)
		}
	}
	for _, series := range []string{
		"kafka_server_brokertopicmetrics_messagesin_total",
		`kafka_server_brokertopicmetrics_messagesin_total{topic="` + lagTopic + `"}`,
		`kafka_network_requestmetrics_totaltimems{quantile="0.999", request="Produce"}`,
	} {
		if _, found := page[series]; !found {
			l.Errorf("there is no %s", series)
		}
	}
}
