//go:build mutants

package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mutant is a bug that is planted for a moment: a passage of a source file is
// replaced in a copy, which the compiler takes by -overlay. The sources themselves
// hold no hook, and a passage that is not there any more fails the test.
type mutant struct {
	name  string
	file  string // from the root of the module
	edits []edit
}

// edit replaces a passage that occurs once.
type edit struct{ old, new string }

var mutants = []mutant{
	{
		"ack before write", "storage/replica/append.go",
		[]edit{{
			"	accepted = r.enqueue(a)\n	r.pump(now)\n	return accepted\n",
			`	if end := r.log().View().LogEndOffset; a.acks == AcksLeader && !r.published.Load().LogAppendTime {
		a.done(AppendResult{BaseOffset: end, LastOffset: end, LogStartOffset: 0, LogAppendTimeMs: -1})
		a.done = func(AppendResult) {}
		accepted = r.enqueue(a)
		r.manager.options.Workers(func() { r.pump(now) })
		return accepted
	}
	accepted = r.enqueue(a)
	r.pump(now)
	return accepted
`,
		}},
	},
	{
		"lost flush", "storage/log/flush.go",
		[]edit{{"		err := s.SyncLog()\n", "		var err error\n"}},
	},
	{
		"failed flush passed over", "storage/log/flush.go",
		[]edit{{"	if err := l.sync(p); err != nil {\n", "	if err := l.sync(p); err != nil && false {\n"}},
	},
	{
		"duplicate accepted", "storage/producer/check.go",
		[]edit{{"			return original, true, nil\n", "			return Batch{}, false, nil\n"}},
	},
	{
		"gap accepted", "storage/producer/check.go",
		[]edit{{"!follows(last, first) {", "last >= first {"}},
	},
	{
		"metadata answered before the fsync", "controller/quorum/submit.go",
		[]edit{{"	if err := q.log.Flush(now); err != nil {\n		return &flushError{err}", "	if err := error(nil); err != nil {\n		return &flushError{err}"}, {"q.core.Appended(view.LogEndOffset, view.DurableEnd)", "q.core.Appended(view.LogEndOffset, view.LogEndOffset)"}},
	},
	{
		"power cut taken for a kill", "storage/store/directory.go",
		[]edit{{"	case storedBoot != \"\" && storedBoot == presentBoot:", "	case storedBoot != \"\":"}},
	},
	{
		"clean marker left", "storage/store/prepare.go",
		[]edit{{"	if d.marker.present {\n		if err := p.o.FS.Remove", "	if d.marker.present && !d.marker.clean {\n		if err := p.o.FS.Remove"}},
	},
	{
		"one segment too many deleted", "storage/log/maintain.go",
		[]edit{{
			"			excess -= l.segments[i].Size()\n			return excess >= 0, nil",
			"			whole := excess >= 0\n			excess -= l.segments[i].Size()\n			return whole, nil",
		}},
	},
	{
		"time lookup skips a segment", "storage/log/times.go",
		[]edit{{"			if largest < timestampMs {\n", "			if largest <= timestampMs {\n"}},
	},
	{
		"log start forgotten by a clean stop", "storage/store/close.go",
		[]edit{{"	return d.checkpoints.write(logStartFile, func", "	return nil\n	return d.checkpoints.write(logStartFile, func"}},
	},
	{
		"producers not replayed", "storage/log/replay.go",
		[]edit{{"	if r.from == r.to && r.txnsFrom == never {\n		return nil", "	if r.to >= 0 {\n		r.producers.SetEnd(r.to)\n		return nil"}},
	},
	{
		"session keeps an old offset", "cmd/ottla/internal/session/context.go",
		[]edit{{"		p.Topic = known.Topic\n		known.Partition = p\n", "		p.Topic = known.Topic\n		p.FetchOffset = max(p.FetchOffset-1, known.FetchOffset)\n		known.Partition = p\n"}},
	},
	// Bugs that other servers and clients had, as what clients of transactions see.
	{ // redpanda#5355
		"a full disk is an unknown error", "controller/shard/errors.go",
		[]edit{{"		code = protocol.NotCoordinator\n", "		code = protocol.UnknownServerError\n"}},
	},
	{ // redpanda#6018
		"partitions of a transaction only in memory", "controller/txn/partitions.go",
		[]edit{{"	d.records = append(d.records, r)\n", "	if m.state != Ongoing {\n		d.records = append(d.records, r)\n	}\n"}},
	},
	{ // redpanda#9571
		"a transaction leaves the old offset", "controller/offsets/store.go",
		[]edit{{"committed && (!found || is.Record < o.Record)", "committed && (!found || is.Record > o.Record)"}},
	},
	{ // KIP-447
		"requireStable passed over", "controller/offsets/fetch.go",
		[]edit{{"	if stable && s.Open(group, topic, partition) {\n", "	if stable && false && s.Open(group, topic, partition) {\n"}},
	},
	{ // KIP-890
		"a late EndTxn ends the next transaction", "controller/txn/end.go",
		[]edit{{"		if err := is.belongsTo(t, request.Producer); err != nil {\n", "		if err := is.belongsTo(t, request.Producer); err != nil && is.state != Ongoing {\n"}},
	},
	{ // KIP-890
		"an end does not bump the epoch", "controller/txn/end.go",
		[]edit{{"	if m.producer.Epoch < math.MaxInt16 {\n", "	if m.producer.Epoch == math.MaxInt16 {\n"}},
	},
	{ // KAFKA-5793
		"producers forgotten where the log starts anew", "storage/log/maintain.go",
		[]edit{{"	l.producers.Replicated(start)\n	l.publish()\n", "	l.producers.Replicated(start)\n	l.producers.Expire(1 << 62)\n	l.publish()\n"}},
	},
	{ // KAFKA-5376
		"aborted transactions missing in a fetch", "storage/replica/read.go",
		[]edit{{"return l.AbortedIn(part.Offset, end) })", "return l.AbortedIn(part.Offset, min(part.Offset, end)) })"}},
	},
	{ // CVE-2026-35554
		"a buffer used again while a batch waits", "cmd/ottla/internal/api/producetransaction.go",
		[]edit{
			{"	frame := p.request.Frame\n	frame.Retain()\n	p.request.HoldReading()\n", "	p.request.HoldReading()\n"},
			{"			defer frame.Release()\n", ""},
		},
	},
}

