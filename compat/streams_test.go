//go:build compat

package compat

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/driver"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// instance is what an instance of a Streams application says of itself.
type instance struct {
	State    string   `json:"state"`
	Failure  string   `json:"failure"`
	Active   []string `json:"active"`
	Standby  []string `json:"standby"`
	Behind   int64    `json:"behind"` // records that its stores have not taken from their changelogs
	Restored map[string]struct {
		Start   int64 `json:"start"`
		End     int64 `json:"end"`
		Records int64 `json:"records"`
	} `json:"restored"`
}

// streamsApp is one application with its input and output; its instances run in JVMs.
type streamsApp struct {
	t    *appT
	id   string
	args map[string]any
	text text
	out  *tail
}

// newStreams makes the topics of an application that takes a text. Settings are laid over the defaults.
func newStreams(t *appT, id, topology string, x text, settings map[string]any) *streamsApp {
	t.Helper()
	a := &streamsApp{t: t, id: id, text: x, args: map[string]any{
		"bootstrap": t.node.Addr(), "application": id, "topology": topology, "input": id + "-in", "output": id + "-out",
	}}
	maps.Copy(a.args, settings)
	t.topic(id+"-in", textPartitions)
	t.topic(id+"-out", textPartitions)
	a.out = t.tail(id+"-out", a.exactlyOnce())
	return a
}

// start starts an instance in a JVM, with a state directory, and waits until it runs.
func (a *streamsApp) start(in *driver.Process, name, dir string) instance {
	a.t.Helper()
	args := maps.Clone(a.args)
	args["name"], args["state_dir"] = name, dir
	var i instance
	a.t.must(in.Run(a.t.ctx, "streams_start", args, &i), "start "+name)
	if i.State != "RUNNING" && a.args["protocol"] == nil {
		a.t.Fatalf("%s is %s: %s", name, i.State, i.Failure)
	}
	return i
}

// startMortal is start for an instance that will be killed: the others wait until its session is over.
func (a *streamsApp) startMortal(in *driver.Process, name, dir string) {
	a.t.Helper()
	a.args["session_ms"] = mortalSessionMs
	defer delete(a.args, "session_ms")
	a.start(in, name, dir)
}

func (a *streamsApp) state(in *driver.Process, name string) instance {
	a.t.Helper()
	var i instance
	a.t.must(in.Run(a.t.ctx, "streams_state", map[string]any{"name": name}, &i), "state of "+name)
	return i
}

func (a *streamsApp) stop(in *driver.Process, name string) {
	a.t.Helper()
	var closed bool
	a.t.must(in.Run(a.t.ctx, "streams_stop", map[string]any{"name": name}, &closed), "stop "+name)
	if !closed {
		a.t.Errorf("%s did not close in time", name)
	}
}

// left waits until the group has no member: an instance does not wait for the answer to its farewell.
func (a *streamsApp) left() {
	a.t.Helper()
	a.t.eventually("an empty group "+a.id, func() error {
		state, members, err := a.t.ref.Assignment(a.t.ctx, a.id, a.id+"-in")
		if err == nil && state != "Empty" {
			err = fmt.Errorf("the group is %s with %v", state, members)
		}
		return err
	})
}

// feed writes the lines from one number up to another.
func (a *streamsApp) feed(from, to int) {
	a.t.Helper()
	a.t.produce(a.id+"-in", a.text.records(from, to))
}

// counted waits until the output is what the model says.
func (a *streamsApp) counted(exact bool) {
	a.t.Helper()
	a.t.becomes(a.out, func(output []suite.Record) error { return a.text.checkWords(output, exact) })
}

func (a *streamsApp) exactlyOnce() bool { return a.args["guarantee"] == "exactly_once_v2" }

// outputs waits until at least so many records have come out, as a consumer of the application's guarantee sees them: what a
// transaction has written does not count before it is committed, for a kill takes it back.
func (a *streamsApp) outputs(n int) {
	a.t.Helper()
	a.t.eventually("output of "+a.id, func() error {
		records, err := a.out.read(a.t.ctx)
		if err == nil && len(records) < n {
			err = fmt.Errorf("%d records came out of %d", len(records), n)
		}
		return err
	})
}

