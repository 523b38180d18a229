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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/datadir"
	"ottla/compat/harness"
)

// TestHandover has directories of every version of Apache Kafka, stopped cleanly and killed, opened and gone on with by Ottla, and then
// opened by that version again. Nothing may be lost or changed on the way, and nobody may complain about a file.
func TestHandover(t *testing.T) {
	need(t)
	table := &handoverTable{}
	for _, version := range datadir.Versions {
		t.Run(version, func(t *testing.T) { handOverVersion(t, table, version, false) })
	}
	t.Run("3.9.2-static", func(t *testing.T) { handOverVersion(t, table, "3.9.2", true) })
	harness.Progress("directories handed over\n\n%s", table.text())
}

// handoverTable is the result: a row for each directory.
type handoverTable struct{ rows [][]string }

func (h *handoverTable) add(cells ...string) { h.rows = append(h.rows, cells) }

func (h *handoverTable) text() string {
	var b strings.Builder
	for _, row := range append([][]string{{"directory of", "left", "records", "to Ottla", "back to Apache Kafka", "s"}}, h.rows...) {
		fmt.Fprintf(&b, "| %-20s | %-7s | %7s | %-22s | %-22s | %4s |\n", row[0], row[1], row[2], row[3], row[4], row[5])
	}
	return b.String()
}

// kafkaOnly are the properties that Ottla is not given: it refuses what it does not serve.
var kafkaOnly = map[string]string{
	"authorizer.class.name":  "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
	"super.users":            "User:ANONYMOUS",
	"log.cleaner.backoff.ms": "300",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000", // what Apache Kafka leaves open, Ottla shall end
}

// handedOver is one directory on its way.
type handedOver struct {
	*testing.T
	base   *harness.Node // has the ports and properties; never started
	jvm    *datadir.JVM
	log    string // of the JVM
	data   string // the directory
	kept   string // what Apache Kafka shows of the cluster
	before datadir.Snapshot
	acked  int // the last transaction of the topic datadir.Leaving that was acknowledged; -1 none was written
}

