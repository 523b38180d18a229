package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		[]edit{{"	if d.marker.Present {\n		if err := p.o.FS.Remove", "	if d.marker.Present && !d.marker.Clean {\n		if err := p.o.FS.Remove"}},
	},
	{
		"one segment too many deleted", "storage/log/maintain.go",
		[]edit{{
			"			excess -= l.segments[i].Size()\n			return excess >= 0, nil",
			"			whole := excess >= 0\n			excess -= l.segments[i].Size()\n			return whole, nil",
		}},
	},
	{
		"time lookup skips a segment", "storage/bytime/find.go",
		[]edit{{"		if largest < timestampMs {\n", "		if largest <= timestampMs {\n"}},
	},
	{
		"log start forgotten by a clean stop", "storage/store/close.go",
		[]edit{{"	return d.checkpoints.Write(logdir.LogStartFile, func", "	return nil\n	return d.checkpoints.Write(logdir.LogStartFile, func"}},
	},
	{
		"producers not replayed", "storage/replay/replay.go",
		[]edit{{"	if r.from == r.To && r.TxnsFrom == Never {\n		return nil", "	if r.To >= 0 {\n		r.Producers.SetEnd(r.To)\n		return nil"}},
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
	{ // KAFKA-8351
		"compaction takes a marker before its records", "storage/clean/filter.go",
		[]edit{{"		discard = spent && b.HasDeleteHorizon() && b.BaseTimestamp() <= f.nowMs\n", "		discard = true\n"}},
	},
	{
		"compaction drops latest values", "storage/clean/filter.go",
		[]edit{{"	if r.Offset < f.keys.get(r.Key) {\n", "	if latest := f.keys.get(r.Key); r.Offset < latest || r.Offset == latest && latest%7 == 0 {\n"}},
	},
	{ // CVE-2026-35554
		"a buffer used again while a batch waits", "cmd/ottla/internal/api/producetransaction.go",
		[]edit{
			{"	frame := p.request.Frame\n	frame.Retain()\n	p.request.HoldReading()\n", "	p.request.HoldReading()\n"},
			{"			defer frame.Release()\n", ""},
		},
	},
}

// source gives the file with the bug in it.
func (m *mutant) source(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, e := range m.edits {
		if strings.Count(text, e.old) != 1 {
			return "", fmt.Errorf("%s does not hold this passage once: %s", m.file, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}

// TestMutantsFit: the passages of all mutants are where they are thought to be. Whoever moves one takes the mutant along; TestMutants
// (build tag mutants) tells whether it is still found.
func TestMutantsFit(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	for _, m := range mutants {
		if _, err := m.source(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