// wordCount is the number of words in the first n lines.
func (a *streamsApp) wordCount(n int) int {
	total := 0
	for _, line := range a.text[:n] {
		total += len(words(line))
	}
	return total
}

const exactlyOnceV2 = "exactly_once_v2"

// mortalSessionMs is the session of instances that are killed: the others wait until it is over. It is yet so long that a busy machine
// does not throw out those that live, which would do part of their work again.
const mortalSessionMs = 6000

func streamsCases() []appCase {
	return []appCase{
		{name: "streams stateless with a global table", run: streamsStateless},
		{name: "streams word count with a store in memory and windows", run: func(t *appT) {
			streamsCount(t, "count-memory", map[string]any{"store": "memory", "windows": true, "threads": 2})
		}},
		{name: "streams word count with RocksDB, then StreamsResetter", run: streamsReset},
		{name: "streams word count exactly once", run: func(t *appT) {
			streamsCount(t, "count-once", map[string]any{"guarantee": exactlyOnceV2, "windows": true})
		}},
		{name: "streams two instances share and hand over", run: streamsShare},
		{name: "streams group protocol streams is refused", run: streamsProtocol},
	}
}

// streamsCrashCases kill instances; they wait for session timeouts and run beside the others.
func streamsCrashCases() []appCase {
	return []appCase{
		{name: "streams killed, state restored from the changelog", run: func(t *appT) { streamsKilled(t, "killed", nil) }},
		{name: "streams killed, a standby takes over", run: streamsStandby},
		{name: "streams killed, exactly once", run: func(t *appT) {
			streamsKilled(t, "killed-once", map[string]any{"guarantee": exactlyOnceV2, "transaction_ms": 6000})
		}},
	}
}

// streamsRestartCases kill the node under instances that go on.
func streamsRestartCases() []appCase {
	return []appCase{
		{name: "streams while the node is killed and started again", run: func(t *appT) { streamsNodeKilled(t, "bounce", nil) }},
		{name: "streams exactly once while the node is killed and started again", run: func(t *appT) {
			streamsNodeKilled(t, "bounce-once", map[string]any{"guarantee": exactlyOnceV2})
		}},
	}
}

func streamsStateless(t *appT) {
	x := readText(t, 200)
	a := newStreams(t, "stateless", "stateless", x, map[string]any{"names": "stateless-names"})
	t.topic("stateless-names", 2)
	names := map[string]string{}
	var records []suite.Record
	for id := 0; id < len(x); id += 3 {
		key, name := strconv.Itoa(id), "name"+strconv.Itoa(id)
		names[key] = name
		records = append(records, suite.Record{Partition: int32(id % 2), Key: []byte(key), Value: []byte(name)})
	}
	t.produce("stateless-names", records)
	a.feed(0, len(x))
	a.start(t.apps, "stateless-1", t.TempDir())
	t.becomes(a.out, func(output []suite.Record) error { return x.checkStateless(output, names) })
	a.stop(t.apps, "stateless-1")
	if topics, err := t.ref.Topics(t.ctx); err != nil || slices.ContainsFunc(topics, func(name string) bool { return strings.HasPrefix(name, "stateless-case") }) {
		t.Errorf("a stateless application made topics: %v %v", topics, err)
	}
}

// streamsCount counts words, and looks at the topics that the application has made for itself.
func streamsCount(t *appT, id string, settings map[string]any) {
	x := readText(t, 400)
	a := newStreams(t, id, "words", x, settings)
	t.topic(id+"-out-hours", textPartitions)
	a.feed(0, 250)
	a.start(t.apps, id+"-1", t.TempDir())
	a.feed(250, len(x))
	a.counted(true)
	t.becomes(t.tail(id+"-out-hours", a.exactlyOnce()), x.checkHours)
	checkInternalTopics(t, id, true)
	// What has gone through the repartition topic is deleted behind the reader.
	t.eventually("purge of the repartition topic", func() error {
		for p := range int32(textPartitions) {
			start, _, err := t.ref.ListOffset(t.ctx, id+"-by-word-repartition", p, suite.Earliest)
			if err != nil {
				return err
			}
			if start == 0 {
				return fmt.Errorf("partition %d is whole", p)
			}
		}
		return nil
	})
	a.stop(t.apps, id+"-1")
}

