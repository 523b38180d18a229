//go:build compat

package compat

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ottla/compat/harness"
	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// TestTransactionLog goes on with a partition that Apache Kafka 4.4.0 wrote, some of whose transactions are open: it ends these, runs
// a few of its own, stops cleanly, and lets DumpLogSegments tell what it sees in the log, the transaction indexes and the producer
// snapshots. That must be what Ottla says itself.
func TestTransactionLog(t *testing.T) {
	need(t)
	dir := filepath.Join(t.TempDir(), "txns-0")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(harness.Root(), "testdata", "logs-4.4.0", "txns-0"))); err != nil {
		t.Fatal(err)
	}
	l := goOnWithTransactions(t, dir)
	view := l.View()
	aborted, err := l.AbortedIn(view.LogStartOffset, view.LogEndOffset)
	if err != nil {
		t.Fatal(err)
	}
	producers := l.ActiveProducers()
	if _, err := l.Close(time.Now(), true); err != nil {
		t.Fatal(err)
	}
	if view.FirstUnstableOffset != protocol.NoOffset {
		t.Errorf("all transactions have ended, and the first unstable offset is %d", view.FirstUnstableOffset)
	}

	java := startJava(t, t.TempDir())
	files := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v %v", pattern, found, err)
		}
		return found
	}
	logs := dump(t, java, files("*.log"), "--deep-iteration")
	dump(t, java, append(files("*.index"), files("*.timeindex")...), "--verify-index-only")
	if ends := strings.Count(logs, "endTxnMarker: "); ends < len(aborted) {
		t.Errorf("DumpLogSegments finds %d markers, and %d transactions were aborted", ends, len(aborted))
	}

	var want, got []string
	for _, a := range aborted {
		want = append(want, fmt.Sprintf("%d from %d", a.ProducerID, a.FirstOffset))
	}
	for _, m := range regexp.MustCompile(`producerId: (\d+) firstOffset: (\d+) lastOffset: \d+ lastStableOffset: \d+`).FindAllStringSubmatch(dump(t, java, files("*.txnindex")), -1) {
		got = append(got, m[1]+" from "+m[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 4 || !slices.Equal(got, want) {
		t.Errorf("DumpLogSegments finds the aborted transactions\n%q, Ottla says\n%q", got, want)
	}

	want, got = nil, nil
	for _, p := range producers {
		want = append(want, fmt.Sprintf("%d epoch %d coordinator %d sequence %d", p.ProducerID, p.Epoch, p.CoordinatorEpoch, p.LastSequence))
	}
	newest := slices.Max(files("*.snapshot"))
	entry := regexp.MustCompile(`producerId: (\d+) producerEpoch: (-?\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: (\S+) lastTimestamp: -?\d+(?: firstSequence: -?\d+ lastSequence: (-?\d+))?`)
	for _, m := range entry.FindAllStringSubmatch(dump(t, java, []string{newest}), -1) {
		got = append(got, fmt.Sprintf("%s epoch %s coordinator %s sequence %s", m[1], m[2], m[3], cmp.Or(m[5], "-1")))
		if m[4] != "OptionalLong.empty" && m[4] != "None" {
			t.Errorf("DumpLogSegments finds an open transaction: %s", m[0])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 4 || !slices.Equal(got, want) {
		t.Errorf("DumpLogSegments finds the producers\n%q, Ottla says\n%q\n%s", got, want, dump(t, java, []string{newest}))
	}
}

// goOnWithTransactions opens a partition's log, ends every open transaction, and runs some: committed, aborted, interleaved, one with
// an epoch bumped by its marker.
func goOnWithTransactions(t *testing.T, dir string) *log.Log {
	t.Helper()
	fsys := vfs.OS()
	env := log.Env{FS: fsys, Files: segment.NewFileCache(fsys, 50), Pool: compress.NewPool()}
	options := log.DefaultOptions()
	options.SegmentBytes = 4096 // over several segments
	l, _, err := log.Open(env, dir, protocol.TopicPartition{Topic: "txns"}, options, log.OpenState{Trust: log.SameBoot, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	epoch := max(l.LatestEpoch(), 0) + 1
	add := func(e *log.Entry) {
		t.Helper()
		if err := l.Append(time.Now(), epoch, []*log.Entry{e}); err != nil || e.Err != nil {
			t.Fatal(err, e.Err)
		}
		l.SetHighWatermark(l.View().LogEndOffset)
	}
	mark := func(id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, kind record.ControlType, version int8) {
		t.Helper()
		marker := record.EndTxnMarker{Type: kind, CoordinatorEpoch: 100}
		add(&log.Entry{
			Batch: record.BuildEndTxnMarker(marker, time.Now().UnixMilli(), id, producerEpoch), Origin: log.OriginMarker, TransactionVersion: version,
		})
	}
	batch := func(id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, sequence int32) {
		t.Helper()
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = id, producerEpoch, sequence, true
		b := record.NewBuilder(o)
		for i := range 3 {
			b.Append(time.Now().UnixMilli(), fmt.Appendf(nil, "%d", i), []byte(strings.Repeat("v", 40)), nil)
		}
		guard, err := l.BeginVerification(time.Now(), id, producerEpoch, sequence, false)
		if err != nil {
			t.Fatal(err)
		}
		built := b.Build(nil)
		add(&log.Entry{Batch: built, Info: record.Info{Count: 3, MaxTimestamp: built.MaxTimestamp()}, Guard: guard})
	}
	open := 0
	for _, p := range l.ActiveProducers() {
		if p.CurrentTxnFirstOffset != protocol.NoOffset {
			open++
			mark(p.ProducerID, p.Epoch, record.ControlAbort, 0)
		}
	}
	if open == 0 {
		t.Error("Apache Kafka left no open transaction")
	}
	for round := range int32(12) {
		kind := []record.ControlType{record.ControlCommit, record.ControlAbort}[round%2]
		batch(900, 0, 6*round)
		batch(901, 0, 3*round)
		batch(900, 0, 6*round+3)
		mark(901, 0, record.ControlAbort, 0)
		mark(900, 0, kind, 1)
	}
	batch(902, 0, 0)
	mark(902, 1, record.ControlAbort, 2)
	batch(902, 1, 0)
	mark(902, 2, record.ControlCommit, 2)
	return l
}
