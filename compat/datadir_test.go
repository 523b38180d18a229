//go:build compat

package compat

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ottla/compat/datadir"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// TestHandover has directories of every version of Apache Kafka, stopped cleanly and killed, opened and gone on with by Ottla, and then
// opened by that version again. Nothing may be lost or changed on the way, and nobody may complain about a file.
func TestHandover(t *testing.T) {
	need(t)
	table := &handoverTable{}
	for _, version := range datadir.Versions {
		t.Run(version, func(t *testing.T) {
			handOverVersion(t, table, kafkaNode{version: version, several: version == harness.KafkaVersion})
		})
	}
	t.Run("3.9.2-static", func(t *testing.T) {
		handOverVersion(t, table, kafkaNode{version: "3.9.2", static: true, several: true})
	})
	t.Run("tiered", handOverTiered)
	harness.Progress("directories handed over\n\n%s", table.text())
}

// kafkaNode says how Apache Kafka is set up that writes the directories.
type kafkaNode struct {
	version string
	static  bool // controller.quorum.voters, as all had it before 3.9
	several bool // log directories
}

func (k kafkaNode) String() string {
	name := k.version
	if k.static {
		name += " static voters"
	}
	if k.several {
		name += " 2 dirs"
	}
	return name
}

// handoverTable is the result: a row for each directory.
type handoverTable struct{ rows [][]string }

func (h *handoverTable) add(cells ...string) { h.rows = append(h.rows, cells) }

func (h *handoverTable) text() string {
	var b strings.Builder
	for _, row := range append([][]string{{"directory of", "left", "records", "to Ottla", "back to Apache Kafka", "s"}}, h.rows...) {
		fmt.Fprintf(&b, "| %-26s | %-7s | %7s | %-22s | %-22s | %4s |\n", row[0], row[1], row[2], row[3], row[4], row[5])
	}
	return b.String()
}

// kafkaOnly are the properties that Ottla is not given: it refuses what it does not serve.
var kafkaOnly = map[string]string{
	"authorizer.class.name":                                       "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
	"super.users":                                                 "User:ANONYMOUS",
	"log.cleaner.backoff.ms":                                      "300",
	"sasl.enabled.mechanisms":                                     "PLAIN",
	"listener.security.protocol.map":                              "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
	"listener.name.sasl_plaintext.plain.sasl.jaas.config":         `org.apache.kafka.common.security.plain.PlainLoginModule required user_owner="secret";`,
	"delegation.token.secret.key":                                 "of-the-cluster",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000", // what Apache Kafka leaves open, Ottla shall end
}

// handedOver is one directory on its way.
type handedOver struct {
	*testing.T
	base   *harness.Node // has the ports and properties; never started
	jvm    *datadir.JVM
	log    string // of the JVM
	data   string // the directory, or the one above the directories
	dirs   []string
	sasl   string // address of the listener of Apache Kafka that knows its clients
	kept   string // what Apache Kafka shows of the cluster
	before datadir.Snapshot
	// acked is what was said, by prefix, of the transactions on the topic datadir.Leaving that were acknowledged when a server was killed;
	// under "k" those of Apache Kafka, under "o" those of Ottla.
	acked map[string][]string
}

