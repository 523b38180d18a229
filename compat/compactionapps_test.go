//go:build compat

package compat

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// hardCompaction are the settings of topics that are compacted all the time, and whose tombstones go at once.
var hardCompaction = map[string]string{
	"segment.ms": "300", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "0", "min.compaction.lag.ms": "0",
}

// sideBySide are the parts that wait more than they work.
func sideBySide(t *testing.T) {
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		if target(t) == harness.Ottla { // Apache Kafka passes over such a partition until it is started again
			damagedIsTriedAgain(t)
		}
	})
	t.Run("applications", func(t *testing.T) {
		t.Parallel()
		compactedApplications(t)
	})
}

// compactedApplications runs Kafka Streams and Kafka Connect while the topics in which they keep what they know are compacted. Then
// they lose everything else.
func compactedApplications(t *testing.T) {
	properties := maps.Clone(compactionProperties)
	properties["group.min.session.timeout.ms"] = "1000"
	node := startNode(t, "applications", properties)
	defer explain(t, node)
	t.Run("both", func(t *testing.T) {
		for name, run := range map[string]func(*appT){"streams": compactedChangelog, "connect": compactedConnect} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(&appT{cell: &cell{T: t}, ctx: limited(t, applicationLimit), node: node, ref: franz.New(node.Addr())})
			})
		}
	})
}

// shrunk waits until a topic has been compacted and at most a share of what was written to it is left. Before each look, more is
// written, so that segments are rolled.
func (t *appT) shrunk(topic string, partitions int, more func(round int)) {
	t.Helper()
	round := 0
	t.eventually("compaction of "+topic, func() error {
		round++
		more(round)
		checkpoint, err := os.ReadFile(filepath.Join(t.node.DataDir(), "cleaner-offset-checkpoint"))
		if err != nil {
			return err
		}
		compacted := len(regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(topic)+` \d+ [1-9]`).FindAll(checkpoint, -1))
		var written int64
		used := 0
		for _, end := range t.ends(topic, partitions) {
			written += end
			used += int(min(end, 1))
		}
		left, err := t.tail(topic, false).read(t.ctx)
		if err != nil {
			return err
		}
		if used == 0 || compacted < used || int64(len(left))*2 > written {
			return fmt.Errorf("%d of %d partitions were compacted, %d of %d records are left", compacted, used, len(left), written)
		}
		harness.Progress("%s: %d of %d records are left", topic, len(left), written)
		return nil
	})
}

const changedKeys = 40

// compactedChangelog changes and deletes the values of a table. When the changelog of its store has been compacted, the application
// loses its disk, and has the same store again.
func compactedChangelog(t *appT) {
	t.apps = startApplications(t.T)
	a := newStreams(t, "latest", "latest", nil, map[string]any{"topic": hardCompaction})
	random := rand.New(rand.NewPCG(1, 2))
	model, wrote := map[string]string{}, 0
	change := func(n int) {
		var records []suite.Record
		for range n {
			key := random.IntN(changedKeys)
			r := suite.Record{Partition: int32(key % textPartitions), Key: []byte("key " + strconv.Itoa(key)), Timestamp: firstMinute + int64(wrote)*1000}
			if random.IntN(4) > 0 {
				r.Value = fmt.Appendf(nil, "%c %d", 'a'+random.IntN(5), wrote)
				model[string(r.Key)] = string(r.Value)
			} else {
				delete(model, string(r.Key))
			}
			wrote++
			records = append(records, r)
		}
		t.produce("latest-in", records)
	}
	same := func(name string) {
		t.Helper()
		letters := map[string]string{}
		for c := range 5 {
			n := 0
			for _, value := range model {
				if value[0] == byte('a'+c) {
					n++
				}
			}
			letters[string(rune('a'+c))] = strconv.Itoa(n)
		}
		t.eventually("the stores of "+name, func() error {
			for store, want := range map[string]map[string]string{"latest": model, "letters": letters} {
				got := map[string]string{}
				if err := t.apps.Run(t.ctx, "streams_store", map[string]any{"name": name, "store": store}, &got); err != nil {
					return err
				}
				if !maps.Equal(got, want) {
					return fmt.Errorf("%s holds\n%v\nwant\n%v", store, got, want)
				}
			}
			return nil
		})
	}
	change(200)
	a.start(t.apps, "latest-1", t.TempDir())
	for _, topic := range []string{"latest-latest-changelog", "latest-letters-changelog"} {
		partitions, err := t.ref.Partitions(t.ctx, topic)
		t.must(err, topic)
		t.shrunk(topic, partitions, func(int) { change(100) })
	}
	same("latest-1")
	a.stop(t.apps, "latest-1")
	change(50)
	two := a.start(t.apps, "latest-2", t.TempDir())
	same("latest-2")
	var restored int64
	for _, r := range two.Restored {
		restored += max(r.Records, 0)
	}
	if restored == 0 || restored > int64(wrote) {
		t.Errorf("%d records were restored, of %d", restored, wrote)
	}
	change(100)
	same("latest-2")
	a.stop(t.apps, "latest-2")
	harness.Progress("streams: %d values were written, the stores of an empty disk took %d records", wrote, restored)
}

