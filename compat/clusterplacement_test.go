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
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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
	eventually(t, "coordinators", func(ctx context.Context) error { // who asks for them has their topics made
		admin := kadm.NewClient(p.client)
		return errors.Join(admin.FindGroupCoordinators(ctx, "first").Error(), admin.FindTxnCoordinators(ctx, "first").Error())
	})
	return p
}

func (p *placed) servers() string { return strings.Join(p.Bootstrap(), ",") }

// broker is the n-th broker, from 1: its id.
func (p *placed) broker(id int) *harness.Member { return p.Brokers[id-1] }

// all are the ids of the brokers.
func (p *placed) all() (ids []int32) {
	for _, b := range p.Brokers {
		ids = append(ids, int32(b.ID))
	}
	return ids
}

// of are the brokers of a kind.
func (p *placed) of(kind harness.Kind) (ids []int32) {
	return slices.DeleteFunc(p.all(), func(id int32) bool { return p.broker(int(id)).Kind != kind })
}

// but are the brokers without some.
func (p *placed) but(not ...int32) (ids []int32) {
	return slices.DeleteFunc(p.all(), func(id int32) bool { return slices.Contains(not, id) })
}

// other is the other kind.
func other(kind harness.Kind) harness.Kind {
	if kind == harness.Kafka {
		return harness.Ottla
	}
	return harness.Kafka
}

// after are all brokers, this one first.
func (p *placed) after(first int32) []int32 { return append([]int32{first}, p.but(first)...) }

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
	p.elect(t, broker, func(int32) int32 { return int32(broker.ID) }, topics...)
}

