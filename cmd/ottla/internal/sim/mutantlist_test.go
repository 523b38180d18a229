package sim

import (
	"path/filepath"
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// mutants are bugs that seeds must find; they are planted for a moment (package mutant).
var mutants = []mutant.Mutant{
	{
		Name: "ack before write", File: "storage/replica/append.go",
		Edits: []mutant.Edit{{
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
		Name: "lost flush", File: "storage/log/flush.go",
		Edits: []mutant.Edit{{"		err := s.SyncLog()\n", "		var err error\n"}},
	},
	{
		Name: "failed flush passed over", File: "storage/log/flush.go",
		Edits: []mutant.Edit{{"return l.sync(p) }); err != nil {\n", "return l.sync(p) }); err != nil && false {\n"}},
	},
	{
		Name: "duplicate accepted", File: "storage/producer/check.go",
		Edits: []mutant.Edit{{"			return original, true, nil\n", "			return Batch{}, false, nil\n"}},
	},
	{
		Name: "gap accepted", File: "storage/producer/check.go",
		Edits: []mutant.Edit{{"!follows(last, first) {", "last >= first {"}},
	},
	{
		Name: "metadata answered before the fsync", File: "controller/quorum/submit.go",
		Edits: []mutant.Edit{{"	if err := q.log.Flush(now); err != nil {\n		return &flushError{err}", "	if err := error(nil); err != nil {\n		return &flushError{err}"}, {"q.core.Appended(view.LogEndOffset, view.DurableEnd)", "q.core.Appended(view.LogEndOffset, view.LogEndOffset)"}},
	},
	{
		Name: "power cut taken for a kill", File: "storage/store/directory.go",
		Edits: []mutant.Edit{{"	case storedBoot != \"\" && storedBoot == presentBoot:", "	case storedBoot != \"\":"}},
	},
	{
		Name: "clean marker left", File: "storage/store/prepare.go",
		Edits: []mutant.Edit{{"	if d.marker.Present {\n		if err := p.o.FS.Remove", "	if d.marker.Present && !d.marker.Clean {\n		if err := p.o.FS.Remove"}},
	},
	{
		Name: "one segment too many deleted", File: "storage/log/maintain.go",
		Edits: []mutant.Edit{{
			"			excess -= l.segments[i].Size()\n			return excess >= 0, nil",
			"			whole := excess >= 0\n			excess -= l.segments[i].Size()\n			return whole, nil",
		}},
	},
	{
		Name: "time lookup skips a segment", File: "storage/bytime/find.go",
		Edits: []mutant.Edit{{"		if largest < timestampMs {\n", "		if largest <= timestampMs {\n"}},
	},
	{
		Name: "log start forgotten by a clean stop", File: "storage/store/close.go",
		Edits: []mutant.Edit{{"	return d.checkpoints.Write(logdir.LogStartFile, func", "	return nil\n	return d.checkpoints.Write(logdir.LogStartFile, func"}},
	},
	{
		Name: "producers not replayed", File: "storage/replay/replay.go",
		Edits: []mutant.Edit{{"	if r.from == r.To && r.TxnsFrom == Never {\n		return nil", "	if r.To >= 0 {\n		r.Producers.SetEnd(r.To)\n		return nil"}},
	},
	{
		Name: "session keeps an old offset", File: "cmd/ottla/internal/session/context.go",
		Edits: []mutant.Edit{{"		p.Topic = known.Topic\n		known.Partition = p\n", "		p.Topic = known.Topic\n		p.FetchOffset = max(p.FetchOffset-1, known.FetchOffset)\n		known.Partition = p\n"}},
	},
	// Bugs that other servers and clients had, as what clients of transactions see.
	{ // redpanda#5355
		Name: "a full disk is an unknown error", File: "controller/shard/errors.go",
		Edits: []mutant.Edit{{"		code = protocol.NotCoordinator\n", "		code = protocol.UnknownServerError\n"}},
	},
	{ // redpanda#6018
		Name: "partitions of a transaction only in memory", File: "controller/txn/partitions.go",
		Edits: []mutant.Edit{{"	d.records = append(d.records, r)\n", "	if m.state != Ongoing {\n		d.records = append(d.records, r)\n	}\n"}},
	},
	{ // redpanda#9571
		Name: "a transaction leaves the old offset", File: "controller/offsets/store.go",
		Edits: []mutant.Edit{{"committed && (!found || is.Record < o.Record)", "committed && (!found || is.Record > o.Record)"}},
	},
	{ // KIP-447
		Name: "requireStable passed over", File: "controller/offsets/fetch.go",
		Edits: []mutant.Edit{{"	if stable && s.Open(group, topic, partition) {\n", "	if stable && false && s.Open(group, topic, partition) {\n"}},
	},
	{ // KIP-890
		Name: "a late EndTxn ends the next transaction", File: "controller/txn/end.go",
		Edits: []mutant.Edit{{"	case request.Producer != is.producer:\n", "	case request.Producer != is.producer && is.state != Ongoing:\n"}},
	},
	{ // KIP-890
		Name: "an end does not bump the epoch", File: "controller/txn/end.go",
		Edits: []mutant.Edit{{"	if m.producer.Epoch < math.MaxInt16 {\n", "	if m.producer.Epoch == math.MaxInt16 {\n"}},
	},
	{ // KAFKA-5793
		Name: "producers forgotten where the log starts anew", File: "storage/log/maintain.go",
		Edits: []mutant.Edit{{"	l.producers.Replicated(start)\n	l.publish()\n", "	l.producers.Replicated(start)\n	l.producers.Expire(1 << 62)\n	l.publish()\n"}},
	},
	{ // KAFKA-5376
		Name: "aborted transactions missing in a fetch", File: "storage/replica/read.go",
		Edits: []mutant.Edit{{"return l.AbortedIn(part.Offset, end) })", "return l.AbortedIn(part.Offset, min(part.Offset, end)) })"}},
	},
	{ // KAFKA-8351
		Name: "compaction takes a marker before its records", File: "storage/clean/filter.go",
		Edits: []mutant.Edit{{"		discard = spent && b.HasDeleteHorizon() && b.BaseTimestamp() <= f.nowMs\n", "		discard = true\n"}},
	},
	{
		Name: "compaction drops latest values", File: "storage/clean/filter.go",
		Edits: []mutant.Edit{{"	if r.Offset < f.keys.get(r.Key) {\n", "	if latest := f.keys.get(r.Key); r.Offset < latest || r.Offset == latest && latest%7 == 0 {\n"}},
	},
	{ // CVE-2026-35554
		Name: "a buffer used again while a batch waits", File: "cmd/ottla/internal/api/producetransaction.go",
		Edits: []mutant.Edit{
			{"	frame := p.request.Frame\n	frame.Retain()\n	p.request.HoldReading()\n", "	p.request.HoldReading()\n"},
			{"			defer frame.Release()\n", ""},
		},
	},
}

// TestMutantsFit: the passages of all mutants are where they are thought to be. Whoever moves one takes the mutant along; TestMutants
// (build tag mutants) tells whether it is still found.
func TestMutantsFit(t *testing.T) {
	mutant.Fit(t, filepath.Join("..", "..", "..", ".."), mutants)
}
