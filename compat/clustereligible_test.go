//go:build compat

package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/harness"
	"ottla/compat/powercut"
)

// eligible is a topic of one partition on three brokers of one kind, with eligible leader replicas (KIP-966). A fourth broker, which has
// no replica, is asked. The disk of the first one may lose its power.
type eligible struct {
	*placed
	*writer
	disk  *powercut.Disk
	story strings.Builder // what kafka-topics said after each step
}

// TestClusterEligible: who left in order stays eligible, who was killed does not, and so a leader whose power was cut does not come back
// as leader with less than was acknowledged. Brokers of Apache Kafka have gone through the same states.
func TestClusterEligible(t *testing.T) {
	kind := target(t)
	e := startEligible(t, kind)
	t.Run("power", e.power)
	t.Run("kills", e.kills)
	if !t.Failed() { // a story that broke off compares with nothing
		compareControl(t, kind, "eligible.txt", e.story.String())
	}
}

func startEligible(t *testing.T, kind harness.Kind) *eligible {
	t.Helper()
	needRoot(t)
	e := &eligible{disk: newHungDisk(t)}
	c := startCluster(t, harness.ClusterOptions{
		Controllers: 1, Features: append(slices.Clone(harness.LetIn), "eligible.leader.replicas.version=1"), HeapMegabytes: 256,
		Properties: map[string]string{
			"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "60000",
			"broker.session.timeout.ms": "9000", // a busy machine must not look like a broker that was killed: leaders would stay where they went
		},
	})
	e.placed = &placed{Cluster: c}
	started := make(chan error, 4)
	for n := range 4 {
		properties := map[string]string{}
		if n == 0 {
			// The metadata is not on it: Apache Kafka may not start where a power cut has left of its metadata log less than quorum-state says.
			properties["log.dirs"], properties["metadata.log.dir"] = filepath.Join(e.disk.Mount, "data"), filepath.Join(workDir(t), "metadata")
		}
		m, err := c.AddBroker(kind, properties)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close) // before its disk goes
		go func() { started <- m.Start(limited(t, clusterLimit)) }()
	}
	for range 4 {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	e.java = startJava(t, t.TempDir())
	e.placed.client = clusterClient(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	e.writer = &writer{client: e.placed.client, topic: "eligible"}
	e.create(t, "eligible", map[string]string{"min.insync.replicas": "2"}, 1, 2, 3)
	return e
}

var describedPartition = regexp.MustCompile(`Leader: (\S+)\s+Replicas: \S+\s+Isr: (\S*)\s+Elr: (\S*)\s+LastKnownElr: (\S*)`)

// is waits until kafka-topics --describe says of the partition: leader, ISR, ELR and last known ELR.
func (e *eligible) is(t *testing.T, when, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q after %s", want, when), func(ctx context.Context) error {
		result, err := e.java.Tool(ctx, "TopicCommand", "", "--bootstrap-server", e.broker(4).Addr(), "--describe", "--topic", e.topic)
		if err != nil {
			return err
		}
		found := describedPartition.FindStringSubmatch(result.Stdout)
		if found == nil {
			return fmt.Errorf("TopicCommand says %s", result)
		}
		for i := range found[2:] {
			found[2+i] = sortedIDs(found[2+i])
		}
		if got := fmt.Sprintf("leader %s, ISR %s, ELR %s, last %s", found[1], found[2], found[3], found[4]); got != want {
			return errors.New(got)
		}
		return nil
	})
	fmt.Fprintf(&e.story, "%s: %s\n", when, want)
	harness.Progress("%s: after %s: %s", t.Name(), when, want)
}

func sortedIDs(list string) string {
	if list == "" {
		return "-"
	}
	ids := strings.Split(list, ",")
	slices.Sort(ids)
	return strings.Join(ids, ",")
}

