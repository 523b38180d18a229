//go:build compat

package compat

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"ottla/compat/edge"
	"ottla/compat/franz"
	"ottla/compat/harness"
)

const mebibyte = 1 << 20

// growthMB is how much the resident memory may grow under all attacks together, and idleKB what an idle connection may cost.
const (
	growthMB = 96
	idleKB   = 20
)

// TestEdge lets loose every attack on a node in a control group of 256 MB, while a good client goes on.
func TestEdge(t *testing.T) {
	need(t)
	group, err := harness.MemoryCgroup("ottla-edge", 256*mebibyte)
	if err != nil {
		t.Fatal(err)
	}
	node := startNodeIn(t, harness.Options{Kind: target(t), Name: "edge", Dir: workDir(t), Wrap: group.Wrap()})
	t.Cleanup(func() {
		node.Close()
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	ctx := cellContext(t)
	good := goodClient(ctx, t, node)
	before := resident(t, node)
	for _, attack := range edge.Attacks() {
		t.Run(strings.ReplaceAll(attack.Name, " ", "-"), func(t *testing.T) {
			defer explain(t, node)
			if err := attack.Run(ctx, node.Addr()); err != nil {
				t.Error(err)
			}
			if err := good.Advance(ctx, 3); err != nil {
				t.Error(err)
			}
			peak, err := node.PeakResidentMB()
			if err != nil {
				t.Fatal(err)
			}
			harness.Progress("%s: at most %.1f MB resident so far, %.1f more than before", attack.Name, peak, peak-before)
			if peak-before > growthMB {
				t.Errorf("resident memory grew by %.1f MB, at most %d are allowed", peak-before, growthMB)
			}
		})
	}
	if err := good.Stop(); err != nil {
		t.Error(err)
	}
	harness.Progress("the good client did %d rounds meanwhile", good.Rounds())
	stopCleanly(t, node)
}

// goodClient makes the topics of the attacks and starts a client that behaves.
func goodClient(ctx context.Context, t *testing.T, node *harness.Node) *edge.Good {
	t.Helper()
	admin := franz.New(node.Addr())
	for topic, configs := range map[string]map[string]string{
		"good": nil, edge.PlainTopic: nil, edge.RecompressTopic: {"compression.type": "lz4"},
	} {
		if err := admin.CreateTopic(ctx, topic, 1, configs); err != nil {
			t.Fatal(err)
		}
	}
	good, err := edge.StartGood(ctx, node.Addr(), "good")
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Advance(ctx, 20); err != nil {
		t.Fatal(err)
	}
	return good
}

func resident(t *testing.T, node *harness.Node) float64 {
	t.Helper()
	mb, err := node.ResidentMB()
	if err != nil {
		t.Fatal(err)
	}
	return mb
}

// TestEdgeDescriptors floods a node that may open few descriptors: who is connected goes on, and when the flood is over, newcomers are
// served again.
func TestEdgeDescriptors(t *testing.T) {
	need(t)
	node := startNodeIn(t, harness.Options{Kind: target(t), Name: "descriptors", Dir: workDir(t), Wrap: []string{"prlimit", "--nofile=256:256"}})
	ctx := cellContext(t)
	good := goodClient(ctx, t, node)
	opened, release := edge.Crowd(ctx, node.Addr(), 2000)
	harness.Progress("%d connections to a node of 256 descriptors", opened)
	if err := good.Advance(ctx, 50); err != nil {
		t.Error(err)
	}
	release()
	if err := good.Stop(); err != nil {
		t.Error(err)
	}
	release, err := edge.Idle(ctx, node.Addr(), 20)
	if err != nil {
		t.Fatalf("a newcomer after the flood: %v", err)
	}
	release()
	stopCleanly(t, node)
}

// TestEdgeIdle measures what ten thousand connections cost that asked once and are silent since.
func TestEdgeIdle(t *testing.T) {
	need(t)
	const connections = 9_900 // a process may open 20,000 descriptors at most on small machines, and one address 10,000 connections
	raiseDescriptors(t, connections+200)
	node := startNode(t, "idle", nil)
	ctx := cellContext(t)
	good := goodClient(ctx, t, node)
	before := resident(t, node)
	release, err := edge.Idle(ctx, node.Addr(), connections)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := good.Advance(ctx, 20); err != nil {
		t.Error(err)
	}
	each := (resident(t, node) - before) * 1024 / connections
	harness.Progress("%d idle connections: %.1f KB resident each", connections, each)
	if each > idleKB {
		t.Errorf("an idle connection costs %.1f KB, at most %d are allowed", each, idleKB)
	}
	if err := good.Stop(); err != nil {
		t.Error(err)
	}
	release()
	stopCleanly(t, node)
}

// raiseDescriptors lets this process open so many descriptors.
func raiseDescriptors(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < n {
		limit.Cur = min(n, limit.Max)
	}
	if limit.Cur < n {
		t.Fatal(fmt.Errorf("%d descriptors are needed, %d are allowed: raise ulimit -n", n, limit.Max))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
}
