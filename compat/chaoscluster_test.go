//go:build compat

package compat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ottla/compat/chaos"
	"ottla/compat/harness"
	"ottla/compat/powercut"
	"ottla/compat/suite"
)

// siegePlan is what a seed says of a round, besides the faults.
type siegePlan struct {
	seed        uint64
	duration    time.Duration
	fileSystem  string
	flushed     bool // before acknowledgement
	controllers int
	calm        bool // nothing else than that leaders are killed, as soon as all replicas are in sync
}

// planOf has two of three rounds without flush before acknowledgement, as Apache Kafka is by default, and one of four under three
// controllers.
func planOf(seed uint64, duration time.Duration) siegePlan {
	p := siegePlan{seed: seed, duration: duration, fileSystem: []string{"ext4", "xfs"}[seed%2], flushed: seed%3 == 2, controllers: 1}
	if seed%4 == 3 {
		p.controllers = 3
	}
	return p
}

// siegeSettings are those of both kinds of servers.
func siegeSettings(p siegePlan) map[string]string {
	settings := map[string]string{
		"min.insync.replicas": "2", "default.replication.factor": "3",
		"broker.session.timeout.ms": "4500", "broker.heartbeat.interval.ms": "500", "replica.lag.time.max.ms": "2000",
		"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4",
		"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2",
	}
	if p.flushed {
		settings["log.flush.interval.messages"] = "1"
	}
	return settings
}

// besieged is a cluster whose brokers have machines and disks of their own.
func besieged(t *testing.T, p siegePlan) *chaos.Cluster {
	t.Helper()
	kind := target(t)
	network, err := harness.NewNetwork(os.Getenv("OTTLA_COMPAT_NETWORK"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster := startCluster(t, harness.ClusterOptions{
		Controllers: p.controllers, Features: harness.LetIn, Properties: siegeSettings(p), Network: network, HeapMegabytes: 256,
	})
	c := &chaos.Cluster{Cluster: cluster, Network: network, Flushed: p.flushed, LeaderKills: 15 * time.Second}
	if p.calm {
		c.LeaderKills = time.Second
	}
	for n := range 3 {
		disk, err := powercut.NewDisk(p.fileSystem, filepath.Join(t.TempDir(), fmt.Sprint("disk-", n+1)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := disk.Close(); err != nil {
				t.Error(err)
			}
		})
		slow, err := harness.NewDiskCgroup(fmt.Sprintf("ottla-chaos-%d", n+1), disk.Mount)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := slow.Remove(); err != nil {
				t.Error(err)
			}
		})
		m, err := cluster.AddBroker(kind, map[string]string{"log.dirs": filepath.Join(disk.Mount, "data")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close) // before its disk goes
		c.Machines = append(c.Machines, &chaos.Machine{Member: m, Disk: disk, Slow: slow})
	}
	t.Cleanup(func() { keepDisks(t, c) })
	for _, m := range c.Machines {
		startMember(t, m.Member)
	}
	return c
}

// keepDisks copies what the disks of a failed test hold to where OTTLA_COMPAT_KEEP says that directories are kept.
func keepDisks(t *testing.T, c *chaos.Cluster) {
	if !t.Failed() || os.Getenv("OTTLA_COMPAT_KEEP") == "" {
		return
	}
	dir := workDir(t)
	for _, m := range c.Machines {
		if err := os.CopyFS(filepath.Join(dir, m.Name()), os.DirFS(m.DataDir())); err != nil {
			t.Errorf("what %s holds is not kept: %v", m.Name(), err)
		}
	}
}

// besiege runs one seed on a cluster of its own.
func besiege(t *testing.T, p siegePlan) *chaos.Result {
	t.Helper()
	need(t, "python")
	c := besieged(t, p)
	o := chaos.Options{Cluster: c, Seed: p.seed, Duration: p.duration}
	if !p.calm {
		o.Pause, o.Copiers = 5*time.Second, copiersOf(t, strings.Join(c.Bootstrap(), ","))
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.duration+15*time.Minute)
	defer cancel()
	result, err := chaos.Run(ctx, o)
	if err != nil {
		t.Fatalf("seed %d: %v", p.seed, err)
	}
	if path := os.Getenv("OTTLA_CHAOS_HISTORY"); path != "" {
		writeHistory(t, path, result)
	}
	result.Strange = append(result.Strange, unequalReplicas(ctx, c)...)
	harness.Progress("chaos on three brokers of %s, %+v: %s", serverName(target(t)), p, result)
	if !result.Sound() && target(t) == harness.Ottla { // what Apache Kafka does is recorded
		t.Errorf("chaos on a cluster: %s", result)
	}
	return result
}

// unequalReplicas compares the batches of all replicas, once nothing is written any more.
func unequalReplicas(ctx context.Context, c *chaos.Cluster) (unequal []string) {
	dirs, err := filepath.Glob(filepath.Join(c.Machines[0].DataDir(), "*-*"))
	if err != nil || len(dirs) == 0 {
		return []string{fmt.Sprintf("no replicas in %s: %v", c.Machines[0].DataDir(), err)}
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if _, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:]); err != nil || name == "__cluster_metadata-0" {
			continue
		}
		for _, other := range c.Machines[1:] {
			waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
			err := suite.Eventually(waiting, func() error { return sameReplica(dir, filepath.Join(other.DataDir(), name)) })
			cancel()
			if err != nil {
				unequal = append(unequal, fmt.Sprintf("the replicas of %s on %s and %s: %v", name, c.Machines[0].Name(), other.Name(), err))
			}
		}
	}
	return unequal
}