// leave stops a broker in order; it leaves behind the epoch of its registration.
func (e *eligible) leave(t *testing.T, id int) {
	t.Helper()
	m := e.broker(id)
	stopMember(t, m)
	text, err := os.ReadFile(filepath.Join(m.DataDir(), ".kafka_cleanshutdown"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`"brokerEpoch":%d`, e.epochOf(t, id))
	if !strings.Contains(string(text), want) {
		t.Errorf("%s has left %s, not %s", m.Name(), text, want)
	}
}

// epochOf is the epoch of a broker's last registration, by the controller's metadata log.
func (e *eligible) epochOf(t *testing.T, id int) (epoch int64) {
	t.Helper()
	for _, record := range metadataRecords(t, e.placed) {
		if record.Type == "REGISTER_BROKER_RECORD" && record.Data.BrokerID == int32(id) {
			epoch = record.Data.BrokerEpoch
		}
	}
	return epoch
}

func (e *eligible) start(t *testing.T, id int) {
	t.Helper()
	m := e.broker(id)
	startMember(t, m)
	if _, err := os.Stat(filepath.Join(m.DataDir(), ".kafka_cleanshutdown")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s runs, and its directory says that it was left in order: %v", m.Name(), err)
	}
}

// refused: nothing is acknowledged while too few are in sync.
func (e *eligible) refused(t *testing.T) {
	t.Helper()
	client := clusterClient(t, e.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
	defer client.Close()
	err := client.ProduceSync(limited(t, clusterLimit), &kgo.Record{Topic: e.topic, Value: []byte("refused")}).FirstErr()
	if !errors.Is(err, kerr.NotEnoughReplicas) {
		t.Errorf("a record was answered %v", err)
	}
}

// power: the last in-sync replica loses its power, and with it what it had acknowledged and not flushed.
func (e *eligible) power(t *testing.T) {
	e.is(t, "the start", "leader 1, ISR 1,2,3, ELR -, last -")
	e.write(t, 300)
	e.leave(t, 3)
	e.is(t, "3 has left", "leader 1, ISR 1,2, ELR -, last -")
	e.write(t, 300)
	e.leave(t, 2)
	e.is(t, "2 has left", "leader 1, ISR 1, ELR 2, last -")
	e.refused(t)
	if err := e.broker(1).Pause(); err != nil { // or it may end by itself, or tell of its disk, before it is killed
		t.Fatal(err)
	}
	if err := e.disk.Cut(false); err != nil {
		t.Fatal(err)
	}
	killMember(t, e.broker(1))
	e.is(t, "the power of 1 was cut", "leader none, ISR -, ELR 1,2, last 1")
	if err := e.disk.Remount(); err != nil {
		t.Fatal(err)
	}
	if e.broker(1).Kind == harness.Ottla {
		if err := powercut.OtherBoot(e.broker(1).DataDir()); err != nil {
			t.Fatal(err)
		}
	}
	e.start(t, 1)
	e.is(t, "1 is back with less", "leader none, ISR -, ELR 2, last 1")
	e.start(t, 2)
	e.is(t, "2 is back", "leader 2, ISR 1,2, ELR -, last -")
	e.start(t, 3)
	e.is(t, "3 is back", "leader 2, ISR 1,2,3, ELR -, last -")
	e.write(t, 300)
	e.expect(t, e.Bootstrap())
	e.prefer(t, e.broker(1), e.topic)
}

// kills: brokers that are killed one after the other. Nothing is lost by that, but nobody can know.
func (e *eligible) kills(t *testing.T) {
	killMember(t, e.broker(3))
	e.is(t, "3 was killed", "leader 1, ISR 1,2, ELR -, last -")
	e.write(t, 300)
	killMember(t, e.broker(2))
	e.is(t, "2 was killed", "leader 1, ISR 1, ELR 2, last -")
	e.refused(t)
	e.start(t, 2)
	e.is(t, "2 is back", "leader 1, ISR 1,2, ELR -, last -")
	e.write(t, 300)
	killMember(t, e.broker(2))
	e.is(t, "2 was killed again", "leader 1, ISR 1, ELR 2, last -")
	killMember(t, e.broker(1))
	e.is(t, "1 was killed", "leader none, ISR -, ELR 1,2, last 1")
	e.start(t, 2)
	e.is(t, "2 is back and 1 is not", "leader none, ISR -, ELR 1, last 1")
	e.start(t, 1)
	e.is(t, "the last leader is back", "leader 1, ISR 1,2, ELR -, last -")
	e.start(t, 3)
	e.is(t, "3 is back", "leader 1, ISR 1,2,3, ELR -, last -")
	e.write(t, 300)
	e.expect(t, e.Bootstrap())
	e.sameReplicas(t, e.topic)
}
