//go:build compat

package compat

import (
	"fmt"
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
	properties := map[string]string{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"} // of a transaction past its timeout
	node := startNode(t, "clients", properties)
	clients := startDrivers(t)
	results := suite.NewResults("clients", serverName(node.Kind()), "compat/run.sh clients")
	list, restarts := scenario.List(), scenario.Restarts()
	results.SetColumns(scenario.Clients...)
	results.AddRows(scenario.Names(list)...)
	results.AddRows(scenario.Names(scenario.OldTransactions())...)
	for _, r := range restarts {
		results.AddRows(r.Name)
	}
	t.Run("all", func(t *testing.T) {
		for _, client := range clients(node.Addr()) {
			t.Run(client.Name(), func(t *testing.T) {
				t.Parallel()
				runClient(t, node, client, withoutTransactions(list), results)
			})
		}
	})
	// A node of their own: one with the thousands of partitions of the other rows takes Apache Kafka minutes to stop and to start.
	again := startNode(t, "restarts", properties)
	runTransactions(t, node, again, clients, results)
	stopCleanly(t, node)
	for _, r := range restarts {
		t.Run(r.Name, func(t *testing.T) {
			harness.Progress("%s", r.Name)
			runRestart(t, again, r, clients(again.Addr()), results)
		})
		select {
		case <-again.Process().Done():
			t.Fatalf("the node is down after %s; the rows behind it do not run", r.Name)
		default:
		}
	}
	stopCleanly(t, again)
	finish(t, results)
}

// runRestart runs a row in which the node restarts. What is wrong with one client is told by its cell, what ends the row by the row.
func runRestart(t *testing.T, node *harness.Node, r scenario.Restart, clients []suite.Client, results *suite.Results) {
	row, judged := &cell{T: t}, false
	defer ended.begin("clients: " + r.Name)()
	defer func() {
		if t.Failed() && !judged {
			ended.add("clients: "+r.Name, row.why+"\n"+node.LogTail(5))
		}
		tellLog(t, node)
	}()
	r.Run(scenario.Restarting{
		TB: row, Ctx: limited(t, scenario.RestartLimit), Node: node, Clients: clients, Ref: franz.New(node.Addr()),
		Result: func(client string, err error) {
			judged = true
			results.Add(r.Name, client, err != nil)
			if err != nil {
				ended.add(fmt.Sprintf("clients: %s with %s", r.Name, client), err.Error())
			}
		},
	})
}

// openClients starts what the clients need and returns them, for one node, in the order of the columns.
func openClients(t *testing.T, node *harness.Node) []suite.Client {
	t.Helper()
	return startDrivers(t)(node.Addr())
}

// startDrivers starts what the clients need, and returns how they speak to the node at an address, in the order of the columns.
func startDrivers(t *testing.T) func(addr string) []suite.Client {
	t.Helper()
	started := func(p *driver.Process, err error) *driver.Process {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	dir := workDir(t)
	java, confluent := started(driver.StartJava(dir)), started(driver.StartPython(dir))
	others := map[string]*driver.Process{
		scenario.Sarama: started(driver.StartBuilt("sarama", dir)), scenario.KafkaGo: started(driver.StartBuilt("kafkago", dir)),
		scenario.Rdkafka: started(driver.StartBuilt("rdkafka", dir)), scenario.KafkaPython: started(driver.StartPythonClient("pure", dir)),
		scenario.Aiokafka: started(driver.StartPythonClient("aio", dir)), scenario.KafkaJS: started(driver.StartNode("kafkajs", dir)),
		scenario.Platformatic: started(driver.StartNode("platformatic", dir)),
	}
	return func(addr string) []suite.Client {
		clients := []suite.Client{
			franz.New(addr), kcat.New(addr), driver.NewClient(confluent, scenario.Confluent, addr), driver.NewClient(java, scenario.Java, addr),
			driver.NewConsole(java, addr, franz.New(addr)),
		}
		for _, name := range scenario.Clients[len(clients):] {
			clients = append(clients, driver.NewClient(others[name], name, addr))
		}
		return clients
	}
}

// runClient runs the column of one client.
func runClient(t *testing.T, node *harness.Node, client suite.Client, list []scenario.Scenario, results *suite.Results) {
	for _, s := range list {
		if !scenario.Partakes(client.Name(), s.Name) {
			continue
		}
		runCell(t, node, results, s.Name, s.Name, client.Name(), func(c *cell) {
			s.Run(&scenario.T{TB: c, Ctx: cellContext(c.T), Client: client, Ref: franz.New(node.Addr()), Node: node, Name: s.Name})
		})
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
