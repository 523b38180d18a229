//go:build compat

package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/powercut"
)

// disked is a cluster of three brokers with two log directories each, under a controller of Apache Kafka. Those of the first broker are
// on disks of their own.
type disked struct {
	*placed
	load    *placedLoad
	disks   [2]*powercut.Disk
	victim  *harness.Member
	topics  []string
	replica map[string][]int32 // of each topic's only partition
}

// TestClusterDirectories: replicas are placed, move between directories under load, and of one broker a directory fails, hangs, is
// missing at a start, comes back, comes back empty, and all fail: writers with acks=all go on, and nothing that was acknowledged is lost.
func TestClusterDirectories(t *testing.T) {
	kind := target(t)
	for _, of := range []struct {
		name    string
		partner harness.Kind
	}{{"alone", kind}, {"with-kafka", harness.Kafka}} {
		t.Run(of.name, func(t *testing.T) {
			d := startDisked(t, kind, kind, of.partner)
			d.placement(t)
			d.moves(t)
			d.fails(t)
			d.hangs(t)
			d.comesBackEmpty(t)
			d.lastGoes(t)
			d.judge(t)
		})
	}
}

func startDisked(t *testing.T, kinds ...harness.Kind) *disked {
	t.Helper()
	needRoot(t)
	d := &disked{replica: map[string][]int32{}}
	c := startCluster(t, harness.ClusterOptions{Controllers: 1, Features: harness.LetIn, Properties: map[string]string{
		"min.insync.replicas": "2", "replica.lag.time.max.ms": "5000", "auto.leader.rebalance.enable": "false",
		// A slow machine must not look like a broker that is gone: its directories are what is looked at.
		"broker.session.timeout.ms": "9000", "log.flush.offset.checkpoint.interval.ms": "1000",
		"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2",
	}})
	d.placed = &placed{Cluster: c}
	for n, kind := range kinds {
		dirs := []string{filepath.Join(workDir(t), "first"), filepath.Join(workDir(t), "second")}
		properties := map[string]string{}
		if n == 0 {
			for i := range dirs {
				d.disks[i] = newHungDisk(t)
				dirs[i] = filepath.Join(d.disks[i].Mount, "data")
			}
			properties["metadata.log.dir"] = filepath.Join(workDir(t), "metadata")
			if kind == harness.Ottla {
				properties["ottla.disk.timeout.ms"] = fmt.Sprint(hungTimeout.Milliseconds())
			}
		}
		properties["log.dirs"] = strings.Join(dirs, ",")
		m, err := c.AddBroker(kind, properties)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close) // before its disks go
		startMember(t, m)
	}
	d.victim = c.Brokers[0]
	d.java = startJava(t, t.TempDir())
	d.client = clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	for n := range 6 {
		d.make(t, []int32{1, 2, 3}, n)
	}
	return d
}

// make creates a topic of one partition.
func (d *disked) make(t *testing.T, replicas []int32, n int) {
	t.Helper()
	name := fmt.Sprintf("laid-%d", n)
	d.create(t, name, map[string]string{"segment.bytes": "1048576"}, replicas...)
	d.topics, d.replica[name] = append(d.topics, name), replicas
}

// write has a writer of its own go on with each topic that has none.
func (d *disked) write(t *testing.T) {
	t.Helper()
	if d.load == nil {
		l := &placedLoad{ref: franz.New(d.servers()), servers: d.Bootstrap(), stop: make(chan struct{})}
		l.ctx, l.cancel = context.WithCancel(context.Background())
		t.Cleanup(func() {
			l.cancel()
			l.running.Wait()
		})
		d.load = l
	}
	for _, name := range d.topics[len(d.load.all):] {
		topic := &placedTopic{name: name, writer: d.load.ref, codec: "none"}
		d.load.all = append(d.load.all, topic)
		d.load.run(t, name, func() error { return d.load.stream(topic) })
	}
	d.load.goesOn(t)
}

// assigned is what the metadata log says of directories.
type assigned struct {
	names       map[string]string           // topic id → name
	directories map[string]map[int32]string // topic → broker → directory, of partition 0
	replicas    map[string][]int32          // topic
	brokers     map[int32][]string          // the directories that work
}