// TestChaosCluster is a short round on three brokers under a controller of Apache Kafka. OTTLA_CHAOS_SEED and OTTLA_CHAOS_SECONDS choose
// another one.
func TestChaosCluster(t *testing.T) {
	seconds := setting(t, "OTTLA_CHAOS_SECONDS", 35)
	besiege(t, planOf(uint64(setting(t, "OTTLA_CHAOS_SEED", 2)), time.Duration(seconds)*time.Second))
}

// clusterLine is what is kept of one round of the long form.
type clusterLine struct {
	Commit string
	soakLine
	FileSystem            string
	FlushBeforeAck        bool
	Controllers           int
	LeaderKills           int
	UnavailableWorst      float64 // seconds from kill -9 of a leader to the next acknowledgement of all its partitions
	CalmKills             int     // with no other fault under way
	CalmMedian, CalmWorst float64
	SuspendedLeft         []float64 // seconds until a suspended broker was in no ISR
	SuspendedLeftLeaders  []float64 // of the ISRs of partitions that others led and somebody wrote to
	WholeSeconds          float64   // from the end of the last fault
}

// lineOf besieges a cluster.
func lineOf(t *testing.T, p siegePlan) clusterLine {
	t.Helper()
	commit, err := exec.Command("git", "-C", harness.Root(), "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := besiege(t, p)
	line := clusterLine{
		Commit: strings.TrimSpace(string(commit)), soakLine: soakLineOf(t, p.seed, p.duration, r), FileSystem: p.fileSystem,
		FlushBeforeAck: p.flushed, Controllers: p.controllers, WholeSeconds: r.WholeAfter.Seconds(),
	}
	var median, worst time.Duration
	line.LeaderKills, _, worst = r.Unavailable(false)
	line.UnavailableWorst = worst.Seconds()
	line.CalmKills, median, worst = r.Unavailable(true)
	line.CalmMedian, line.CalmWorst = median.Seconds(), worst.Seconds()
	for _, paused := range r.Paused {
		line.SuspendedLeft = append(line.SuspendedLeft, paused.Left.Seconds())
		line.SuspendedLeftLeaders = append(line.SuspendedLeftLeaders, paused.LeftLeaders.Seconds())
	}
	return line
}

// TestChaosClusterSoak goes on where the last one ended: OTTLA_CHAOS_ROUNDS rounds of OTTLA_CHAOS_SECONDS, each appended to
// testdata/soak/chaoscluster.jsonl (of Apache Kafka: testdata/control/) when it is over.
func TestChaosClusterSoak(t *testing.T) {
	duration := time.Duration(setting(t, "OTTLA_CHAOS_SECONDS", 300)) * time.Second
	soak(t, "chaoscluster.jsonl", 1200, func(t *testing.T, seed uint64) any {
		return lineOf(t, planOf(seed, duration))
	})
}

// TestChaosClusterCalm measures for how long nobody acknowledges after kill -9 of a leader, with both kinds of brokers: lines in
// chaosclustercalm.jsonl of testdata/soak/ and testdata/control/.
func TestChaosClusterCalm(t *testing.T) {
	duration := time.Duration(setting(t, "OTTLA_CHAOS_SECONDS", 80)) * time.Second
	for _, kind := range []harness.Kind{harness.Ottla, harness.Kafka} {
		t.Run(serverName(kind), func(t *testing.T) {
			t.Setenv("OTTLA_COMPAT_TARGET", string(kind))
			p := siegePlan{seed: 1, duration: duration, fileSystem: "ext4", controllers: 1, calm: true}
			appendJSON(t, "chaosclustercalm.jsonl", lineOf(t, p))
		})
	}
}