// checkInternalTopics compares the configuration of the topics that Streams makes with what its manager of internal topics sets.
func checkInternalTopics(t *appT, id string, windows bool) {
	t.Helper()
	want := map[string]string{
		id + "-by-word-repartition": "cleanup.policy=delete message.timestamp.type=CreateTime retention.ms=-1 segment.bytes=52428800",
		id + "-words-changelog":     "cleanup.policy=compact message.timestamp.type=CreateTime",
	}
	if windows {
		want[id+"-hours-changelog"] = "cleanup.policy=compact,delete message.timestamp.type=CreateTime retention.ms=262800000"
	}
	got := map[string]string{}
	topics, err := t.ref.Topics(t.ctx)
	t.must(err, "list topics")
	for _, name := range topics {
		if strings.HasPrefix(name, id+"-") && (strings.HasSuffix(name, "-repartition") || strings.HasSuffix(name, "-changelog")) {
			got[name], err = ownConfigs(t, name)
			t.must(err, name)
			n, err := t.ref.Partitions(t.ctx, name)
			t.must(err, name)
			if n != textPartitions {
				t.Errorf("%s has %d partitions", name, n)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("internal topics\n%v\nwant\n%v", got, want)
	}
}

// ownConfigs are the configurations that a topic has of its own, sorted.
func ownConfigs(t *appT, topic string) (string, error) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(t.node.Addr()))
	t.must(err, "connect")
	defer client.Close()
	resources, err := kadm.NewClient(client).DescribeTopicConfigs(t.ctx, topic)
	if err == nil {
		err = resources[0].Err
	}
	if err != nil {
		return "", fmt.Errorf("configs of %s: %w", topic, err)
	}
	var own []string
	for _, c := range resources[0].Configs {
		if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own = append(own, c.Key+"="+c.MaybeValue())
		}
	}
	slices.Sort(own)
	return strings.Join(own, " "), nil
}

// streamsReset counts words, resets the application with Apache Kafka's tool, and counts them again from the beginning.
func streamsReset(t *appT) {
	x := readText(t, 200)
	a := newStreams(t, "reset", "words", x, map[string]any{"store": "rocksdb"})
	a.feed(0, len(x))
	a.start(t.apps, "reset-1", t.TempDir())
	a.counted(true)
	checkInternalTopics(t, "reset", false)
	a.stop(t.apps, "reset-1")
	a.left()
	first := t.ends("reset-out", textPartitions)

	dry := resetter(t, "--application-id", "reset", "--input-topics", "reset-in", "--dry-run")
	const reset = "Reset-offsets for input topics [reset-in]\nFollowing input topics offsets will be reset to (for consumer group reset)\n" +
		"Topic: reset-in Partition: 0 Offset: 0\nTopic: reset-in Partition: 1 Offset: 0\n" +
		"Topic: reset-in Partition: 2 Offset: 0\nTopic: reset-in Partition: 3 Offset: 0\nDone.\n" +
		"Deleting inferred internal topics [reset-by-word-repartition, reset-words-changelog]\nDone.\n"
	if want := "----Dry run displays the actions which will be performed when running Streams Reset Tool----\n" + reset; dry != want {
		t.Fatalf("StreamsResetter --dry-run said\n%s\nwant\n%s", dry, want)
	}
	if n, err := t.ref.Partitions(t.ctx, "reset-words-changelog"); err != nil || n != textPartitions {
		t.Errorf("the dry run deleted the changelog: %d %v", n, err)
	}
	done := resetter(t, "--application-id", "reset", "--input-topics", "reset-in")
	if done != reset {
		t.Errorf("StreamsResetter said\n%s\nwant\n%s", done, reset)
	}
	t.eventually("deletion of internal topics", func() error {
		left, err := t.ref.Topics(t.ctx)
		if err == nil && slices.ContainsFunc(left, func(n string) bool { return regexp.MustCompile(`^reset-.*(repartition|changelog)$`).MatchString(n) }) {
			err = fmt.Errorf("topics are %v", left)
		}
		return err
	})

	a.start(t.apps, "reset-2", t.TempDir())
	t.becomes(a.out, func(output []suite.Record) error {
		var again []suite.Record
		for _, r := range output {
			if r.Offset >= first[r.Partition] {
				again = append(again, r)
			}
		}
		return x.checkWords(again, true)
	})
	a.stop(t.apps, "reset-2")
	a.left()
	refused := t.tool("StreamsResetter", "--bootstrap-server", t.node.Addr(), "--application-id", "reset", "--input-topics", "no-such-topic", "--dry-run")
	if refused.Exit != 1 || !strings.Contains(refused.Stdout, "Following input topics are not found, skipping them\nTopic: no-such-topic\n") {
		t.Errorf("StreamsResetter with a topic that is not there: %s", refused)
	}
}