// metadataRecord is what these tests read of a record of the metadata.
type metadataRecord struct {
	Type string
	Data struct {
		Name, TopicID         string
		PartitionID, BrokerID int32
		BrokerEpoch           int64
		Replicas              []int32
		Directories, LogDirs  []string
	}
}

var payload = regexp.MustCompile(`(?m)payload: (\{.*\})$`)

// metadataRecords reads the controller's metadata log by DumpLogSegments.
func metadataRecords(t *testing.T, p *placed) (records []metadataRecord) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(metadataDir(p.Controllers[0]), "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no metadata log: %v", err)
	}
	result, err := p.java.Tool(limited(t, clusterLimit), "DumpLogSegments", "", "--cluster-metadata-decoder", "--files", strings.Join(files, ","))
	if err != nil || result.Exit != 0 {
		t.Fatalf("DumpLogSegments: %v, %s", err, result)
	}
	for _, match := range payload.FindAllStringSubmatch(result.Stdout, -1) {
		var record metadataRecord
		if err := json.Unmarshal([]byte(match[1]), &record); err != nil {
			t.Fatalf("%v in %s", err, match[1])
		}
		records = append(records, record)
	}
	return records
}

// assignments replays what the metadata log says of directories.
func (d *disked) assignments(t *testing.T) *assigned {
	t.Helper()
	a := &assigned{names: map[string]string{}, directories: map[string]map[int32]string{}, replicas: map[string][]int32{}, brokers: map[int32][]string{}}
	for _, record := range metadataRecords(t, d.placed) {
		a.take(record)
	}
	return a
}

func (a *assigned) take(record metadataRecord) {
	data := record.Data
	switch record.Type {
	case "TOPIC_RECORD":
		a.names[data.TopicID] = data.Name
	case "REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD":
		if len(data.LogDirs) > 0 {
			a.brokers[data.BrokerID] = data.LogDirs
		}
	case "PARTITION_RECORD", "PARTITION_CHANGE_RECORD":
		name := a.names[data.TopicID]
		if data.PartitionID != 0 {
			return
		}
		if len(data.Replicas) > 0 {
			a.replicas[name] = data.Replicas
		}
		for i, dir := range data.Directories {
			if a.directories[name] == nil {
				a.directories[name] = map[int32]string{}
			}
			a.directories[name][a.replicas[name][i]] = dir
		}
	}
}

var directoryID = regexp.MustCompile(`(?m)^directory\.id=(\S+)$`)

// idOf reads the id of a log directory.
func idOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	match := directoryID.FindSubmatch(text)
	if match == nil {
		t.Fatalf("no directory id in %s", text)
	}
	return string(match[1])
}

// agree waits until the metadata has each replica in the directory where its files are, and each broker with its directories.
func (d *disked) agree(t *testing.T, brokers ...*harness.Member) {
	t.Helper()
	eventually(t, "the metadata to say in which directories the replicas are", func(context.Context) error {
		said := d.assignments(t)
		for _, m := range brokers {
			var ids []string
			for _, dir := range m.Directories() {
				ids = append(ids, idOf(t, dir))
			}
			if got := said.brokers[int32(m.ID)]; !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(got))) {
				return fmt.Errorf("%s is registered with %v, its directories are %v", m.Name(), got, ids)
			}
			for _, topic := range d.topics {
				at := filepath.Dir(m.ReplicaDir(topic + "-0"))
				if got := said.directories[topic][int32(m.ID)]; got != idOf(t, at) {
					return fmt.Errorf("%s of %s is assigned to %s and lies in %s", topic, m.Name(), got, at)
				}
			}
		}
		return nil
	})
}

// counts gives how many of the topics lie in each directory of a broker.
func (d *disked) counts(m *harness.Member) map[string]int {
	found := map[string]int{}
	for _, topic := range d.topics {
		found[filepath.Dir(m.ReplicaDir(topic+"-0"))]++
	}
	return found
}

// placement: new partitions are spread over the directories, and the metadata knows where they are.
func (d *disked) placement(t *testing.T) {
	d.write(t)
	d.agree(t, d.Brokers...)
	for _, m := range d.Brokers {
		if found := d.counts(m); len(found) != 2 || found[m.Directories()[0]] != 3 {
			t.Errorf("%s has its replicas in %v", m.Name(), found)
		}
	}
}

