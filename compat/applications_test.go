//go:build compat

package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// patience is how long a cell waits for what must come; far more than it takes on a busy machine.
const patience = 5 * time.Minute

// applicationLimit ends a cell that hangs.
const applicationLimit = 15 * time.Minute

// appT is one cell of the applications' table.
type appT struct {
	*cell
	ctx  context.Context
	node *harness.Node
	ref  *franz.Client
	apps *driver.Process // the JVM in which programs run that are not to be killed
}

type appCase struct {
	name string
	run  func(*appT)
}

// TestApplications runs Kafka Streams, a Kafka Connect worker and a spring-kafka program against one node, side by side.
func TestApplications(t *testing.T) {
	need(t)
	node := startNode(t, "applications", map[string]string{
		// A killed instance is missed after two seconds, and its open transaction ends soon after.
		"group.min.session.timeout.ms":                                "1000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	})
	results := suite.NewResults("applications", serverName(node.Kind()), "compat/run.sh applications")
	groups := applicationCases()
	for _, group := range groups {
		for _, c := range group {
			results.AddRows(c.name)
		}
	}
	run := func(t *testing.T, group []appCase) {
		apps := startApplications(t)
		for _, c := range group {
			runApplication(t, node, apps, c, results)
		}
	}
	alone := len(groups) - 1
	t.Run("all", func(t *testing.T) {
		for i, group := range groups[:alone] {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				run(t, group)
			})
		}
	})
	t.Run("restart", func(t *testing.T) { run(t, groups[alone]) })
	stopCleanly(t, node)
	finish(t, results)
}

// applicationCases are the rows, in groups that run side by side; those of the last kill the node, and run when the others are done.
func applicationCases() [][]appCase {
	return [][]appCase{streamsCases(), streamsCrashCases(), connectCases(), springCases(), streamsRestartCases()}
}

// checkApplicationsRecorded checks that the control column has a result for every row.
func checkApplicationsRecorded(t *testing.T) {
	t.Helper()
	recorded := readControl(t, "applications")
	for _, group := range applicationCases() {
		for _, c := range group {
			if recorded[c.name+"/result"] == "" {
				t.Errorf("the control column has no cell %s: run make control", c.name)
			}
		}
	}
}

func runApplication(t *testing.T, node *harness.Node, apps *driver.Process, c appCase, results *suite.Results) {
	runCell(t, node, results, strings.ReplaceAll(c.name, " ", "-"), c.name, "result", func(t *cell) {
		c.run(&appT{cell: t, ctx: limited(t.T, applicationLimit), node: node, ref: franz.New(node.Addr()), apps: apps})
	})
}

func startApplications(t *testing.T) *driver.Process {
	t.Helper()
	apps, err := driver.StartApplications(workDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = apps.Close() })
	return apps
}

// must ends the cell if err is an error.
func (t *appT) must(err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// eventually waits until a question is answered without an error.
func (t *appT) eventually(what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	t.must(suite.Eventually(ctx, ask), what)
}

// becomes waits until what a topic holds passes a check.
func (t *appT) becomes(r *tail, check func([]suite.Record) error) {
	t.Helper()
	t.eventually("what "+r.topic+" holds", func() error {
		records, err := r.read(t.ctx)
		if err != nil {
			return err
		}
		return check(records)
	})
}

// topic creates a topic and waits until the broker shows it.
func (t *appT) topic(name string, partitions int) {
	t.Helper()
	t.must(t.ref.CreateTopic(t.ctx, name, partitions, nil), "create "+name)
	t.eventually("topic "+name, func() error {
		n, err := t.ref.Partitions(t.ctx, name)
		if err == nil && n != partitions {
			err = fmt.Errorf("%d partitions", n)
		}
		return err
	})
}

// produce writes records by the reference client; each must be acknowledged.
func (t *appT) produce(topic string, records []suite.Record) {
	t.Helper()
	acks, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: topic, Idempotent: true}, records)
	t.must(err, "produce")
	for i, a := range acks {
		if a.Err != "" {
			t.Fatalf("record %d for %s: %s", i, topic, a.Err)
		}
	}
}

// ends are the end offsets of a topic's partitions.
func (t *appT) ends(topic string, partitions int) []int64 {
	t.Helper()
	ends := make([]int64, partitions)
	for p := range ends {
		end, _, err := t.ref.ListOffset(t.ctx, topic, int32(p), suite.Latest)
		t.must(err, "end of "+topic)
		ends[p] = end
	}
	return ends
}