func (t *appT) tool(class string, args ...string) driver.ToolResult {
	t.Helper()
	r, err := t.apps.Tool(t.ctx, class, "", args...)
	t.must(err, class)
	return r
}

func resetter(t *appT, args ...string) string {
	t.Helper()
	r := t.tool("StreamsResetter", append([]string{"--bootstrap-server", t.node.Addr()}, args...)...)
	if r.Exit != 0 {
		t.Fatalf("StreamsResetter %v: %s", args, r)
	}
	// Partitions and topics come in the order of a hash table.
	lines := strings.SplitAfter(r.Stdout, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		if strings.HasPrefix(a, "Topic: ") && strings.HasPrefix(b, "Topic: ") {
			return strings.Compare(a, b)
		}
		return 0
	})
	return regexp.MustCompile(`\[(.*), (.*)\]`).ReplaceAllStringFunc(strings.Join(lines, ""), func(list string) string {
		topics := strings.Split(strings.Trim(list, "[]"), ", ")
		slices.Sort(topics)
		return "[" + strings.Join(topics, ", ") + "]"
	})
}

// streamsShare lets a second instance come while the first works, and the first leave.
func streamsShare(t *appT) {
	x := readText(t, 600)
	a := newStreams(t, "share", "words", x, map[string]any{"store": "rocksdb"})
	a.feed(0, 200)
	a.start(t.apps, "share-1", t.TempDir())
	a.outputs(a.wordCount(100))
	a.start(t.apps, "share-2", t.TempDir())
	a.feed(200, 400)
	// Both have half of the tasks of each of the two parts of the topology, and none is with both.
	t.eventually("tasks of both", func() error {
		one, two := a.state(t.apps, "share-1"), a.state(t.apps, "share-2")
		all := slices.Sorted(slices.Values(slices.Concat(one.Active, two.Active)))
		if fmt.Sprint(all) != "[0_0 0_1 0_2 0_3 1_0 1_1 1_2 1_3]" || len(one.Active) != 4 {
			return fmt.Errorf("tasks %v and %v", one.Active, two.Active)
		}
		return nil
	})
	a.outputs(a.wordCount(400))
	a.stop(t.apps, "share-1")
	a.feed(400, 600)
	a.counted(true)
	if left := a.state(t.apps, "share-2"); len(left.Active) != 8 {
		t.Errorf("the instance that is left has tasks %v", left.Active)
	}
	a.stop(t.apps, "share-2")
}

// streamsProtocol asks for the group protocol of Streams, which a broker without it must refuse so that the client says why.
func streamsProtocol(t *appT) {
	if t.node.Kind() == harness.Kafka {
		r := t.tool("FeatureCommand", "--bootstrap-server", t.node.Addr(), "downgrade", "--feature", "streams.version=0")
		if r.Exit != 0 {
			t.Fatal(r)
		}
	}
	a := newStreams(t, "protocol", "words", readText(t, 4), map[string]any{"protocol": "streams"})
	a.feed(0, 4)
	got := a.start(t.apps, "protocol-1", t.TempDir())
	t.eventually("failure", func() error {
		if got = a.state(t.apps, "protocol-1"); got.State != "ERROR" && got.State != "PENDING_ERROR" || got.Failure == "" {
			return fmt.Errorf("the instance is %s", got.State)
		}
		return nil
	})
	const want = "UnsupportedVersionException: The cluster does not support the STREAMS group protocol"
	if !strings.Contains(got.Failure, want) {
		t.Errorf("the failure is %q, want %q in it", got.Failure, want)
	}
	a.stop(t.apps, "protocol-1")
}