// moves: every replica of the first broker goes to its other directory while it is written to, as an operator has it.
func (d *disked) moves(t *testing.T) {
	tools := &toolT{cell: &cell{T: t}, ctx: limited(t, clusterLimit), java: d.java, dir: t.TempDir()}
	dirs := d.victim.Directories()
	var plan []map[string]any
	want := map[string]string{}
	for _, topic := range d.topics {
		to := dirs[0]
		if d.victim.ReplicaDir(topic+"-0") == filepath.Join(dirs[0], topic+"-0") {
			to = dirs[1]
		}
		want[topic] = to
		plan = append(plan, map[string]any{"topic": topic, "partition": 0, "replicas": d.replica[topic], "log_dirs": []string{to, "any", "any"}})
	}
	file := tools.jsonFile("plan", map[string]any{"version": 1, "partitions": plan})
	run := func(flag string) driver.ToolResult {
		return tools.runWith(reassignCommand, "", "--bootstrap-server", d.servers(), flag, "--reassignment-json-file", file)
	}
	if done := run("--execute"); done.Exit != 0 {
		t.Fatal(done)
	}
	d.load.goesOn(t)
	said := ""
	eventually(t, "the moves to end", func(context.Context) error {
		if said = run("--verify").Stdout; strings.Count(said, "completed successfully") < len(d.topics) {
			return errors.New(said)
		}
		return nil
	})
	for topic, dir := range want {
		if at := filepath.Dir(d.victim.ReplicaDir(topic + "-0")); at != dir {
			t.Errorf("%s lies in %s, it was to move to %s", topic, at, dir)
		}
	}
	d.agree(t, d.Brokers...)
	d.load.goesOn(t)
}

// inDirectory lists the topics that have their replica of the first broker in its directory n.
func (d *disked) inDirectory(n int) map[string]bool {
	in := map[string]bool{}
	for _, topic := range d.topics {
		in[topic] = d.victim.ReplicaDir(topic+"-0") == filepath.Join(d.victim.Directories()[n], topic+"-0")
	}
	return in
}

// isOffline waits until the cluster knows that a directory of the first broker does not work: others lead what lies there. What lies in
// the other one is as it was.
func (d *disked) isOffline(t *testing.T, in map[string]bool) {
	t.Helper()
	eventually(t, "the cluster to know of the directory", func(ctx context.Context) error {
		for topic, gone := range in {
			found, err := metadataOf(ctx, d.at(d.broker(2)), topic)
			if err = errors.Join(err, kerr.ErrorForCode(found.ErrorCode)); err != nil {
				return err
			}
			p := found.Partitions[0]
			switch {
			case gone && (p.Leader < 2 || slices.Contains(p.ISR, 1) || len(p.ISR) != 2 || !slices.Equal(p.OfflineReplicas, []int32{1})),
				!gone && (p.Leader < 1 || len(p.ISR) != 3 || len(p.OfflineReplicas) != 0):
				return fmt.Errorf("%s, in the directory: %v, has leader %d, ISR %v, offline %v", topic, gone, p.Leader, p.ISR, p.OfflineReplicas)
			}
		}
		return nil
	})
}

// described waits until the broker itself says which of its directories do not work.
func (d *disked) described(t *testing.T, offline int) {
	t.Helper()
	eventually(t, "the broker to say which directory does not work", func(ctx context.Context) error {
		found, err := kadm.NewClient(d.client).DescribeBrokerLogDirs(ctx, int32(d.victim.ID), nil)
		if err != nil {
			return err
		}
		for n, dir := range d.victim.Directories() {
			if is := errors.Is(found[dir].Err, kerr.KafkaStorageError); is != (n == offline) {
				return fmt.Errorf("%s: %w", dir, found[dir].Err)
			}
		}
		return nil
	})
}