func handOverVersion(t *testing.T, table *handoverTable, kafka kafkaNode) {
	dir := workDir(t)
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	first := &handedOver{T: t, data: filepath.Join(dir, "data"), sasl: fmt.Sprintf("localhost:%d", port), acked: map[string][]string{}}
	properties := map[string]string{
		"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3", "log.retention.ms": "-1",
		"broker.session.timeout.ms": "6000", // a busy machine is late with heartbeats, and a broker that is missed has no leaders
		"log.index.interval.bytes":  "1024", "log.flush.offset.checkpoint.interval.ms": "1000", "log.flush.start.offset.checkpoint.interval.ms": "1000",
	}
	for key, value := range kafkaOnly {
		properties[key] = value
	}
	first.dirs = []string{first.data}
	if kafka.several {
		first.dirs = []string{filepath.Join(first.data, "one"), filepath.Join(first.data, "two")}
		properties["log.dirs"] = strings.Join(first.dirs, ",")
	}
	if first.base, err = harness.NewNode(harness.Options{Kind: harness.Kafka, Name: "base", Dir: dir, Properties: properties}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.properties")
	edit := []string{"(?m)^listeners=.*$", "$0,SASL_PLAINTEXT://" + first.sasl}
	format := []string{"format", file, "-t", "Yh4XFBD2Rb-8s4xkUUkKcw"}
	if kafka.static {
		edit = append(edit, `(?m)^controller\.quorum\.bootstrap\.servers=`, "controller.quorum.voters=1@")
		format = append(format, "--release-version", "3.9")
	} else {
		format = append(format, "--standalone")
	}
	editFile(t, file, edit...)
	begin := time.Now()
	both := first.writeDirectories(kafka.version, format)
	if target(t) == harness.Kafka {
		both[1].onItsOwn(kafka.version)
		return
	}
	back := startJVM(t, kafka.version, filepath.Join(dir, "back.log"))
	for i, left := range []string{"clean", "killed"} {
		h := both[i]
		t.Run(left, func(t *testing.T) {
			h.T, h.jvm, h.log = t, back, filepath.Join(dir, "back.log")
			defer func() {
				if t.Failed() {
					_, _ = back.Do("stop") // or it would answer in the place of the next
				}
			}()
			h.toOttla(left)
			to := h.verdict()
			h.backToKafka(left)
			table.add(kafka.String(), left, strconv.Itoa(h.before.Count("record")), to, h.verdict(), strconv.Itoa(int(time.Since(begin).Seconds())))
			begin = time.Now()
		})
	}
}

// editFile replaces what regular expressions match.
func editFile(t *testing.T, file string, patterns ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(patterns); i += 2 {
		text = regexp.MustCompile(patterns[i]).ReplaceAll(text, []byte(patterns[i+1]))
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
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
	var snapshot datadir.Snapshot
	ctx := cellContext(h.T)
	err := suite.Eventually(ctx, func() (err error) { // a broker whose heartbeat is late has no leaders for a moment
		snapshot, err = datadir.Take(ctx, h.base.Addr())
		return err
	})
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
		switch {
		case key == "log.dirs":
			line = "log.dirs=" + strings.Join(h.dirs, ",") + "\n"
		case key == "listeners" && ottla: // no listener on which clients say who they are
			line = strings.Replace(line, ",SASL_PLAINTEXT://"+h.sasl, "", 1)
		}
		out.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		h.Fatal(err)
	}
}

// movedTo is the same on a copy of the directories.
func (h *handedOver) movedTo(data string) *handedOver {
	h.Helper()
	if err := os.CopyFS(data, os.DirFS(h.data)); err != nil {
		h.Fatal(err)
	}
	moved := *h
	moved.data, moved.dirs, moved.acked = data, nil, maps.Clone(h.acked)
	for _, dir := range h.dirs {
		moved.dirs = append(moved.dirs, data+strings.TrimPrefix(dir, h.data))
	}
	return &moved
}

// writeDirectories has Apache Kafka write a directory and stop; then start on it, and be killed while it writes transactions.
func (h *handedOver) writeDirectories(version string, format []string) [2]*handedOver {
	h.Helper()
	dir := filepath.Dir(h.base.LogPath())
	h.log = filepath.Join(dir, "first.log")
	h.jvm = startJVM(h.T, version, h.log)
	h.do(format...)
	h.do("start", format[1])
	h.do("load", h.base.Addr(), h.sasl)
	kinds := []string{"acl", "scram", "quota", "feature", "token", "config CLIENT_METRICS", "config BROKER 1", "config BROKER  message.max.bytes"}
	if version == harness.KafkaVersion { // older versions have no streams groups, or not by default
		if err := datadir.JoinStreams(cellContext(h.T), h.base.Addr()); err != nil {
			h.Fatal(err)
		}
		kinds = append(kinds, "shared {", "group g-streams ", "group g-share ")
	}
	before, kept := h.take(), h.do("kept", h.base.Addr(), h.sasl)
	for _, kind := range kinds {
		if !strings.Contains("\n"+kept, "\n"+kind) {
			h.Errorf("Apache Kafka shows nothing of the kind %q:\n%s", kind, kept)
		}
	}
	if out, err := exec.Command(harness.OttlaBinary(), append([]string{"adopt"}, h.dirs...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		h.Errorf("ottla adopt on a directory that Apache Kafka has in use: %v\n%s", err, out)
	}
	checkFiles(h.T, "Apache Kafka "+version+" has in use", h.dirs...)
	h.do("stop")
	checkFiles(h.T, "Apache Kafka "+version+" has closed", h.dirs...)
	clean := h.movedTo(filepath.Join(dir, "clean"))
	clean.before, clean.kept = before, kept
	harness.Progress("Apache Kafka %s has written: %s", version, before.Counts())

	h.do("start", format[1])
	h.before, h.kept = h.take(), h.do("kept", h.base.Addr(), h.sasl)
	h.same("Apache Kafka on its own directory", before, h.before)
	h.transact("k")
	if err := h.jvm.Kill(); err != nil {
		h.Fatal(err)
	}
	h.acked["k"] = h.jvm.Said()
	checkFiles(h.T, "Apache Kafka "+version+" left when it was killed", h.dirs...)
	return [2]*handedOver{clean, h}
}

// transact has the JVM write transactions, and waits until some are acknowledged.
func (h *handedOver) transact(prefix string) {
	h.Helper()
	h.do("transact", h.base.Addr(), prefix)
	if err := h.jvm.AwaitSaid(10); err != nil {
		h.Fatal(err)
	}
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
	h.checkAcked("k", true, harness.Ottla)
	if err := datadir.GoOn(cellContext(h.T), h.base.Addr()); err != nil {
		h.Fatalf("%v\n%s", err, ottla.LogTail(20))
	}
	if err := datadir.UntilStable(cellContext(h.T), h.base.Addr(), "open-short", "open-long", datadir.Leaving); err != nil {
		h.Error(err)
	}
	h.before = h.take()
	h.awaitLogStart("trimmed 0 31")
	checkFiles(h.T, "Ottla has in use", h.dirs...)
	if left == "clean" {
		stopCleanly(h.T, ottla)
		checkFiles(h.T, "Ottla has closed", h.dirs...)
	} else {
		h.transact("o")
		h.killDecided(ottla)
		h.do("desert")
		h.acked["o"] = h.jvm.Said()
		checkFiles(h.T, "Ottla left when it was killed", h.dirs...)
	}
	text, err := os.ReadFile(ottla.LogPath())
	if err != nil {
		h.Fatal(err)
	}
	for _, line := range complaints(string(text)) {
		if aboutFiles.MatchString(line) {
			h.Errorf("Ottla: %s", line)
		}
	}
	explain(h.T, ottla)
}

// awaitLogStart waits until a checkpoint says where a partition begins: until then neither server remembers deleted records when it is
// killed.
func (h *handedOver) awaitLogStart(line string) {
	h.Helper()
	noted := func() (bool, error) {
		for _, dir := range h.dirs {
			text, err := os.ReadFile(filepath.Join(dir, "log-start-offset-checkpoint"))
			if err != nil || strings.Contains(string(text), line+"\n") {
				return true, err
			}
		}
		return false, nil
	}
	for ctx := cellContext(h.T); ; {
		if found, err := noted(); err != nil || ctx.Err() != nil {
			h.Fatalf("no log-start-offset-checkpoint says %q in time: %v", line, err)
		} else if found {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// adopt examines the directory: it is safe, and stays as it is.
func (h *handedOver) adopt(properties string) {
	h.Helper()
	before := h.listing()
	out, err := exec.Command(harness.OttlaBinary(), append([]string{"adopt", "--dry-run", "-c", properties}, h.dirs...)...).CombinedOutput()
	if err != nil {
		h.Errorf("ottla adopt: %v\n%s", err, out)
	}
	says := []string{"safe to start", "3 ACLs", "2 SCRAM credentials", "2 client quotas", "1 client metrics subscription", "1 delegation token"}
	if strings.Contains(h.kept, "group g-streams ") {
		says = append(says, "1 share group: g-share", "1 streams group: g-streams", "__share_group_state, which says how far share groups are")
	}
	for _, named := range says {
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

// checkAcked judges, by what a server of a kind serves now, the transactions with a prefix that were written until the one before it
// died; last says that none were after them.
func (h *handedOver) checkAcked(prefix string, last bool, by harness.Kind) {
	h.Helper()
	said := h.acked[prefix]
	if said == nil {
		return
	}
	ctx := cellContext(h.T)
	state, faults, err := datadir.CheckAcked(ctx, h.base.Addr(), prefix, said, last, by == harness.Kafka)
	if err != nil {
		h.Fatal(err)
	}
	if last {
		harness.Progress("%d transactions were acknowledged before the kill; the one after them is %s", len(said), state)
	}
	for _, fault := range faults {
		h.Error(fault)
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
	h.checkAcked("o", true, harness.Kafka)
	h.checkAcked("k", false, harness.Kafka)
	if kept := h.do("kept", h.base.Addr(), h.sasl); kept != h.kept {
		h.same("what Ottla does not serve, back on Apache Kafka", strings.Split(h.kept, "\n"), strings.Split(kept, "\n"))
	}
	ctx := cellContext(h.T)
	err := errors.Join(datadir.EndOpen(ctx, h.base.Addr(), "open-kept"), datadir.Transactions(ctx, h.base.Addr(), "gone-on"))
	if err != nil {
		h.Error(err)
	}
	h.do("stop")
	checkFiles(h.T, "Apache Kafka has closed after Ottla", h.dirs...)
	text, err := os.ReadFile(h.log)
	if err != nil {
		h.Fatal(err)
	}
	h.noWarning("Ottla", string(text[logged:]))
}

// noWarning judges what Apache Kafka has logged. On what it left itself when it was killed it warns of nothing either (onItsOwn), so
// nothing is allowed after a kill of Ottla.
func (h *handedOver) noWarning(by, logged string) {
	h.Helper()
	for _, line := range complaints(logged) {
		h.Errorf("Apache Kafka on what %s has left: %s", by, line)
	}
}

// onItsOwn is the control: Apache Kafka, killed, goes on itself.
func (h *handedOver) onItsOwn(version string) {
	h.Helper()
	dir := filepath.Dir(h.base.LogPath())
	h.log = filepath.Join(dir, "again.log")
	h.jvm = startJVM(h.T, version, h.log)
	h.do("start", filepath.Join(dir, "server.properties"))
	h.checkAcked("k", true, harness.Kafka)
	h.do("stop")
	text, err := os.ReadFile(h.log)
	if err != nil {
		h.Fatal(err)
	}
	h.noWarning("it", string(text))
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
