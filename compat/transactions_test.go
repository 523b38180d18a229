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
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// runOldTransactions runs the rows of transactions on a node with transaction.version=1, and leaves it with 2.
func runOldTransactions(t *testing.T, node *harness.Node, clients []suite.Client, results *suite.Results) {
	setTransactionVersion(t, node, 1)
	t.Run("all", func(t *testing.T) {
		for _, client := range clients {
			t.Run(client.Name(), func(t *testing.T) {
				t.Parallel()
				runClient(t, node, client, scenario.OldTransactions(), results)
			})
		}
	})
	setTransactionVersion(t, node, 2)
}

// setTransactionVersion sets the feature transaction.version, and waits until the broker shows it.
func setTransactionVersion(t *testing.T, node *harness.Node, version int16) {
	t.Helper()
	const feature = "transaction.version"
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := cellContext(t)
	req := kmsg.NewPtrUpdateFeaturesRequest()
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = feature, version, 2
	if version == 2 {
		update.UpgradeType = 1
	}
	req.FeatureUpdates = append(req.FeatureUpdates, update)
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		t.Fatalf("%s=%d: %v", feature, version, err)
	}
	if err := suite.Eventually(ctx, func() error { return hasFeature(ctx, node, feature, version) }); err != nil {
		t.Fatal(err)
	}
}

func hasFeature(ctx context.Context, node *harness.Node, feature string, version int16) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()))
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	shown := int16(-1)
	for _, f := range resp.FinalizedFeatures {
		if f.Name == feature {
			shown = f.MaxVersionLevel
		}
	}
	if shown != version {
		return fmt.Errorf("the broker shows %s=%d, want %d", feature, shown, version)
	}
	return nil
}