// elect is lead with a leader for each partition. By is asked whether it is so.
func (p *placed) elect(t *testing.T, by *harness.Member, leader func(partition int32) int32, topics ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s to see the leaders of %v", by.Name(), topics), func(ctx context.Context) error {
		orders, elections := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewPtrElectLeadersRequest()
		for _, topic := range topics {
			found, err := metadataOf(ctx, p.at(by), topic)
			if err = cmp.Or(err, kerr.ErrorForCode(found.ErrorCode)); err != nil {
				return err
			}
			order, election := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewElectLeadersRequestTopic()
			order.Topic, election.Topic = topic, topic
			for _, d := range found.Partitions {
				id := leader(d.Partition)
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
		if err := p.reassign(ctx, by, orders); err != nil {
			return fmt.Errorf("the order of the replicas: %w", err)
		}
		elected, err := elections.RequestWith(ctx, p.at(by))
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
	kept := p.line()
	t.Run("leaders", func(t *testing.T) { p.leaders(t, &kept, 1, []int32{1, 2, 3}, []int32{1, 3, 4}) })
	p.parts(t, &kept)
}

// parts are what follows the turns of the leaders, in any such cluster.
func (p *placed) parts(t *testing.T, kept *placedLine) {
	t.Run("hung", p.hung)
	t.Run("nearest", p.nearest)
	t.Run("throttled", p.throttled)
	t.Run("decided", p.decided)
	t.Run("coordinators", func(t *testing.T) { kept.Moves = p.coordinators(t) })
	t.Run("scenarios", func(t *testing.T) { kept.Scenarios = p.scenarios(t) })
	t.Run("files", p.files)
}

// TestClusterTurns is the first part of it alone.
func TestClusterTurns(t *testing.T) {
	p := startPlaced(t, harness.Kafka, harness.Kafka, harness.Ottla, harness.Ottla)
	kept := p.line()
	p.leaders(t, &kept, 1, []int32{1, 2, 3}, []int32{1, 3, 4})
	p.files(t)
}

// placedLine is what is kept of a cluster in which each broker led in turn for long.
type placedLine struct {
	Date            string
	Brokers         []harness.Kind
	Rounds          int // in each of them every broker led once
	Topics, Records int
	Seconds         float64 // while clients wrote
	Moves           int     // of all coordinators, from broker to broker
	Scenarios       int     // that passed: of each client, with each broker leading
}

func (p *placed) line() (kept placedLine) {
	kept.Date = time.Now().UTC().Format(time.DateOnly)
	for _, b := range p.Brokers {
		kept.Brokers = append(kept.Brokers, b.Kind)
	}
	return kept
}

// TestClusterPlacementLong is the same in clusters of three brokers: two of Apache Kafka and one of Ottla, and one and two.
// OTTLA_CLUSTER_ROUNDS is how often each broker leads (20). A line of each is appended to testdata/soak/clusterplacement.jsonl.
func TestClusterPlacementLong(t *testing.T) {
	rounds := setting(t, "OTTLA_CLUSTER_ROUNDS", 20)
	for _, second := range []harness.Kind{harness.Kafka, harness.Ottla} {
		t.Run("kafka-"+string(second)+"-ottla", func(t *testing.T) {
			p := startPlaced(t, harness.Kafka, second, harness.Ottla)
			kept := p.line()
			t.Run("leaders", func(t *testing.T) { p.leaders(t, &kept, rounds, p.all()) })
			p.parts(t, &kept)
			if !t.Failed() && kept.Scenarios > 0 { // and none was left out
				appendJSON(t, "clusterplacement.jsonl", kept)
			}
		})
	}
}

// leaders has each broker lead each partition in turn, so many times, while clients write.
func (p *placed) leaders(t *testing.T, kept *placedLine, rounds int, sets ...[]int32) {
	began := time.Now()
	l := p.startLoad(t, sets)
	for range rounds {
		for _, b := range p.Brokers {
			p.lead(t, b, l.topics()...)
			l.goesOn(t)
		}
	}
	kept.Rounds, kept.Topics, kept.Seconds = rounds, len(l.all), time.Since(began).Seconds()
	kept.Records = l.finish(t)
	for _, topic := range l.all {
		if topic.compacted() {
			p.sameValues(t, topic)
		} else {
			p.sameReplicas(t, topic.name)
		}
	}
	p.verifyReplicas(t, l.topics(), len(l.all))
}

// sameReplicas waits until all replicas of each partition of a topic are the same bytes. It returns how many partitions there are.
func (p *placed) sameReplicas(t *testing.T, topic string) (partitions int) {
	t.Helper()
	var found kmsg.MetadataResponseTopic
	eventually(t, "the replicas of "+topic, func(ctx context.Context) (err error) {
		found, err = metadataOf(ctx, p.client, topic)
		if err = cmp.Or(err, kerr.ErrorForCode(found.ErrorCode)); err != nil {
			return err
		}
		for _, d := range found.Partitions {
			if len(d.ISR) != len(d.Replicas) {
				return fmt.Errorf("partition %d is on %v, in sync %v", d.Partition, d.Replicas, d.ISR)
			}
		}
		return nil
	})
	for _, d := range found.Partitions {
		var members []*harness.Member
		for _, id := range d.Replicas {
			members = append(members, p.broker(int(id)))
		}
		equalReplicas(t, topic, int(d.Partition), members)
	}
	return len(found.Partitions)
}

// verifyReplicas has ReplicaVerificationTool compare the replicas of topics, which have so many partitions.
func (p *placed) verifyReplicas(t *testing.T, topics []string, partitions int) {
	t.Helper()
	tool := &toolT{cell: &cell{T: t}, ctx: limited(t, clusterLimit)}
	pattern := fmt.Sprintf(`max lag is 0 for partition .* among %d partitions`, partitions)
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

// scenarios runs scenarios with franz-go, Java and librdkafka once for each broker, which leads the first partition of every topic, the
// others the further ones; coordinators are on all brokers. Then replicas must be equal. It returns how many passed.
func (p *placed) scenarios(t *testing.T) (passed int) {
	python, err := driver.StartPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Close() })
	var count atomic.Int64
	for first := range p.Brokers {
		leader := func(partition int) int32 { return int32(p.Brokers[(first+partition)%len(p.Brokers)].ID) }
		p.elect(t, p.Brokers[first], func(partition int32) int32 { return leader(int(partition)) }, coordinatorTopics...)
		ref := franz.New(p.servers())
		ref.Place = func(partition int) []int32 { return p.after(leader(partition)) }
		turn := fmt.Sprintf("led-by-%d", leader(0))
		t.Run(turn, func(t *testing.T) {
			for _, client := range []suite.Client{
				ref, driver.NewClient(p.java, scenario.Java, p.servers()), driver.NewClient(python, scenario.Confluent, p.servers()),
			} {
				t.Run(client.Name(), func(t *testing.T) {
					t.Parallel() // they wait more than they work
					count.Add(p.scenariosBy(t, client, ref, turn))
				})
			}
		})
		p.judgeScenarios(t, turn, leader)
	}
	return int(count.Load())
}

// scenariosBy runs the scenarios with one client.
func (p *placed) scenariosBy(t *testing.T, client suite.Client, ref *franz.Client, turn string) (passed int64) {
	for _, s := range scenario.List() {
		if !slices.Contains(placedScenarios, s.Name) || !scenario.Partakes(client.Name(), s.Name) {
			continue
		}
		if t.Run(s.Name, func(t *testing.T) {
			c := &cell{T: t}
			defer func() {
				if t.Failed() {
					ended.add(fmt.Sprintf("cluster: %s with %s, %s", s.Name, client.Name(), turn), c.why)
				}
			}()
			s.Run(&scenario.T{TB: c, Ctx: cellContext(t), Client: client, Ref: ref, Node: p.broker(int(p.of(harness.Ottla)[0])), Name: s.Name, Turn: turn})
		}) {
			passed++
		}
	}
	return passed
}

// judgeScenarios finds every partition of a turn where it was led from the beginning, with equal replicas.
func (p *placed) judgeScenarios(t *testing.T, turn string, leader func(partition int) int32) {
	t.Helper()
	found, err := kadm.NewClient(p.client).ListTopics(limited(t, clusterLimit))
	if err != nil {
		t.Fatal(err)
	}
	var topics []string
	partitions := 0
	for _, topic := range found.TopicsList().Topics() {
		if !strings.Contains(topic, turn) {
			continue
		}
		topics = append(topics, topic)
		partitions += p.sameReplicas(t, topic)
		for _, d := range found[topic].Partitions {
			if want := leader(int(d.Partition)); d.Leader != want || len(d.Replicas) != len(p.Brokers) {
				t.Errorf("partition %d of %s is led by %d of %v, not by %d", d.Partition, topic, d.Leader, d.Replicas, want)
			}
		}
	}
	p.verifyReplicas(t, topics, partitions)
	harness.Progress("%s: %d topics with %d partitions, all replicas equal", turn, len(topics), partitions)
}
