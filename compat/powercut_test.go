//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"ottla/compat/harness"
	"ottla/compat/powercut"
)

const defaultPowerCuts = 5

// powered is a node on a disk of its own.
type powered struct {
	name  string
	disk  *powercut.Disk
	node  *harness.Node
	story *powercut.Story
	cuts  int
}

// TestPowerCut cuts the power of real file systems under load, OTTLA_POWERCUTS times in all: ext4 and xfs, with flush before
// acknowledgement and without, in turn. Each node goes on with what the cut before has left.
func TestPowerCut(t *testing.T) {
	if err := harness.CheckInstalled("ottla"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"mkfs.ext4", "mkfs.xfs", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("run `compat/run.sh install` first: %v", err)
		}
	}
	needRoot(t)
	cuts, seed := setting(t, "OTTLA_POWERCUTS", defaultPowerCuts), uint64(time.Now().UnixNano())
	harness.Progress("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var nodes []*powered
	for i := range min(cuts, 4) {
		nodes = append(nodes, newPowered(t, []string{"ext4", "xfs"}[i%2], i < 2, seed+uint64(i)))
	}
	for i := range cuts {
		p := nodes[i%len(nodes)]
		p.cut(t, time.Duration(20_000_000+random.IntN(900_000_000)), random.IntN(4) == 0)
		if t.Failed() {
			return
		}
	}
	for _, p := range nodes {
		if code, err := p.node.Stop(); err != nil || code != 0 {
			t.Errorf("%s: the clean stop: exit %d, %v", p.name, code, err)
		}
		harness.Progress("%s: %d power cuts; acknowledged: %d records, %d transactions, %d commits, %d topics made or deleted; %d records and commits that were not flushed were cut off",
			p.name, p.cuts, p.story.Acknowledged, p.story.Transactions, p.story.Commits, p.story.Topics, p.story.Lost)
	}
	harness.Progress("%d power cuts, nothing was lost that was promised", cuts)
}

func newPowered(t *testing.T, kind string, flush bool, seed uint64) *powered {
	t.Helper()
	disk, err := powercut.NewDisk(kind, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	properties := map[string]string{
		"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3",
		"log.flush.offset.checkpoint.interval.ms": "300",
	}
	name := kind + "-lazy"
	if flush {
		name = kind + "-flush"
		properties["log.flush.interval.messages"] = "1"
	}
	node, err := harness.NewNode(harness.Options{Kind: harness.Ottla, Name: "powercut-" + name, Dir: workDir(t), DataDir: disk.Mount + "/data", Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	p := &powered{name: name, disk: disk, node: node, story: powercut.NewStory(flush, seed)}
	if _, err := node.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end) // before the disk is closed
	return p
}

// end kills the node, if it runs.
func (p *powered) end() {
	if err := p.node.Process().Signal(syscall.SIGKILL); err == nil || errors.Is(err, os.ErrProcessDone) {
		<-p.node.Process().Done()
	}
}

// cut runs one round: load, cut, restart, judgement.
func (p *powered) cut(t *testing.T, after time.Duration, journal bool) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatalf("%s, cut %d after %s: %v\n%s", p.name, p.cuts+1, after, err, p.node.LogTail(25))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	load, err := p.story.Start(ctx, p.node.Addr())
	fail(err)
	if after%5 != 0 { // else the cut may come before anything else
		select {
		case <-load.Running():
		case <-ctx.Done():
			fail(ctx.Err())
		}
	}
	<-time.After(after)
	load.PowerFails()
	fail(p.disk.Cut(journal))
	p.end() // it must not say anything after the cut that it could not say in a power cut
	fail(load.Stop())
	p.cuts++
	fail(p.disk.Remount())
	fail(powercut.OtherBoot(p.node.DataDir()))
	noFaults(t, fmt.Sprintf("cut %d of %s has left", p.cuts, p.name), p.node.DataDir())
	first, err := p.node.Start(ctx)
	fail(err)
	if err := p.story.Judge(ctx, p.node.Addr()); err != nil {
		fail(fmt.Errorf("answered after %d ms: %w", first.Milliseconds(), err))
	}
}