// mostSeeds is within how many seeds each mutant must be found.
const mostSeeds = 300

var foundBy = regexp.MustCompile(`seed (\d+) after [^:]*: (.*)`)

// TestMutants plants one bug after the other; OTTLA_SIM_MUTANT chooses some by name.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if !strings.Contains(m.name, os.Getenv("OTTLA_SIM_MUTANT")) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			began := time.Now()
			output, err := m.run(t, root)
			found := foundBy.FindStringSubmatch(output)
			if err == nil || found == nil {
				t.Fatalf("not found within %d seeds: %v\n%s", mostSeeds, err, output)
			}
			t.Logf("seed %s, %v: %.200s", found[1], time.Since(began).Round(time.Second), found[2])
		})
	}
}

// run runs seeds with the mutant in place.
func (m mutant) run(t *testing.T, root string) (string, error) {
	t.Helper()
	original := filepath.Join(root, m.file)
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for _, e := range m.edits {
		if strings.Count(text, e.old) != 1 {
			t.Fatalf("%s does not hold this passage once: %s", m.file, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-run", "TestSeeds$", "./cmd/ottla/internal/sim")
	command.Dir = root
	command.Env = append(os.Environ(), "OTTLA_SIM_SEEDS=300", "OTTLA_SIM_FIRST=1")
	output, err := command.CombinedOutput()
	return string(output), err
}
