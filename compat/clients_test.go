//go:build compat

package compat

import (
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/kcat"
	"ottla/compat/scenario"
	"ottla/compat/suite"
)

// TestClients runs every scenario with every client that takes part in it, on one node; then those in which the node restarts.
func TestClients(t *testing.T) {
	need(t, "kcat", "python", "node")
	node := startNode(t, "clients", nil)
	clients := openClients(t, node)
	results := suite.NewResults("clients", serverName(node.Kind()), "compat/run.sh clients")
	list, restarts := scenario.List(), scenario.Restarts()
	results.SetColumns(scenario.Clients...)
	results.AddRows(scenario.Names(list)...)
	for _, r := range restarts {
		results.AddRows(r.Name)
	}
	t.Run("all", func(t *testing.T) {
		for _, client := range clients {
			t.Run(client.Name(), func(t *testing.T) {
				t.Parallel()
				runClient(t, node, client, list, results)
			})
		}
	})
	for _, r := range restarts {
		t.Run(r.Name, func(t *testing.T) {
			harness.Progress("%s", r.Name)
			r.Run(scenario.Restarting{
				T: t, Ctx: cellContext(t), Node: node, Clients: clients, Ref: franz.New(node.Addr()),
				Result: func(client string, failed bool) { results.Add(r.Name, client, failed) },
			})
			explain(t, node)
		})
	}
	stopCleanly(t, node)
	finish(t, results)
}

// openClients starts what the clients need and returns them in the order of the columns.
func openClients(t *testing.T, node *harness.Node) []suite.Client {
	t.Helper()
	started := func(p *driver.Process, err error) *driver.Process {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	addr, dir := node.Addr(), t.TempDir()
	java := started(driver.StartJava(dir))
	return []suite.Client{
		franz.New(addr),
		kcat.New(addr),
		driver.NewClient(started(driver.StartPython(dir)), scenario.Confluent, addr),
		driver.NewClient(java, scenario.Java, addr),
		driver.NewConsole(java, addr, franz.New(addr)),
		driver.NewClient(started(driver.StartBuilt("sarama", dir)), scenario.Sarama, addr),
		driver.NewClient(started(driver.StartBuilt("kafkago", dir)), scenario.KafkaGo, addr),
		driver.NewClient(started(driver.StartBuilt("rdkafka", dir)), scenario.Rdkafka, addr),
		driver.NewClient(started(driver.StartPythonClient("pure", dir)), scenario.KafkaPython, addr),
		driver.NewClient(started(driver.StartPythonClient("aio", dir)), scenario.Aiokafka, addr),
		driver.NewClient(started(driver.StartNode("kafkajs", dir)), scenario.KafkaJS, addr),
		driver.NewClient(started(driver.StartNode("platformatic", dir)), scenario.Platformatic, addr),
	}
}

// runClient runs the column of one client.
func runClient(t *testing.T, node *harness.Node, client suite.Client, list []scenario.Scenario, results *suite.Results) {
	for _, s := range list {
		if !scenario.Partakes(client.Name(), s.Name) {
			continue
		}
		ran := false // and not left out by the pattern of -run
		passed := t.Run(s.Name, func(t *testing.T) {
			ran = true
			defer explain(t, node)
			s.Run(&scenario.T{TB: t, Ctx: cellContext(t), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: s.Name})
		})
		if !ran {
			continue
		}
		results.Add(s.Name, client.Name(), !passed)
		word := suite.Pass
		if !passed {
			word = suite.Fail
		}
		harness.Progress("%s  %s with %s", word, s.Name, client.Name())
	}
}

// stopCleanly ends the node by SIGTERM and checks the exit code: 143 of a JVM, 0 of Ottla.
func stopCleanly(t *testing.T, node *harness.Node) {
	t.Helper()
	code, err := node.Stop()
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	if node.Kind() == harness.Kafka {
		want = 143
	}
	if code != want {
		t.Errorf("exit code after SIGTERM is %d, want %d\n%s", code, want, node.LogTail(15))
	}
}
