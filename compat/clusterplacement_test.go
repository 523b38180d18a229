//go:build compat

package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// placed is a cluster of brokers of both kinds under three controllers of Apache Kafka.
type placed struct {
	*harness.Cluster
	client *kgo.Client // of whoever administers it
	java   *driver.Process
}

// placedProperties are those of all members. Sessions are long: a broker that hangs is to be seen by its leaders, not by the
// controllers.
var placedProperties = map[string]string{
	"broker.session.timeout.ms": "20000", "replica.lag.time.max.ms": "5000", "min.insync.replicas": "2", "transaction.state.log.min.isr": "2",
	"replication.quota.window.num": "2", // of Apache Kafka's brokers, whose throttles otherwise begin with ten seconds' worth at once
	"replica.selector.class":       "org.apache.kafka.common.replica.RackAwareReplicaSelector",
	"log.cleaner.backoff.ms":       "500", "log.cleaner.dedupe.buffer.size": "4194304",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	"auto.leader.rebalance.enable":                                "false",
}

// startPlaced starts a broker of each of the kinds, in this order: those of Apache Kafka are in the racks a and b, in turn, and so are
// those of Ottla.
func startPlaced(t *testing.T, kinds ...harness.Kind) *placed {
	t.Helper()
	properties := maps.Clone(placedProperties)
	for _, factor := range []string{"default.replication.factor", "offsets.topic.replication.factor", "transaction.state.log.replication.factor"} {
		properties[factor] = strconv.Itoa(len(kinds))
	}
	p := &placed{Cluster: startCluster(t, harness.ClusterOptions{Controllers: 3, Features: harness.LetIn, Properties: properties})}
	racks, started := map[harness.Kind]int{}, make(chan error, len(kinds))
	for _, kind := range kinds {
		m, err := p.AddBroker(kind, map[string]string{"broker.rack": []string{"a", "b"}[racks[kind]%2]})
		if err != nil {
			t.Fatal(err)
		}
		racks[kind]++
		go func() { started <- m.Start(limited(t, clusterLimit)) }()
	}
	p.java = startJava(t, t.TempDir())
	for range kinds {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	p.client = clusterClient(t, p.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	return p
}

func (p *placed) servers() string { return strings.Join(p.Bootstrap(), ",") }

// broker is the n-th broker, from 1: its id.
func (p *placed) broker(id int) *harness.Member { return p.Brokers[id-1] }

// create makes a topic of one partition, with replicas on these brokers; the first one leads.
func (p *placed) create(t *testing.T, topic string, configs map[string]string, replicas ...int32) {
	t.Helper()
	eventually(t, "topic "+topic, func(ctx context.Context) error {
		req := kmsg.NewPtrCreateTopicsRequest()
		wanted := kmsg.NewCreateTopicsRequestTopic()
		wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, -1, -1
		wanted.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}
		for key, value := range configs {
			wanted.Configs = append(wanted.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
		}
		req.Topics = append(req.Topics, wanted)
		resp, err := req.RequestWith(ctx, p.client)
		if err != nil {
			return err
		}
		if err = kerr.ErrorForCode(resp.Topics[0].ErrorCode); errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		return err
	})
}

// lead makes a broker the leader of all partitions of topics of which it has a replica, as an operator does: its replica comes first,
// and the preferred leader is elected.
func (p *placed) lead(t *testing.T, broker *harness.Member, topics ...string) {
	t.Helper()
	id := int32(broker.ID)
	eventually(t, fmt.Sprintf("%s to lead %v", broker.Name(), topics), func(ctx context.Context) error {
		orders, elections := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewPtrElectLeadersRequest()
		for _, topic := range topics {
			found, err := metadataOf(ctx, p.at(broker), topic)
			if err = cmp.Or(err, kerr.ErrorForCode(found.ErrorCode)); err != nil {
				return err
			}
			order, election := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewElectLeadersRequestTopic()
			order.Topic, election.Topic = topic, topic
			for _, d := range found.Partitions {
				if !slices.Contains(d.Replicas, id) || d.Leader == id {
					continue
				}
				others := slices.DeleteFunc(slices.Clone(d.Replicas), func(r int32) bool { return r == id })
				order.Partitions = append(order.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{
					Partition: d.Partition, Replicas: append([]int32{id}, others...),
				})
				election.Partitions = append(election.Partitions, d.Partition)
			}
			if len(order.Partitions) > 0 {
				orders.Topics, elections.Topics = append(orders.Topics, order), append(elections.Topics, election)
			}
		}
		if len(orders.Topics) == 0 {
			return nil
		}
		if err := p.reassign(ctx, broker, orders); err != nil {
			return fmt.Errorf("the order of the replicas: %w", err)
		}
		elected, err := elections.RequestWith(ctx, p.at(broker))
		if err != nil {
			return fmt.Errorf("the election: %w", err)
		}
		// Who is not in sync is elected later; what the metadata says counts.
		return fmt.Errorf("the elections of %d topics were answered %v", len(elections.Topics), elected.Topics)
	})
}

// at asks one broker.
func (p *placed) at(broker *harness.Member) kmsg.Requestor { return p.client.Broker(broker.ID) }

// reassign gives partitions other replicas, or another order of them.
func (p *placed) reassign(ctx context.Context, by *harness.Member, req *kmsg.AlterPartitionAssignmentsRequest) error {
	resp, err := req.RequestWith(ctx, p.at(by))
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	for _, topic := range resp.Topics {
		for _, d := range topic.Partitions {
			err = cmp.Or(err, kerr.ErrorForCode(d.ErrorCode))
		}
	}
	return err
}

// move gives all partitions of a topic these replicas, and waits until they are in sync and no others are left.
func (p *placed) move(t *testing.T, topic string, to ...int32) {
	t.Helper()
	by := p.broker(int(to[0]))
	eventually(t, fmt.Sprintf("%s on %v", topic, to), func(ctx context.Context) error {
		found, err := metadataOf(ctx, p.at(by), topic)
		if err != nil {
			return err
		}
		req, order := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewAlterPartitionAssignmentsRequestTopic()
		order.Topic = topic
		for _, d := range found.Partitions {
			if !slices.Equal(d.Replicas, to) || len(d.ISR) != len(to) {
				err = fmt.Errorf("partition %d is on %v, in sync %v", d.Partition, d.Replicas, d.ISR)
				order.Partitions = append(order.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: d.Partition, Replicas: to})
			}
		}
		if err == nil {
			return nil
		}
		req.Topics = append(req.Topics, order)
		return cmp.Or(p.reassign(ctx, by, req), err)
	})
}

// TestClusterPlacement: three controllers and two brokers of Apache Kafka, two of Ottla. Each topic has a replica on two of the one
// kind and on one of the other, or on all. What leads, coordinates, follows, is read from, hangs, is reassigned changes in turn.
func TestClusterPlacement(t *testing.T) {
	p := startPlaced(t, harness.Kafka, harness.Kafka, harness.Ottla, harness.Ottla)
	t.Run("leaders", func(t *testing.T) { p.leaders(t, 1, []int32{1, 2, 3}, []int32{1, 3, 4}) })
	t.Run("hung", p.hung)
	t.Run("nearest", p.nearest)
	t.Run("throttled", p.throttled)
	t.Run("decided", p.decided)
	t.Run("coordinators", p.coordinators)
	t.Run("scenarios", p.scenarios)
	t.Run("files", p.files)
}

// TestClusterTurns is the first part of it alone.
func TestClusterTurns(t *testing.T) {
	p := startPlaced(t, harness.Kafka, harness.Kafka, harness.Ottla, harness.Ottla)
	p.leaders(t, 1, []int32{1, 2, 3}, []int32{1, 3, 4})
	p.files(t)
}

// placedLine is what is kept of a cluster in which each broker led in turn for long.
type placedLine struct {
	Date            string
	Brokers         []harness.Kind
	Rounds          int // in each of them every broker led once
	Topics, Records int
	Seconds         float64 // while clients wrote
}

// TestClusterPlacementLong is the first part of it for longer, in clusters of three brokers: two of Apache Kafka and one of Ottla, and
// one and two. OTTLA_CLUSTER_ROUNDS is how often each broker leads (20). A line of each is appended to testdata/soak/clusterplacement.jsonl.
func TestClusterPlacementLong(t *testing.T) {
	rounds := setting(t, "OTTLA_CLUSTER_ROUNDS", 20)
	for _, second := range []harness.Kind{harness.Kafka, harness.Ottla} {
		t.Run("kafka-"+string(second)+"-ottla", func(t *testing.T) {
			p := startPlaced(t, harness.Kafka, second, harness.Ottla)
			kept := p.leaders(t, rounds, []int32{1, 2, 3})
			p.files(t)
			if !t.Failed() {
				appendJSON(t, "clusterplacement.jsonl", kept)
			}
		})
	}
}

// leaders has each broker lead each partition in turn, so many times, while clients write.
func (p *placed) leaders(t *testing.T, rounds int, sets ...[]int32) placedLine {
	began := time.Now()
	l := p.startLoad(t, sets)
	for range rounds {
		for _, b := range p.Brokers {
			p.lead(t, b, l.topics()...)
			l.goesOn(t)
		}
	}
	kept := placedLine{Date: began.UTC().Format(time.DateOnly), Rounds: rounds, Topics: len(l.all), Seconds: time.Since(began).Seconds()}
	for _, b := range p.Brokers {
		kept.Brokers = append(kept.Brokers, b.Kind)
	}
	kept.Records = l.finish(t)
	for _, topic := range l.all {
		if topic.compacted() {
			p.sameValues(t, topic)
		} else {
			p.sameReplicas(t, topic.name)
		}
	}
	p.verifyReplicas(t, l.topics())
	return kept
}

// sameReplicas waits until all replicas of a topic's only partition are the same bytes.
func (p *placed) sameReplicas(t *testing.T, topic string) {
	t.Helper()
	var members []*harness.Member
	eventually(t, "the replicas of "+topic, func(ctx context.Context) error {
		found, err := metadataOf(ctx, p.client, topic)
		if err != nil || len(found.Partitions) != 1 || len(found.Partitions[0].ISR) != len(found.Partitions[0].Replicas) {
			return fmt.Errorf("%v, %w", found.Partitions, err)
		}
		members = nil
		for _, id := range found.Partitions[0].Replicas {
			members = append(members, p.broker(int(id)))
		}
		return nil
	})
	equalReplicas(t, topic, 0, members)
}

// verifyReplicas has ReplicaVerificationTool compare the replicas of topics.
func (p *placed) verifyReplicas(t *testing.T, topics []string) {
	t.Helper()
	tool := &toolT{cell: &cell{T: t}, ctx: limited(t, clusterLimit)}
	pattern := fmt.Sprintf(`max lag is 0 for partition .* among %d partitions`, len(topics))
	said := tool.processFor("ReplicaVerificationTool", pattern,
		"--broker-list", p.servers(), "--topics-include", strings.Join(topics, "|"), "--report-interval-ms", "500", "--max-wait-ms", "200")
	if strings.Contains(said, "doesn't match") || strings.Contains(said, "different") {
		t.Errorf("ReplicaVerificationTool said:\n%s", said)
	}
}

// files stops all brokers and has DumpLogSegments and ottla check look at what they leave.
func (p *placed) files(t *testing.T) {
	for _, b := range p.Brokers {
		stopMember(t, b)
		noFaults(t, b.Name()+" has left", b.DataDir())
	}
	for _, b := range p.Brokers {
		dumpEveryFile(t, p.java, b.Kind, b.DataDir())
	}
}

// placedScenarios are those of the list that are run against the cluster.
var placedScenarios = []string{
	"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "offsets-by-time", "delete-records", "read-committed", "large-batches",
	"group-shares", "group-replay", "group-churn", "txn-views", "txn-fenced", "txn-timeout", "txn-copy",
}

// scenarios runs scenarios with franz-go, Java and librdkafka while leaders and coordinators are on all four brokers.
func (p *placed) scenarios(t *testing.T) {
	python, err := driver.StartPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Close() })
	ref := franz.New(p.servers())
	for _, client := range []suite.Client{
		ref, driver.NewClient(p.java, scenario.Java, p.servers()), driver.NewClient(python, scenario.Confluent, p.servers()),
	} {
		t.Run(client.Name(), func(t *testing.T) {
			t.Parallel() // they wait more than they work
			for _, s := range scenario.List() {
				if !slices.Contains(placedScenarios, s.Name) || !scenario.Partakes(client.Name(), s.Name) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					c := &cell{T: t}
					defer func() {
						if t.Failed() {
							ended.add(fmt.Sprintf("cluster: %s with %s", s.Name, client.Name()), c.why)
						}
					}()
					s.Run(&scenario.T{TB: c, Ctx: cellContext(t), Client: client, Ref: ref, Node: p.broker(3), Name: s.Name})
				})
			}
		})
	}
}
