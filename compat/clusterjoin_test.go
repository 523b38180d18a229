//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/harness"
)

// quorumLeader asks for the leader of the metadata quorum.
func quorumLeader(ctx context.Context, client *kgo.Client) (int32, error) {
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return -1, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return -1, fmt.Errorf("DescribeQuorum answered error %d", resp.ErrorCode)
	}
	return resp.Topics[0].Partitions[0].LeaderID, nil
}

// TestClusterRefused: a cluster that has finalized more than Ottla serves. It ends by itself, and says which features, and
// what lets it in. So does one with the id of the controller that leads, as Apache Kafka's does.
func TestClusterRefused(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1})
	broker, err := c.AddBroker(harness.Ottla, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Launch(); err != nil {
		t.Fatal(err)
	}
	endsSaying(t, broker, "share.version=", "streams.version=1", "downgrade --feature share.version=0 --feature streams.version=0")
	other, err := c.AddBroker(harness.Ottla, map[string]string{"node.id": fmt.Sprint(c.Controllers[0].ID)})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Launch(); err != nil {
		t.Fatal(err)
	}
	endsSaying(t, other, "of the metadata quorum has this node's id, 1001: each node needs one of its own")
}

// endsSaying waits until a process ends by itself, as one that has failed, and says why.
func endsSaying(t *testing.T, m *harness.Member, why ...string) {
	t.Helper()
	eventually(t, "the end of "+m.Name(), func(context.Context) error {
		select {
		case <-m.Process().Done():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	said := m.LogTail(20) // others may have had something to say since
	if code := m.Process().Wait(); code != 1 {
		t.Errorf("it ended with %d, want 1", code)
	}
	for _, wanted := range why {
		if !strings.Contains(said, wanted) {
			t.Errorf("it did not say %q:\n%s", wanted, said)
		}
	}
}

// TestClusterStatic is a quorum of static voters (kraft.version 0).
func TestClusterStatic(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn, Static: true})
	broker := addBroker(t, c, harness.Ottla, nil)
	client := clusterClient(t, c.Bootstrap())
	createTopic(t, client, "static", 1, 1)
	w := &writer{client: client, topic: "static"}
	w.write(t, 100)
	stopMember(t, c.Controllers[0])
	startMember(t, c.Controllers[0])
	createTopic(t, client, "static-again", 1, 1)
	stopMember(t, broker)
	startMember(t, broker)
	w.write(t, 100)
	w.expect(t, c.Bootstrap())
	sameMetadata(t, c, broker)
}

// TestClusterSnapshot: a broker that comes when the metadata log no longer begins at its beginning downloads a snapshot.
func TestClusterSnapshot(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn, Properties: map[string]string{
		"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.log.segment.bytes": "8388608", "metadata.max.retention.bytes": "4000",
		"controller.quorum.fetch.snapshot.max.bytes": "600", "metadata.log.segment.ms": "1000", "metadata.max.idle.interval.ms": "50",
	}})
	first := addBroker(t, c, harness.Ottla, nil)
	client := clusterClient(t, c.Bootstrap())
	w := &writer{client: client, topic: "round-0"}
	for i := range 20 {
		createTopic(t, client, fmt.Sprintf("round-%d", i), 3, 1)
	}
	w.write(t, 100)
	eventually(t, "the controller to cut its metadata log", func(context.Context) error {
		if found, _ := filepath.Glob(filepath.Join(metadataDir(c.Controllers[0]), "00000000000000000000.log")); len(found) > 0 {
			return errors.New("the first segment is still there")
		}
		return nil
	})
	second := addBroker(t, c, harness.Ottla, nil)
	if said := second.LogTail(100); !strings.Contains(said, "a metadata snapshot was installed") {
		t.Errorf("no snapshot was installed:\n%s", said)
	}
	if _, err := quorumLeader(limited(t, clusterLimit), clusterClient(t, []string{second.Addr()})); err != nil {
		t.Error(err)
	}
	w.expect(t, []string{second.Addr()})
	killMember(t, second)
	startMember(t, second)
	w.expect(t, []string{second.Addr()})

	// One that was away while the log was cut comes back the same way.
	stopMember(t, first)
	client = clusterClient(t, []string{second.Addr()})
	for i := range 20 {
		createTopic(t, client, fmt.Sprintf("later-%d", i), 3, 1)
	}
	startMember(t, first)
	w.expect(t, c.Bootstrap())
	sameMetadata(t, c, second)
	sameMetadata(t, c, first)
}

// TestClusterMixed: brokers of both kinds, each replica on both.
func TestClusterMixed(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn, Properties: map[string]string{
		"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2",
	}})
	ottla := addBroker(t, c, harness.Ottla, nil)
	kafka := addBroker(t, c, harness.Kafka, nil)
	client := clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	createTopic(t, client, "both", 4, 2)
	w := &writer{client: client, topic: "both"}
	for _, leaves := range []*harness.Member{kafka, ottla} {
		inSync(t, client, "both", 2)
		w.write(t, 2000)
		groupOf(t, c, fmt.Sprintf("readers of %d", leaves.ID), w.next)
		killMember(t, leaves)
		w.write(t, 2000)
		startMember(t, leaves)
	}
	inSync(t, client, "both", 2)
	transaction(t, c, "ledger")
	stopMember(t, kafka)
	w.write(t, 1000)
	startMember(t, kafka)
	inSync(t, client, "both", 2)
	stopMember(t, ottla)
	w.write(t, 1000)
	startMember(t, ottla)
	bothComplete(t, c, w, ottla, kafka)
}

// bothComplete waits until both brokers have all of what was written to the four partitions of a topic, and the same metadata.
func bothComplete(t *testing.T, c *harness.Cluster, w *writer, ottla, kafka *harness.Member) {
	t.Helper()
	inSync(t, w.client, w.topic, 2)
	w.expect(t, c.Bootstrap())
	for n := range 4 {
		equalReplicas(t, w.topic, n, []*harness.Member{ottla, kafka})
	}
	sameMetadata(t, c, ottla)
}

// groupOf reads a topic in a group and commits.
func groupOf(t *testing.T, c *harness.Cluster, group string, count int) {
	t.Helper()
	ctx, read := limited(t, clusterLimit), 0
	member := clusterClient(t, c.Bootstrap(), kgo.ConsumerGroup(group), kgo.ConsumeTopics("both"), kgo.DisableAutoCommit())
	for read < count {
		fetches := member.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("group %q read %d of %d records", group, read, count)
		}
		read += fetches.NumRecords()
	}
	if err := member.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	member.Close()
}

// metadataOf gives what a cluster says of a topic.
func metadataOf(ctx context.Context, client kmsg.Requestor, topic string) (found kmsg.MetadataResponseTopic, err error) {
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return found, err
	}
	return resp.Topics[0], nil
}

// inSync waits until each partition of a topic has so many in-sync replicas.
func inSync(t *testing.T, client *kgo.Client, topic string, replicas int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d in-sync replicas of %s", replicas, topic), func(ctx context.Context) error {
		found, err := metadataOf(ctx, client, topic)
		if err != nil {
			return err
		}
		for _, p := range found.Partitions {
			if p.Leader < 0 || len(p.ISR) != replicas {
				return fmt.Errorf("partition %d has leader %d and the in-sync replicas %v", p.Partition, p.Leader, p.ISR)
			}
		}
		return nil
	})
}