// victim starts a JVM that the cell will kill.
func victim(t *appT) *driver.Process {
	t.Helper()
	p, err := driver.StartApplications(t.TempDir())
	t.must(err, "start a JVM")
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// streamsKilled kills the only instance while it works; another one on an empty disk takes up its state from the changelog.
func streamsKilled(t *appT, id string, settings map[string]any) {
	x := readText(t, 1000)
	a := newStreams(t, id, "words", x, settings)
	first := victim(t)
	a.startMortal(first, id+"-1", t.TempDir())
	feeding := make(chan struct{})
	go func() {
		defer close(feeding)
		for from := 0; from < len(x); from += 50 {
			if _, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: id + "-in", Idempotent: true}, x.records(from, from+50)); err != nil {
				t.Errorf("produce: %v", err)
				return
			}
		}
	}()
	a.outputs(a.wordCount(100))
	t.must(first.Kill(), "kill")
	<-feeding
	second := a.start(t.apps, id+"-2", t.TempDir())
	a.counted(a.exactlyOnce())
	second = a.state(t.apps, id+"-2")
	var restored int64
	for partition, r := range second.Restored {
		if r.Start != 0 || r.Records < 0 || !a.exactlyOnce() && r.Records != r.End-r.Start {
			t.Errorf("%s: %d records were restored from %d to %d", partition, r.Records, r.Start, r.End)
		}
		restored += r.Records
	}
	if restored < 100 {
		t.Errorf("%d records were restored, of %d partitions", restored, len(second.Restored))
	}
	harness.Progress("%s: %d records restored", id, restored)
	a.stop(t.apps, id+"-2")
}

// streamsStandby kills one of two instances that keep standbys for each other: the one that is left has the state already.
func streamsStandby(t *appT) {
	x := readText(t, 600)
	a := newStreams(t, "standby", "words", x, map[string]any{"standbys": 1})
	first := victim(t)
	a.startMortal(first, "standby-1", t.TempDir())
	a.feed(0, 300)
	a.outputs(a.wordCount(300))
	a.start(t.apps, "standby-2", t.TempDir())
	var two instance
	t.eventually("tasks and standbys of both", func() error {
		one := a.state(first, "standby-1")
		two = a.state(t.apps, "standby-2")
		all := slices.Sorted(slices.Values(slices.Concat(one.Active, two.Active)))
		copies := slices.Sorted(slices.Values(slices.Concat(one.Standby, two.Standby)))
		if fmt.Sprint(all) != "[0_0 0_1 0_2 0_3 1_0 1_1 1_2 1_3]" || fmt.Sprint(copies) != "[1_0 1_1 1_2 1_3]" || len(two.Active) != 4 || two.Behind > 0 {
			return fmt.Errorf("tasks %v and %v, standbys %v and %v, %d records behind", one.Active, two.Active, one.Standby, two.Standby, two.Behind)
		}
		return nil
	})
	for _, task := range two.Standby {
		if slices.Contains(two.Active, task) {
			t.Errorf("%s is active and standby in one instance", task)
		}
	}
	t.must(first.Kill(), "kill")
	a.feed(300, 600)
	a.counted(false)
	before := two.Restored
	two = a.state(t.apps, "standby-2")
	for partition, r := range two.Restored {
		if _, known := before[partition]; !known && r.Start == 0 {
			t.Errorf("%s was restored from its beginning, of %d records; the standby should have had them", partition, r.End)
		}
	}
	if len(two.Active) != 8 {
		t.Errorf("the instance that is left has tasks %v", two.Active)
	}
	a.stop(t.apps, "standby-2")
}

// streamsNodeKilled kills the node under two instances and starts it again; they go on, and nothing is lost.
func streamsNodeKilled(t *appT, id string, settings map[string]any) {
	x := readText(t, 600)
	a := newStreams(t, id, "words", x, settings)
	a.start(t.apps, id+"-1", t.TempDir())
	a.start(t.apps, id+"-2", t.TempDir())
	a.feed(0, 300)
	a.outputs(a.wordCount(100))
	t.must(t.node.Kill(), "kill the node")
	_, err := t.node.Start(t.ctx)
	t.must(err, "start the node")
	a.feed(300, 600)
	a.counted(a.exactlyOnce())
	for _, name := range []string{id + "-1", id + "-2"} {
		if got := a.state(t.apps, name); got.Failure != "" || got.State != "RUNNING" && got.State != "REBALANCING" {
			t.Errorf("%s is %s: %s", name, got.State, got.Failure)
		}
		a.stop(t.apps, name)
	}
}
