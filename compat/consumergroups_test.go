//go:build compat

package compat

import (
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// TestConsumers runs the scenarios of the group protocol consumer (KIP-848) with the clients that know it, side by side; then those in
// which the node restarts.
func TestConsumers(t *testing.T) {
	need(t, "python")
	node := startNode(t, "consumers", scenario.ConsumerProperties())
	java, err := driver.StartJava(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = java.Close() })
	python, err := driver.StartPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Close() })
	clients := []suite.Client{
		franz.New(node.Addr()), driver.NewClient(python, scenario.Confluent, node.Addr()), driver.NewClient(java, scenario.Java, node.Addr()),
	}
	results := suite.NewResults("consumers", serverName(node.Kind()), "compat/run.sh consumers")
	list := scenario.ConsumerGroups()
	results.SetColumns(scenario.Consumers...)
	results.AddRows(scenario.Names(list)...)
	results.AddRows(scenario.ConsumerRestarts...)
	t.Run("all", func(t *testing.T) {
		for _, client := range clients {
			t.Run(client.Name(), func(t *testing.T) {
				t.Parallel()
				runConsumers(t, node, client, list, results)
			})
		}
	})
	for _, row := range scenario.ConsumerRestarts {
		ran := false
		passed := t.Run(row, func(t *testing.T) {
			ran = true
			defer explain(t, node)
			restartUnderConsumers(t, node, clients, row)
		})
		for _, client := range clients {
			if ran {
				results.Add(row, client.Name(), !passed)
			}
		}
	}
	stopCleanly(t, node)
	finish(t, results)
}

// restartUnderConsumers restarts the node under members of all clients.
func restartUnderConsumers(t *testing.T, node *harness.Node, clients []suite.Client, row string) {
	ctx := cellContext(t)
	var members []*scenario.ConsumersOverRestart
	for _, client := range clients {
		cell := &scenario.T{TB: t, Ctx: ctx, Client: client, Ref: franz.New(node.Addr()), Node: node, Name: row}
		members = append(members, scenario.ConsumersBeforeRestart(cell))
	}
	var err error
	if row == "consumer-sigkill" {
		err = node.Kill()
	} else {
		_, err = node.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		m.After()
		harness.Progress("%s with %s: passed: %v", row, m.Client.Name(), !t.Failed())
	}
}

func runConsumers(t *testing.T, node *harness.Node, client suite.Client, list []scenario.Scenario, results *suite.Results) {
	for _, s := range list {
		if !scenario.PartakesInConsumerGroups(client.Name(), s.Name) {
			continue
		}
		ran := false
		passed := t.Run(s.Name, func(t *testing.T) {
			ran = true
			defer explain(t, node)
			s.Run(&scenario.T{TB: t, Ctx: cellContext(t), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: s.Name})
		})
		if ran {
			results.Add(s.Name, client.Name(), !passed)
			harness.Progress("%s with %s: passed: %v", s.Name, client.Name(), passed)
		}
	}
}
