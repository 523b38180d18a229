//go:build compat

package compat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// withoutTransactions are the rows that runTransactions does not run.
func withoutTransactions(list []scenario.Scenario) []scenario.Scenario {
	rows := scenario.Names(scenario.Transactions())
	return slices.DeleteFunc(slices.Clone(list), func(s scenario.Scenario) bool { return slices.Contains(rows, s.Name) })
}

// runTransactions runs the rows of transactions, with all clients at once, since most of their time is that of sessions and timeouts:
// on a node, and on another one with transaction.version=1, which it leaves with 2.
func runTransactions(t *testing.T, node, old *harness.Node, clients func(addr string) []suite.Client, results *suite.Results) {
	setTransactionVersion(t, old, 1)
	t.Run("transactions", func(t *testing.T) {
		var all sync.WaitGroup
		start := func(name string, node *harness.Node, client suite.Client, list []scenario.Scenario) {
			all.Go(func() { t.Run(name, func(t *testing.T) { runClient(t, node, client, list, results) }) })
		}
		for _, client := range clients(node.Addr()) {
			start(client.Name(), node, client, scenario.Transactions())
		}
		for _, client := range clients(old.Addr()) {
			start(client.Name()+"-v1", old, client, scenario.OldTransactions())
		}
		all.Wait()
	})
	setTransactionVersion(t, old, 2)
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
