//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
)

// TestClusterFailover: three brokers of Ottla under a controller of Apache Kafka. The leader of a partition is killed under
// load, three times, and comes back: nothing that was acknowledged is lost or there twice, and the replicas are equal.
func TestClusterFailover(t *testing.T) {
	const rounds, perRound = 3, 4000
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn, Properties: map[string]string{
		"min.insync.replicas": "2", "broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
	}})
	var members []*harness.Member
	for range 3 {
		members = append(members, addBroker(t, c, harness.Ottla, nil))
	}
	client := clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	createTopic(t, client, "failover", 3, 3)
	var acknowledged atomic.Int64
	for round := range rounds {
		inSync(t, client, "failover", 3)
		before := acknowledged.Load()
		failed := make(chan error, perRound)
		for n := range perRound {
			value := fmt.Appendf(nil, "%d", round*perRound+n)
			client.Produce(context.Background(), &kgo.Record{Topic: "failover", Key: value, Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed <- err
					return
				}
				acknowledged.Add(1)
			})
		}
		eventually(t, "the first acknowledgements", func(context.Context) error {
			if acknowledged.Load() == before {
				return errors.New("none has come")
			}
			return nil
		})
		killed := leaderOf(t, client, "failover", int32(round), members)
		killMember(t, killed)
		if err := client.Flush(limited(t, clusterLimit)); err != nil {
			t.Fatalf("after %s was killed %d of %d records were acknowledged: %v", killed.Name(), acknowledged.Load()-before, perRound, err)
		}
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
		startMember(t, killed)
	}
	inSync(t, client, "failover", 3)
	readOnce(t, c, "failover", rounds*perRound)
	for n := range 3 {
		equalReplicas(t, "failover", n, members)
	}
}

// leaderOf finds the member that leads a partition.
func leaderOf(t *testing.T, client *kgo.Client, topic string, partition int32, members []*harness.Member) (leader *harness.Member) {
	t.Helper()
	eventually(t, fmt.Sprintf("the leader of %s-%d", topic, partition), func(ctx context.Context) error {
		found, err := metadataOf(ctx, client, topic)
		if err != nil {
			return err
		}
		for _, p := range found.Partitions {
			i := slices.IndexFunc(members, func(m *harness.Member) bool { return p.Partition == partition && p.Leader == int32(m.ID) })
			if i >= 0 {
				leader = members[i]
				return nil
			}
		}
		return errors.New("it has none")
	})
	return leader
}

// readOnce reads a topic to its end and finds the values 0 to count-1, each once.
func readOnce(t *testing.T, c *harness.Cluster, topic string, count int) {
	t.Helper()
	reader := clusterClient(t, c.Bootstrap(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, found := limited(t, clusterLimit), map[string]int{}
	for len(found) < count {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d values of %s were found", len(found), count, topic)
		}
		fetches.EachRecord(func(r *kgo.Record) { found[string(r.Value)]++ })
	}
	for n := range count {
		if times := found[fmt.Sprint(n)]; times != 1 {
			t.Errorf("the value %d is there %d times", n, times)
		}
	}
}