// fails: a directory fails. A topic that is made meanwhile is placed in the other one. A start on it does without it, and one after a
// repair has everything.
func (d *disked) fails(t *testing.T) {
	in := d.inDirectory(1)
	if err := d.disks[1].Cut(false); err != nil {
		t.Fatal(err)
	}
	d.isOffline(t, in)
	d.described(t, 1)
	d.load.goesOn(t)
	d.make(t, []int32{1, 2, 3}, len(d.topics))
	d.write(t)
	in[d.topics[len(d.topics)-1]] = false
	d.isOffline(t, in)

	killMember(t, d.victim)
	startMember(t, d.victim)
	d.isOffline(t, in)
	d.described(t, 1)
	d.load.goesOn(t)

	stopMember(t, d.victim)
	d.repair(t, 1)
	startMember(t, d.victim)
	d.whole(t)
}

// repair brings a disk back, as after a power cut.
func (d *disked) repair(t *testing.T, n int) {
	t.Helper()
	if err := d.disks[n].Remount(); err != nil {
		t.Fatal(err)
	}
}

// whole waits until all replicas are in sync, and lie where the metadata says.
func (d *disked) whole(t *testing.T) {
	t.Helper()
	for _, topic := range d.topics {
		inSync(t, d.client, topic, 3)
	}
	d.agree(t, d.Brokers...)
	for _, topic := range d.topics {
		d.prefer(t, d.victim, topic)
	}
	d.load.goesOn(t)
	harness.Progress("%s: all replicas are in sync again, in %v", t.Name(), d.counts(d.victim))
}

// prefer makes the broker whose replica comes first the leader of a topic's only partition, once it is in sync.
func (p *placed) prefer(t *testing.T, broker *harness.Member, topic string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s to lead %s", broker.Name(), topic), func(ctx context.Context) error {
		found, err := metadataOf(ctx, p.client, topic)
		if err = cmp.Or(err, kerr.ErrorForCode(found.ErrorCode)); err != nil || found.Partitions[0].Leader == int32(broker.ID) {
			return err
		}
		elections, election := kmsg.NewPtrElectLeadersRequest(), kmsg.NewElectLeadersRequestTopic()
		election.Topic, election.Partitions = topic, []int32{0}
		elections.Topics = append(elections.Topics, election)
		_, err = elections.RequestWith(ctx, p.client)
		return cmp.Or(err, fmt.Errorf("it is led by %d", found.Partitions[0].Leader))
	})
}

// hangs: every write and fsync of a directory hangs, until it is thawed after the broker was killed. Apache Kafka's broker waits for it.
func (d *disked) hangs(t *testing.T) {
	if d.victim.Kind == harness.Kafka {
		return
	}
	in := d.inDirectory(1)
	thaw, err := d.disks[1].Freeze()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = thaw() }) // before the broker is closed; it was thawed long ago if all went well
	d.isOffline(t, in)
	d.described(t, 1)
	d.load.goesOn(t)
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	killMember(t, d.victim)
	startMember(t, d.victim)
	d.whole(t)
}

// comesBackEmpty: a directory is emptied and formatted while the broker does not run, as where a disk was exchanged.
func (d *disked) comesBackEmpty(t *testing.T) {
	stopMember(t, d.victim)
	dir := d.victim.Directories()[1]
	before := idOf(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.victim.Format("--ignore-formatted"); err != nil {
		t.Fatal(err)
	}
	if idOf(t, dir) == before {
		t.Fatalf("%s has its former id", dir)
	}
	startMember(t, d.victim)
	d.whole(t)
}

// lastGoes: a node without any log directory that works ends, and says so.
func (d *disked) lastGoes(t *testing.T) {
	for n := range d.disks {
		if err := d.disks[n].Cut(false); err != nil {
			t.Fatal(err)
		}
	}
	if d.victim.Kind == harness.Ottla {
		endsSaying(t, d.victim, "all log directories failed")
	} else {
		endsSaying(t, d.victim)
	}
	d.load.goesOn(t)
	for n := range d.disks {
		d.repair(t, n)
	}
	startMember(t, d.victim)
	d.whole(t)
}

// judge: what was acknowledged is where it was acknowledged, the replicas are equal, and the files have no fault.
func (d *disked) judge(t *testing.T) {
	d.load.finish(t)
	for _, topic := range d.topics {
		d.sameReplicas(t, topic)
	}
	for _, m := range d.Brokers {
		stopMember(t, m)
		noFaults(t, m.Name()+" has left", m.Directories()...)
	}
}
