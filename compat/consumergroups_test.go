//go:build compat

package compat

import (
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/nextgen"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// TestConsumers runs the scenarios of the group protocol consumer (KIP-848) with the clients that know it, side by side; then those in
// which the node restarts.
func TestConsumers(t *testing.T) {
	need(t, "python")
	node := startNode(t, "consumers", nextgen.Properties())
	java := startJava(t, t.TempDir())
	python, err := driver.StartPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Close() })
	clients := []suite.Client{
		franz.New(node.Addr()), driver.NewClient(python, scenario.Confluent, node.Addr()), driver.NewClient(java, scenario.Java, node.Addr()),
	}
	results := suite.NewResults("consumers", serverName(node.Kind()), "compat/run.sh consumers")
	list := nextgen.List()
	results.SetColumns(nextgen.Clients...)
	results.AddRows(scenario.Names(list)...)
	results.AddRows(nextgen.Restarts...)
	t.Run("all", func(t *testing.T) {
		for _, client := range clients {
			t.Run(client.Name(), func(t *testing.T) {
				t.Parallel()
				runConsumers(t, node, client, list, results)
			})
		}
	})
	for _, row := range nextgen.Restarts {
		t.Run(row, func(t *testing.T) {
			restartUnderConsumers(t, node, clients, results, row)
		})
	}
	stopCleanly(t, node)
	finish(t, results)
}

// restartUnderConsumers restarts the node under members of all clients. Each client has a cell before the restart and one after it, so that
// one that hangs fails alone.
func restartUnderConsumers(t *testing.T, node *harness.Node, clients []suite.Client, results *suite.Results, row string) {
	before := suite.NewResults(results.Part, results.Server, results.Command)
	members := map[suite.Client]*nextgen.OverRestart{}
	whole := limited(t, scenario.RestartLimit)
	for _, client := range clients {
		passed, _ := runCell(t, node, before, "before-"+client.Name(), row, client.Name(), func(c *cell) {
			members[client] = nextgen.BeforeRestart(whole, &scenario.T{
				TB: c, Ctx: cellContext(c.T), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: row,
			})
		})
		if !passed {
			results.Add(row, client.Name(), true)
			delete(members, client)
		}
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
	if _, err := node.Start(whole); err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		if members[client] != nil {
			runCell(t, node, results, "after-"+client.Name(), row, client.Name(), func(c *cell) {
				members[client].After(&scenario.T{
					TB: c, Ctx: limited(c.T, scenario.StepLimit), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: row,
				})
			})
		}
	}
}

func runConsumers(t *testing.T, node *harness.Node, client suite.Client, list []scenario.Scenario, results *suite.Results) {
	for _, s := range list {
		if nextgen.Partakes(client.Name(), s.Name) {
			runCell(t, node, results, s.Name, s.Name, client.Name(), func(c *cell) {
				s.Run(&scenario.T{TB: c, Ctx: cellContext(c.T), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: s.Name})
			})
		}
	}
}
