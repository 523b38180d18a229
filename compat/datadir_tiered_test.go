//go:build compat

package compat

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/datadir"
	"ottla/compat/harness"
)

// tiered are the properties of a node with remote storage, which is a folder (java/RemoteFiles.java).
var tiered = map[string]string{
	"remote.log.storage.system.enable":                         "true",
	"remote.log.storage.manager.class.name":                    "RemoteFiles",
	"remote.log.metadata.manager.listener.name":                "PLAINTEXT",
	"remote.log.manager.task.interval.ms":                      "500",
	"rlmm.config.remote.log.metadata.topic.num.partitions":     "1",
	"rlmm.config.remote.log.metadata.topic.replication.factor": "1",
}

// handOverTiered: a directory with a topic in remote storage is refused, by name, and Apache Kafka has all of it afterwards.
func handOverTiered(t *testing.T) {
	if target(t) == harness.Kafka {
		return // the others make the record
	}
	const topic, records = "tiered", 100
	dir := workDir(t)
	properties := map[string]string{
		"log.initial.task.delay.ms": "500", "log.retention.check.interval.ms": "500", "rsm.config.folder": filepath.Join(dir, "remote"),
	}
	for key, value := range tiered {
		properties[key] = value
	}
	base, err := harness.NewNode(harness.Options{Kind: harness.Kafka, Name: "base", Dir: dir, Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.properties")
	log := filepath.Join(dir, "kafka.log")
	h := &handedOver{T: t, base: base, data: base.DataDir(), dirs: []string{base.DataDir()}, log: log, jvm: startJVM(t, harness.KafkaVersion, log)}
	all := func(when string) {
		t.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(base.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for ctx := limited(t, 2*time.Minute); ; {
			// After its start Apache Kafka first has to learn what lies in remote storage, and says UNKNOWN_SERVER_ERROR meanwhile.
			read, err := datadir.Read(ctx, client, topic, 0, 0, records, kgo.ReadUncommitted())
			if err == nil && len(read) == records {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s %d of %d records can be read: %v", when, len(read), records, err)
			case <-time.After(200 * time.Millisecond):
			}
		}
		if first := h.do("earliest", base.Addr(), topic); first != "0" {
			t.Errorf("%s the topic begins at offset %s", when, first)
		}
	}
	h.do("format", file, "-t", "Yh4XFBD2Rb-8s4xkUUkKcw", "--standalone")
	h.do("start", file)
	h.do("tier", base.Addr(), topic)
	all("before")
	h.do("stop")

	editFile(t, file, `(?m)^(remote|rsm|rlmm)\.`, "#$0") // a node without remote storage, which Apache Kafka starts
	before := h.listing()
	out, err := exec.Command(harness.OttlaBinary(), "adopt", "-c", file).CombinedOutput()
	for _, named := range []string{
		"1 topic with segments in remote storage: tiered", "__remote_log_metadata, which says what lies in remote storage",
		"NOT safe to start", "1 topic has segments in remote storage (remote.storage.enable), which is not served",
	} {
		if !strings.Contains(string(out), named) {
			t.Errorf("ottla adopt does not say %q: %v\n%s", named, err, out)
		}
	}
	if after := h.listing(); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Error("ottla adopt has changed the directory")
	}
	out, err = exec.CommandContext(cellContext(t), harness.OttlaBinary(), "serve", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "remote.storage.enable") {
		t.Errorf("ottla serve: %v\n%s", err, out)
	}
	editFile(t, file, `(?m)^#(remote|rsm|rlmm)\.`, "$1.")
	h.do("start", file)
	all("afterwards")
	h.do("stop")
}