func handOverVersion(t *testing.T, table *handoverTable, version string, static bool) {
	dir := workDir(t)
	properties := map[string]string{
		"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3", "log.retention.ms": "-1",
		"log.index.interval.bytes": "1024",
	}
	for key, value := range kafkaOnly {
		properties[key] = value
	}
	base, err := harness.NewNode(harness.Options{Kind: harness.Kafka, Name: "base", Dir: dir, Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.properties")
	format := []string{"format", file, "-t", "Yh4XFBD2Rb-8s4xkUUkKcw"}
	if static {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^controller\.quorum\.bootstrap\.servers=`).ReplaceAll(text, []byte("controller.quorum.voters=1@"))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		format = append(format, "--release-version", "3.9")
	} else {
		format = append(format, "--standalone")
	}
	name := version
	if static {
		name += " static voters"
	}
	begin := time.Now()
	both := writeDirectories(t, base, version, format)
	back := startJVM(t, version, filepath.Join(dir, "back.log"))
	for i, left := range []string{"clean", "killed"} {
		h := both[i]
		t.Run(left, func(t *testing.T) {
			h.T, h.jvm, h.log = t, back, filepath.Join(dir, "back.log")
			h.toOttla(left)
			to := h.verdict()
			h.backToKafka(left)
			table.add(name, left, strconv.Itoa(h.before.Count("record")), to, h.verdict(), strconv.Itoa(int(time.Since(begin).Seconds())))
			begin = time.Now()
		})
	}
}

func startJVM(t *testing.T, version, log string) *datadir.JVM {
	t.Helper()
	jvm, err := datadir.StartJVM(version, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jvm.Close)
	return jvm
}

func (h *handedOver) verdict() string {
	if h.Failed() {
		return "FAILED"
	}
	return "equal, no warning"
}

// do has the JVM carry a command out.
func (h *handedOver) do(words ...string) string {
	h.Helper()
	answer, err := h.jvm.Do(words...)
	if err != nil {
		h.Fatal(err)
	}
	return answer
}

func (h *handedOver) take() datadir.Snapshot {
	h.Helper()
	snapshot, err := datadir.Take(cellContext(h.T), h.base.Addr())
	if err != nil {
		h.Fatal(err)
	}
	return snapshot
}

// same compares two snapshots.
func (h *handedOver) same(what string, before, after datadir.Snapshot) {
	h.Helper()
	if different := datadir.Differences(before, after); len(different) > 0 {
		h.Errorf("%s: %d lines differ:\n%s", what, len(different), strings.Join(different[:min(len(different), 40)], "\n"))
	}
}

// abortedSince is what differs when Ottla has aborted the transaction that was past its timeout.
var abortedSince = regexp.MustCompile(`^[-+] (offsets|committed) transactions-|^\+ record transactions-.* control true|^[-+] transaction open-short `)

// sameUntilAborted compares what Ottla shows at its start with what was before. It may have looked at timeouts by then.
func (h *handedOver) sameUntilAborted(before, after datadir.Snapshot) {
	h.Helper()
	different := datadir.Differences(before, after)
	if slices.ContainsFunc(different, func(line string) bool { return strings.HasPrefix(line, "+ transaction open-short ") }) {
		different = slices.DeleteFunc(different, abortedSince.MatchString)
	}
	if len(different) > 0 {
		h.Errorf("Ottla: %d lines differ:\n%s", len(different), strings.Join(different[:min(len(different), 40)], "\n"))
	}
}

// properties writes a server.properties with another log.dirs, for Ottla without what only Apache Kafka is given.
func (h *handedOver) properties(file string, ottla bool) {
	h.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(h.base.LogPath()), "server.properties"))
	if err != nil {
		h.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(line, "=")
		if _, only := kafkaOnly[key]; only && ottla {
			continue
		}
		if ottla && key == "node.id" { // at once with another line, to look at timeouts soon
			line += "transaction.abort.timed.out.transaction.cleanup.interval.ms=3000\n"
		}
		if key == "log.dirs" {
			line = "log.dirs=" + h.data + "\n"
		}
		out.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		h.Fatal(err)
	}
}

// writeDirectories has Apache Kafka write a directory and stop; then start on it, and be killed while it writes transactions.
func writeDirectories(t *testing.T, base *harness.Node, version string, format []string) [2]*handedOver {
	dir := filepath.Dir(base.LogPath())
	log := filepath.Join(dir, "first.log")
	h := &handedOver{T: t, base: base, jvm: startJVM(t, version, log), log: log, data: base.DataDir(), acked: -1}
	h.do(format...)
	h.do("start", format[1])
	h.do("load", base.Addr())
	if version == harness.KafkaVersion { // older versions have no streams groups, or not by default
		if err := datadir.JoinStreams(cellContext(t), base.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	clean := *h
	clean.before, clean.kept = h.take(), h.do("kept", base.Addr())
	kinds := []string{"acl", "scram", "quota", "feature", "config CLIENT_METRICS", "config BROKER 1", "config BROKER  message.max.bytes"}
	if version == harness.KafkaVersion {
		kinds = append(kinds, "shared {", "group g-streams ", "group g-share ")
	}
	for _, kind := range kinds {
		if !strings.Contains("\n"+clean.kept, "\n"+kind) {
			t.Errorf("Apache Kafka shows nothing of the kind %q:\n%s", kind, clean.kept)
		}
	}
	if out, err := exec.Command(harness.OttlaBinary(), "adopt", h.data).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("ottla adopt on a directory that Apache Kafka has in use: %v\n%s", err, out)
	}
	checkFiles(t, "Apache Kafka "+version+" has in use", h.data)
	h.do("stop")
	checkFiles(t, "Apache Kafka "+version+" has closed", h.data)
	clean.data = filepath.Join(dir, "clean")
	if err := os.CopyFS(clean.data, os.DirFS(h.data)); err != nil {
		t.Fatal(err)
	}
	harness.Progress("Apache Kafka %s has written: %s", version, clean.before.Counts())

	h.do("start", format[1])
	h.before, h.kept = h.take(), h.do("kept", base.Addr())
	h.same("Apache Kafka on its own directory", clean.before, h.before)
	h.do("transact", base.Addr())
	if err := h.jvm.AwaitSaid(10); err != nil {
		t.Fatal(err)
	}
	if err := h.jvm.Kill(); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, "Apache Kafka "+version+" left when it was killed", h.data)
	said := h.jvm.Said()
	h.acked, _ = strconv.Atoi(said[len(said)-1])
	return [2]*handedOver{&clean, h}
}

// toOttla opens a directory with Ottla, compares, and goes on.
func (h *handedOver) toOttla(left string) {
	h.Helper()
	dir := filepath.Join(filepath.Dir(h.base.LogPath()), "ottla-"+left)
	if err := os.Mkdir(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	ottla, err := h.base.Successor(target(h.T), "ottla", dir)
	if err != nil {
		h.Fatal(err)
	}
	h.properties(filepath.Join(dir, "server.properties"), true)
	h.adopt(filepath.Join(dir, "server.properties"))
	h.Cleanup(ottla.Close)
	restart(h.T, ottla)
	h.sameUntilAborted(h.before, h.take())
	h.underKill()
	if err := datadir.GoOn(cellContext(h.T), h.base.Addr()); err != nil {
		h.Fatalf("%v\n%s", err, ottla.LogTail(20))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := datadir.UntilStable(ctx, h.base.Addr(), "open-short", "open-long", datadir.Leaving); err != nil {
		h.Error(err)
	}
	h.before = h.take()
	checkFiles(h.T, "Ottla has in use", h.data)
	stopCleanly(h.T, ottla)
	checkFiles(h.T, "Ottla has closed", h.data)
	text, err := os.ReadFile(ottla.LogPath())
	if err != nil {
		h.Fatal(err)
	}
	for _, line := range logTrouble.FindAllString(string(text), -1) {
		if aboutFiles.MatchString(line) && !harmless.MatchString(line) {
			h.Errorf("Ottla: %s", line)
		}
	}
	explain(h.T, ottla)
}

// adopt examines the directory: it is safe, and stays as it is.
func (h *handedOver) adopt(properties string) {
	h.Helper()
	before := h.listing()
	out, err := exec.Command(harness.OttlaBinary(), "adopt", h.data, "--dry-run", "-c", properties).CombinedOutput()
	if err != nil {
		h.Errorf("ottla adopt: %v\n%s", err, out)
	}
	for _, named := range []string{"safe to start", "3 ACLs", "2 SCRAM credentials", "2 client quotas", "1 client metrics subscription"} {
		if !strings.Contains(string(out), named) {
			h.Errorf("ottla adopt does not say %q:\n%s", named, out)
		}
	}
	if after := h.listing(); !slices.Equal(before, after) {
		h.Errorf("ottla adopt has changed the directory")
	}
}

// listing is every file of the directory with size and time.
func (h *handedOver) listing() []string {
	h.Helper()
	var all []string
	err := filepath.WalkDir(h.data, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all = append(all, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// underKill judges the transactions that were written until the server died: what was acknowledged is there, and of none a part.
func (h *handedOver) underKill() {
	h.Helper()
	if h.acked < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// The one under way is open, or decided and to be completed.
	if err := datadir.EndOpen(ctx, h.base.Addr(), datadir.Leaving); err != nil {
		h.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(h.base.Addr()))
	if err != nil {
		h.Fatal(err)
	}
	defer client.Close()
	parts, err := datadir.ReadTopic(ctx, client, datadir.Leaving, 2)
	if err != nil {
		h.Fatal(err)
	}
	for i := range h.acked + 2 {
		n := parts[strconv.Itoa(i)]
		if n != 6 && (n != 0 || i <= h.acked) {
			h.Errorf("of the 6 records of transaction %d there are %d; the last that was acknowledged is %d", i, n, h.acked)
		}
	}
}

// backToKafka lets DumpLogSegments look at what Ottla has left, and opens it with Apache Kafka.
func (h *handedOver) backToKafka(left string) {
	h.Helper()
	h.dumpAll()
	logged := 0
	if text, err := os.ReadFile(h.log); err == nil {
		logged = len(text)
	}
	file := filepath.Join(filepath.Dir(h.base.LogPath()), "back-"+left+".properties")
	h.properties(file, false)
	h.do("start", file)
	h.same("back on Apache Kafka", h.before, h.take())
	if kept := h.do("kept", h.base.Addr()); kept != h.kept {
		h.same("what Ottla does not serve, back on Apache Kafka", strings.Split(h.kept, "\n"), strings.Split(kept, "\n"))
	}
	ctx := cellContext(h.T)
	err := errors.Join(datadir.EndOpen(ctx, h.base.Addr(), "open-kept"), datadir.Transactions(ctx, h.base.Addr(), "gone-on"))
	if err != nil {
		h.Error(err)
	}
	h.do("stop")
	checkFiles(h.T, "Apache Kafka has closed after Ottla", h.data)
	text, err := os.ReadFile(h.log)
	if err != nil {
		h.Fatal(err)
	}
	for _, line := range logTrouble.FindAllString(string(text[logged:]), -1) {
		if !harmless.MatchString(line) {
			h.Errorf("Apache Kafka on what Ottla has left: %s", line)
		}
	}
}

// dumpAll gives every file to DumpLogSegments.
func (h *handedOver) dumpAll() {
	h.Helper()
	kinds := map[string][]string{}
	err := filepath.WalkDir(h.data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		kind := filepath.Ext(path)
		if strings.Contains(path, "__cluster_metadata-0") && (kind == ".log" || kind == ".checkpoint") {
			kind = "metadata"
		}
		info, err := entry.Info()
		if err == nil && (!strings.HasSuffix(kind, "index") || info.Size() < 10<<20-12) { // what Apache Kafka preallocates the tool cannot read
			kinds[kind] = append(kinds[kind], path)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	h.dump(kinds[".log"], "--deep-iteration")
	h.dump(append(kinds[".index"], kinds[".timeindex"]...), "--verify-index-only")
	h.dump(append(kinds[".snapshot"], kinds[".txnindex"]...))
	h.dump(kinds["metadata"], "--cluster-metadata-decoder")
}

func (h *handedOver) dump(files []string, flags ...string) {
	h.Helper()
	printed := firstBatch.ReplaceAllString(h.do(append(append([]string{"dump"}, flags...), "--files", strings.Join(files, ","))...), "")
	file := ""
	for line := range strings.Lines(printed) {
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			file = strings.TrimSpace(name)
		}
		if dumpFaults.MatchString(line) {
			h.Errorf("DumpLogSegments %v, %s: %s", flags, file, strings.TrimSpace(line))
		}
	}
	if n := strings.Count(printed, "Dumping "); n != len(files) || n == 0 {
		h.Errorf("DumpLogSegments %v dumped %d of %d files", flags, n, len(files))
	}
}
