//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/scenario"
)

// TestClusterMove moves a cluster of three brokers of Apache Kafka to Ottla and back, under load: broker by broker on the
// directories, which are left cleanly and by kill -9, and by reassignment. Nothing is lost or there twice, and all clients go on.
func TestClusterMove(t *testing.T) {
	moveCluster(t, 0)
}

// moving is a cluster that is moved.
type moving struct {
	*testing.T
	c        *harness.Cluster
	admin    *kadm.Client
	operator *operator
	load     *moveLoad
	calm     time.Duration             // before each step; 0: nothing is measured
	logged   map[*harness.Member]int64 // how long the log was when Apache Kafka took the directory over
	steps    []moveStep
}

// moveStep is what is measured of a step: records acknowledged each second before it and, for as long, from its start on; and how long
// it took until all replicas were in sync again.
type moveStep struct {
	name           string
	before, during float64
	took           time.Duration
}

// moveCluster does all steps.
func moveCluster(t *testing.T, calm time.Duration) *moving {
	m := startMoving(t, calm)
	one, two, three := m.c.Brokers[0], m.c.Brokers[1], m.c.Brokers[2]
	m.operator.run("bin/kafka-features.sh --bootstrap-server HOST:9092 downgrade --feature share.version=0 --feature streams.version=0")

	// To Ottla, on the directories.
	m.replace(one, harness.Ottla, (*harness.Member).Kill)
	m.replace(two, harness.Ottla, stopped)
	m.replace(three, harness.Ottla, stopped)
	// A fourth takes its share, and the third goes.
	four := m.join(harness.Ottla, "1,2,3,4")
	m.leave(three, "1,2,4")
	// Back, by reassignment and on the directories.
	m.join(harness.Kafka, "1,2,4,5")
	m.leave(four, "1,2,5")
	m.replace(one, harness.Kafka, stopped)
	m.replace(two, harness.Kafka, (*harness.Member).Kill)

	m.load.finish(t)
	m.equalReplicas()
	for _, b := range []*harness.Member{one, two} {
		m.noWarning(b)
	}
	m.operator.allRan()
	return m
}

// stopped ends a broker as an operator does.
func stopped(b *harness.Member) error {
	code, err := b.Stop()
	if err == nil && code != 0 && code != 143 {
		err = fmt.Errorf("%s ended with %d\n%s", b.Name(), code, b.LogTail(30))
	}
	return err
}

// startMoving starts three brokers of Apache Kafka, with the features that it has by itself, and the load.
func startMoving(t *testing.T, calm time.Duration) *moving {
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Properties: map[string]string{
		"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2",
		"min.insync.replicas": "2", "broker.session.timeout.ms": "6000",
		"share.coordinator.state.topic.replication.factor": "3", "share.coordinator.state.topic.min.isr": "2",
	}})
	m := &moving{T: t, c: c, calm: calm, logged: map[*harness.Member]int64{}}
	started := make(chan error, 3)
	for i := range 3 {
		var properties map[string]string
		if i == 1 {
			properties = map[string]string{"log.dirs": t.TempDir() + "," + t.TempDir()}
		}
		b, err := c.AddBroker(harness.Kafka, properties)
		if err != nil {
			t.Fatal(err)
		}
		go func() { started <- b.Start(limited(t, clusterLimit)) }()
	}
	java := startJava(t, t.TempDir())
	for range 3 {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	servers := strings.Join(c.Bootstrap(), ",")
	client := clusterClient(t, c.Bootstrap())
	m.admin = kadm.NewClient(client)
	ref := franz.New(servers)
	m.load = startMoveLoad(t, client, ref, ref, driver.NewClient(java, scenario.Java, servers))
	m.operator = newOperator(t, java, servers, append(m.load.topics(), "__consumer_offsets", "__transaction_state"))
	m.load.goesOn(t)
	return m
}

// step measures what goes on during a change, which ends when every replica is in sync.
func (m *moving) step(name string, change func()) {
	m.Helper()
	s := moveStep{name: name}
	if m.calm > 0 {
		before, began := m.load.acked.Load(), time.Now()
		<-time.After(m.calm)
		s.before = float64(m.load.acked.Load()-before) / time.Since(began).Seconds()
	}
	before, began := m.load.acked.Load(), time.Now()
	change()
	m.whole()
	s.took = time.Since(began)
	<-time.After(m.calm - s.took)
	s.during = float64(m.load.acked.Load()-before) / time.Since(began).Seconds()
	m.load.goesOn(m.T)
	m.steps = append(m.steps, s)
	harness.Progress("%s: %.1f s, %.0f records/s from its start on", s.name, s.took.Seconds(), s.during)
}

// whole waits until every partition has all its replicas in sync, and has the operator look.
func (m *moving) whole() {
	m.Helper()
	eventually(m.T, "all replicas in sync", func(ctx context.Context) error {
		found, err := m.admin.ListTopicsWithInternal(ctx)
		if err != nil {
			return err
		}
		behind := found.Error()
		found.EachPartition(func(p kadm.PartitionDetail) {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				behind = errors.Join(behind, fmt.Errorf("%s-%d has leader %d, replicas %v, in sync %v", p.Topic, p.Partition, p.Leader, p.Replicas, p.ISR))
			}
		})
		return behind
	})
	if said := m.operator.run("bin/kafka-topics.sh --bootstrap-server HOST:9092 --describe --under-replicated-partitions"); strings.TrimSpace(said) != "" {
		m.Errorf("under-replicated partitions:\n%s", said)
	}
}

