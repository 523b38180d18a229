//go:build compat

package compat

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/harness"
)

// TestClusterVersions is a cluster of Apache Kafka 3.9.2 with a broker of Ottla beside one of its own, which becomes one of 4.1.2 and
// one of 4.4.0 while Ottla runs: first the processes, then the features, a level at a time.
func TestClusterVersions(t *testing.T) {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Version: "3.9.2", Static: true, Properties: map[string]string{
		"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2",
	}})
	ottla := addBroker(t, c, harness.Ottla, nil)
	kafka := addBroker(t, c, harness.Kafka, nil)
	client := clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	createTopic(t, client, "both", 4, 2)
	w := &writer{client: client, topic: "both"}
	use := func(at string) {
		t.Helper()
		inSync(t, client, "both", 2)
		w.write(t, 500)
		groupOf(t, c, "readers at "+at, w.next)
		transaction(t, c, "ledger-"+at)
	}
	use("3.9.2")
	killMember(t, kafka)
	w.write(t, 100)
	startMember(t, kafka)
	inSync(t, client, "both", 2)
	killMember(t, ottla)
	w.write(t, 100)
	startMember(t, ottla)
	use("3.9.2-after-crashes")

	level := int16(21)
	raise := func(to int16) {
		for level < to {
			level++
			setFeature(t, client, "metadata.version", level)
			followsFeature(t, ottla, "metadata.version", level)
			w.write(t, 50)
		}
	}
	for _, to := range []struct {
		version string
		level   int16
		others  map[string]int16
	}{
		{"4.1.2", 27, map[string]int16{"group.version": 1, "transaction.version": 1}},
		{harness.KafkaVersion, 33, map[string]int16{"transaction.version": 2, "eligible.leader.replicas.version": 1}},
	} {
		for _, m := range []*harness.Member{c.Controllers[0], kafka} {
			stopMember(t, m)
			m.Version = to.version
			startMember(t, m)
		}
		use(to.version + "-with-old-features")
		raise(to.level)
		for name, level := range to.others {
			setFeature(t, client, name, level)
			followsFeature(t, ottla, name, level)
		}
		use(to.version)
	}
	bothComplete(t, c, w, ottla, kafka)
}

// setFeature finalizes a level of a feature.
func setFeature(t *testing.T, client *kgo.Client, name string, level int16) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s to become %d", name, level), func(ctx context.Context) error {
		req := kmsg.NewPtrUpdateFeaturesRequest()
		update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		update.Feature, update.MaxVersionLevel, update.UpgradeType = name, level, 1
		req.FeatureUpdates = append(req.FeatureUpdates, update)
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, result := range resp.Results {
			if result.ErrorCode != 0 {
				return fmt.Errorf("%w: %v", kerr.ErrorForCode(result.ErrorCode), result.ErrorMessage)
			}
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}

// followsFeature waits until a broker tells its clients of a level.
func followsFeature(t *testing.T, m *harness.Member, name string, level int16) {
	t.Helper()
	client := clusterClient(t, []string{m.Addr()})
	eventually(t, fmt.Sprintf("%s to serve %s=%d", m.Name(), name, level), func(ctx context.Context) error {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "compat", "1"
		resp, err := req.RequestWith(ctx, client.Broker(m.ID))
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			return err
		}
		for _, f := range resp.FinalizedFeatures {
			if f.Name == name && f.MaxVersionLevel == level {
				return nil
			}
		}
		return fmt.Errorf("it serves %v", resp.FinalizedFeatures)
	})
}
