//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
)

// TestClusterFollowerLag: the metrics of a broker tell by how many records its replicas are behind their leaders. A throttle holds one
// behind for as long as that is looked at.
func TestClusterFollowerLag(t *testing.T) {
	const topic, records = "behind", 2000
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn})
	addBroker(t, c, harness.Ottla, nil)
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	scraper := &lagT{T: t, at: fmt.Sprintf("localhost:%d", port)}
	follower := addBroker(t, c, harness.Ottla, map[string]string{"ottla.metrics.listener": scraper.at})
	client := clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(100_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	(&placed{Cluster: c, client: client}).create(t, topic, nil, 1, 2)
	inSync(t, client, topic, 2)
	behind := func(want func(lag, end float64) bool) {
		t.Helper()
		eventually(t, "the lag that the metrics tell of", func(context.Context) error {
			page := scraper.scrape()
			lag, found := page[`kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-1", partition="0", topic="behind"}`]
			most, end := page[`kafka_server_replicafetchermanager_maxlag{clientId="Replica"}`], page[`kafka_log_log_logendoffset{partition="0", topic="behind"}`]
			if !found || most != lag || !want(lag, end) {
				return fmt.Errorf("it lags %v, %v at most, and its log ends at %v", lag, most, end)
			}
			harness.Progress("the follower lags %v, its log ends at %v", lag, end)
			return nil
		})
	}
	behind(func(lag, end float64) bool { return lag == 0 && end == 0 })

	throttle := func(op kadm.IncrementalOp) {
		t.Helper()
		one, replicas, admin := "1", "0:2", kadm.NewClient(client)
		eventually(t, "the throttle", func(ctx context.Context) error { // the other broker may not know yet that the follower is back
			brokers, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "follower.replication.throttled.rate", Value: &one}}, 2)
			topics, also := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "follower.replication.throttled.replicas", Value: &replicas}}, topic)
			err = errors.Join(err, also)
			for _, altered := range append(brokers, topics...) {
				err = errors.Join(err, altered.Err)
			}
			return err
		})
	}
	throttle(kadm.SetConfig) // which holds nobody who is in sync
	killMember(t, follower)
	eventually(t, "the ISR without the follower", func(ctx context.Context) error {
		found, err := metadataOf(ctx, client, topic)
		if err == nil && (len(found.Partitions[0].ISR) != 1 || found.Partitions[0].Leader != 1) {
			err = fmt.Errorf("%+v", found.Partitions[0])
		}
		return err
	})
	var all []*kgo.Record
	for range records {
		all = append(all, &kgo.Record{Topic: topic, Value: make([]byte, 4000)})
	}
	if err := client.ProduceSync(limited(t, clusterLimit), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	startMember(t, follower)
	behind(func(lag, end float64) bool { return lag > 0 && end > 0 && lag+end == records })
	throttle(kadm.DeleteConfig)
	inSync(t, client, topic, 2)
	behind(func(lag, end float64) bool { return lag == 0 && end == records })
}