// replace ends a broker and lets one of the other kind go on with its directories and properties.
func (m *moving) replace(b *harness.Member, to harness.Kind, end func(*harness.Member) error) {
	m.Helper()
	from := b.Kind
	m.operator.did("bin/kafka-server-stop.sh")
	m.step(fmt.Sprintf("broker %d: %s on the directory of %s", b.ID, serverName(to), serverName(from)), func() {
		if err := end(b); err != nil {
			m.Fatal(err)
		}
		m.checkDirs(b)
		properties := filepath.Join(filepath.Dir(b.LogPath()), "server.properties")
		if to == harness.Ottla {
			m.adopt(properties)
			m.operator.did("ottla serve config/server.properties")
		} else if info, err := os.Stat(b.LogPath()); err != nil {
			m.Fatal(err)
		} else {
			m.operator.did("bin/kafka-server-start.sh config/server.properties")
			m.logged[b] = info.Size()
		}
		b.Kind = to
		startMember(m.T, b)
	})
}

// checkDirs judges what a broker has left.
func (m *moving) checkDirs(b *harness.Member) {
	m.Helper()
	noFaults(m.T, fmt.Sprintf("broker %d (%s) has left", b.ID, serverName(b.Kind)), b.Directories()...)
	if m.calm > 0 || b.Kind == harness.Kafka {
		return // what Ottla has left is looked at, and not while anything is measured: that takes minutes of long logs
	}
	dumpEveryFile(m.T, m.operator.java, b.Kind, b.Directories()...)
}

// adopt has the operator examine a directory.
func (m *moving) adopt(properties string) {
	m.Helper()
	m.operator.did("ottla adopt --dry-run -c config/server.properties")
	out, err := exec.Command(harness.OttlaBinary(), "adopt", "--dry-run", "-c", properties).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nsafe to start\n") {
		m.Errorf("ottla adopt: %v\n%s", err, out)
	}
}

// join adds a broker and gives it its share, as a leader too.
func (m *moving) join(kind harness.Kind, all string) (joined *harness.Member) {
	m.Helper()
	m.step(fmt.Sprintf("broker %d, %s, is added and takes its share", len(m.c.Brokers)+1, serverName(kind)), func() {
		joined = addBroker(m.T, m.c, kind, nil)
		m.operator.reassign(all)
		m.operator.run("bin/kafka-leader-election.sh --bootstrap-server HOST:9092 --election-type preferred --all-topic-partitions")
	})
	eventually(m.T, fmt.Sprintf("a share for broker %d", joined.ID), func(context.Context) error {
		if replicas, led := m.share(joined); replicas == 0 || led == 0 {
			return fmt.Errorf("it has %d and leads %d", replicas, led)
		}
		return nil
	})
	return joined
}

// leave takes everything from a broker, stops it and forgets it.
func (m *moving) leave(b *harness.Member, rest string) {
	m.Helper()
	m.step(fmt.Sprintf("broker %d, %s, is drained and goes", b.ID, serverName(b.Kind)), func() {
		m.operator.reassign(rest)
		eventually(m.T, fmt.Sprintf("broker %d without partitions", b.ID), func(context.Context) error {
			if replicas, led := m.share(b); replicas > 0 || led > 0 { // who is asked may have the metadata of before
				return fmt.Errorf("it has %d and leads %d", replicas, led)
			}
			return nil
		})
		stopMember(m.T, b)
		m.operator.unregister(b.ID)
	})
	noFaults(m.T, fmt.Sprintf("broker %d, drained, has left", b.ID), b.Directories()...)
}

// share counts the replicas of a broker, and those that it leads.
func (m *moving) share(b *harness.Member) (replicas, led int) {
	m.Helper()
	found, err := m.admin.ListTopicsWithInternal(limited(m.T, clusterLimit))
	if err != nil {
		m.Fatal(err)
	}
	found.EachPartition(func(p kadm.PartitionDetail) {
		if slices.Contains(p.Replicas, int32(b.ID)) {
			replicas++
		}
		if p.Leader == int32(b.ID) {
			led++
		}
	})
	return replicas, led
}

// equalReplicas compares the bytes of all replicas.
func (m *moving) equalReplicas() {
	m.Helper()
	found, err := m.admin.ListTopicsWithInternal(limited(m.T, clusterLimit))
	if err != nil {
		m.Fatal(err)
	}
	found.EachPartition(func(p kadm.PartitionDetail) {
		name := fmt.Sprintf("%s-%d", p.Topic, p.Partition)
		eventually(m.T, "equal replicas of "+name, func(context.Context) (err error) {
			for _, other := range p.Replicas[1:] {
				err = errors.Join(err, sameReplica(m.replica(p.Replicas[0], name), m.replica(other, name)))
			}
			return err
		})
	})
}

// replica is where a broker has a partition.
func (m *moving) replica(broker int32, partition string) string {
	return m.c.Brokers[broker-1].ReplicaDir(partition)
}

// byStorage are the warnings of those parts of Apache Kafka that read and write files; others warn of brokers that come and go.
var byStorage = regexp.MustCompile(`\((org\.apache\.kafka\.(storage|server\.log|metadata\.properties|coordinator)|kafka\.(log|cluster|coordinator))\.`)

// notOfStorage is what the coordinator of groups says when it cannot write because too few replicas are in sync, as after a kill.
var notOfStorage = regexp.MustCompile(`Failed to write empty metadata for group \S+: The coordinator is not available`)

// noWarning judges what Apache Kafka has said of the files since it took them over.
func (m *moving) noWarning(b *harness.Member) {
	m.Helper()
	text, err := os.ReadFile(b.LogPath())
	if err != nil {
		m.Fatal(err)
	}
	for _, line := range logTrouble.FindAllString(string(text[m.logged[b]:]), -1) {
		if byStorage.MatchString(line) && !notOfStorage.MatchString(line) {
			m.Errorf("Apache Kafka on what Ottla has left: %s", line)
		}
	}
}