// compactedConnect changes connectors, and makes and removes others. When the worker's topics have been compacted it is killed; the
// one that comes has the connectors as they were, and their offsets.
func compactedConnect(t *appT) {
	settings := map[string]string{}
	for _, storage := range []string{"config", "offset", "status"} {
		for key, value := range hardCompaction {
			settings[storage+".storage."+key] = value
		}
	}
	c := newConnect(t, "compact", settings)
	w := c.worker("compact-1")
	t.topic("pipe-c", 1)
	p := c.pipe("pipe-c")
	p.write(100)
	p.create(w, nil)
	p.arrived(100)
	change := func(round int) {
		t.Helper()
		c.create(w, "pipe-c-sink", map[string]string{
			"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": p.sink, "topics": p.topic,
			"errors.retry.timeout": strconv.Itoa(round),
		})
		gone := fmt.Sprintf("gone-%d", round)
		c.create(w, gone, map[string]string{
			"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": p.source + "-none", "topic": "nothing",
		})
		t.eventually("removal of "+gone, func() error { return c.rest(w, http.MethodDelete, "/connectors/"+gone, nil, nil) })
		p.write(5)
	}
	rounds := 0
	for _, topic := range []struct {
		name       string
		partitions int
	}{{"compact-configs", 1}, {"compact-status", 3}} {
		t.shrunk(topic.name, topic.partitions, func(int) { rounds++; change(rounds) })
	}
	names := []string{"pipe-c-source", "pipe-c-sink"}
	committed := func(w *connectWorker) {
		t.Helper()
		size, err := os.Stat(p.source)
		t.must(err, "source file")
		c.committed(w, "pipe-c-source", "position", int(size.Size()))
		c.committed(w, "pipe-c-sink", "kafka_offset", len(p.written))
	}
	c.placed(names, w)
	p.arrived(100)
	committed(w)
	t.must(w.Signal(syscall.SIGKILL), "kill")
	w.Wait()
	p.write(50)
	c.start(w)
	c.placed(names, w) // it answers before it has read its topics
	var is []string
	t.must(c.rest(w, http.MethodGet, "/connectors", nil, &is), "list connectors")
	if len(is) != len(names) {
		t.Errorf("connectors are %v", is)
	}
	config := map[string]string{}
	t.must(c.rest(w, http.MethodGet, "/connectors/pipe-c-sink/config", nil, &config), "config of the sink")
	if config["errors.retry.timeout"] != strconv.Itoa(rounds) {
		t.Errorf("the sink's config is %v, want %d", config, rounds)
	}
	p.arrived(len(p.written)) // nothing comes twice: all offsets were committed
	committed(w)
	harness.Progress("connect: connectors and offsets are as before after %d rounds of changes", rounds)
}
