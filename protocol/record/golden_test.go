package record

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/compress"
)

var update = flag.Bool("update", false, "rewrite testdata/batches/ottla-written.tsv")

const (
	now     = 1_700_000_000_000 // as in the Java programs
	maxTest = 64 << 20          // bytes that a payload may expand to
)

// table reads a tab-separated file of testdata.
func table(t testing.TB, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func hexOf(field []byte) string {
	if field == nil {
		return "-"
	}
	return hex.EncodeToString(field)
}

// dump writes a batch out as Batches.java does.
func dump(t testing.TB, b Batch, pool *compress.Pool) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "base=%d last=%d next=%d size=%d epoch=%d magic=%d crc=%d valid=%v codec=%v time=%v txn=%v control=%v horizon=%v baseTimestamp=%d maxTimestamp=%d pid=%d pepoch=%d seq=%d..%d count=%d",
		b.BaseOffset(), b.LastOffset(), b.NextOffset(), b.Size(), b.PartitionLeaderEpoch(), b.Magic(), b.CRC(), b.CheckCRC() == nil, b.Codec(), b.TimestampType(),
		b.IsTransactional(), b.IsControl(), b.HasDeleteHorizon(), b.BaseTimestamp(), b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LastSequence(), b.Count())
	for record, err := range Records(b, pool, maxTest) {
		if err != nil {
			t.Fatalf("%s: %v", out.String(), err)
		}
		fmt.Fprintf(&out, " | %d %d %s %s", record.Offset, record.Timestamp, hexOf(record.Key), hexOf(record.Value))
		for _, header := range record.Headers {
			fmt.Fprintf(&out, " %s=%s", hexOf(header.Key), hexOf(header.Value))
		}
	}
	return out.String()
}

func one(t testing.TB, data []byte) Batch {
	t.Helper()
	batch, rest, err := Next(data)
	if err != nil || len(rest) != 0 {
		t.Fatalf("%v, %d bytes left", err, len(rest))
	}
	return batch
}

func TestReadsWhatJavaWrote(t *testing.T) {
	pool := compress.NewPool()
	rows := table(t, "batches/java-written.tsv")
	if len(rows) != 58 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		if got := dump(t, one(t, unbase64(t, row[1])), pool); got != row[2] {
			t.Errorf("%s\n  we   %s\n  Java %s", row[0], got, row[2])
		}
	}
}

// What Kafka built without compression, our Builder builds byte for byte; what
// it compressed, to the same records.
func TestBuildsWhatJavaBuilt(t *testing.T) {
	pool := compress.NewPool()
	var written strings.Builder
	for _, row := range table(t, "batches/java-written.tsv") {
		theirs := one(t, unbase64(t, row[1]))
		options := OptionsOf(theirs)
		builder := NewBuilder(options)
		for record, err := range Records(theirs, pool, maxTest) {
			if err != nil {
				t.Fatal(err)
			}
			timestamp := theirs.BaseTimestamp() + record.TimestampDelta
			builder.AppendAt(record.Offset, timestamp, record.Key, record.Value, record.Headers)
		}
		if want := theirs.Count(); builder.Count() != int(want) {
			t.Errorf("%s: %d records of %d", row[0], builder.Count(), want)
		}
		ours := builder.Build(pool)
		fmt.Fprintf(&written, "%s\t%s\t%s\n", row[0], base64.StdEncoding.EncodeToString(ours), dump(t, ours, pool))
		if theirs.Codec() == compress.None {
			if !bytes.Equal(ours, theirs) {
				t.Errorf("%s:\n  we   %x\n  Java %x", row[0], ours, theirs)
			}
			continue
		}
		_, oursRecords, _ := strings.Cut(dump(t, ours, pool), "codec=")
		if _, want, _ := strings.Cut(row[2], "codec="); oursRecords != want {
			t.Errorf("%s:\n  we   %s\n  Java %s", row[0], oursRecords, want)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/batches/ottla-written.tsv", []byte(written.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range table(t, "batches/ottla-written.tsv") {
		if got := dump(t, one(t, unbase64(t, row[1])), pool); got != row[2] {
			t.Errorf("%s: %s, not %s", row[0], got, row[2])
		}
	}
}

func TestBuilderDefaults(t *testing.T) {
	rows := table(t, "batches/java-written.tsv")
	builder := NewBuilder(PlainOptions())
	builder.Append(now, []byte("key"), []byte("value"), nil)
	if size := builder.SizeBytes(); size != len(unbase64(t, rows[0][1])) {
		t.Errorf("size %d", size)
	}
	if got := builder.Build(nil); !bytes.Equal(got, unbase64(t, rows[0][1])) {
		t.Errorf("%x", got)
	}
	for _, row := range rows {
		var kind ControlType
		switch row[0] {
		case "marker ABORT":
			kind = ControlAbort
		case "marker COMMIT":
			kind = ControlCommit
		default:
			continue
		}
		if got := BuildEndTxnMarker(EndTxnMarker{kind, 13}, now, 4242, 7); !bytes.Equal(got, unbase64(t, row[1])) {
			t.Errorf("%s: %x", row[0], got)
		}
	}
}

func TestBuilderRefusesWhatNoBatchCanBe(t *testing.T) {
	for name, build := range map[string]func(){
		"nothing":          func() { NewBuilder(Options{BaseOffset: 5}).Build(nil) },
		"an offset back":   func() { NewBuilder(Options{BaseOffset: 5}).AppendAt(4, 0, nil, nil, nil) },
		"an offset beyond": func() { NewBuilder(Options{}).AppendAt(1<<31, 0, nil, nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			build()
		}()
	}
}

func TestRecompress(t *testing.T) {
	pool := compress.NewPool()
	for _, row := range table(t, "batches/java-written.tsv") {
		batch := one(t, unbase64(t, row[1]))
		if batch.Count() == 0 {
			continue
		}
		for target := compress.None; target <= compress.Zstd; target++ {
			got, err := Recompress(batch, target, 0, pool, maxTest)
			if err != nil {
				t.Fatal(err)
			}
			one(t, got)
			_, ours, _ := strings.Cut(dump(t, got, pool), "valid=")
			_, theirs, _ := strings.Cut(row[2], "valid=")
			theirs = strings.Replace(theirs, "codec="+batch.Codec().String(), "codec="+target.String(), 1)
			if ours != theirs {
				t.Errorf("%s to %v:\n  %s\n  %s", row[0], target, ours, theirs)
			}
		}
		if _, err := Recompress(batch, compress.Gzip, 0, pool, 3); batch.Codec() != compress.None && err == nil {
			t.Errorf("%s: no limit", row[0])
		}
	}
}

type control interface{ Encode() (key, value []byte) }

func controlOf(t *testing.T, name string) control {
	var ids []protocol.NodeID
	for i := range 200 {
		ids = append(ids, protocol.NodeID(i*1_000_003))
	}
	none := []protocol.NodeID{}
	records := map[string]control{
		"leader change":             LeaderChange{1, 2, []protocol.NodeID{1, 2, 3}, []protocol.NodeID{2, 3}},
		"leader change, nobody":     LeaderChange{0, -1, none, none},
		"leader change, 200 voters": LeaderChange{0, 7, ids, none},
		"snapshot header":           SnapshotHeader{0, now},
		"snapshot header, 3 -1":     SnapshotHeader{3, -1},
		"snapshot footer":           SnapshotFooter{},
		"snapshot footer, 9":        SnapshotFooter{9},
		"kraft version":             KRaftVersion{0, 1},
		"kraft version, 2 -5":       KRaftVersion{2, -5},
		"voters, none":              Voters{0, []Voter{}},
		"voters": Voters{0, []Voter{
			{1, protocol.DirectoryID{7: 1, 15: 2}, []VoterEndpoint{{"CONTROLLER", "controller-1.example", 9093}}, 0, 1},
			{2, protocol.DirectoryID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80}, []VoterEndpoint{{"CONTROLLER", "::1", 65535}, {"OTHER", "", 0}}, 0, 1},
			{1<<31 - 1, protocol.DirectoryID{}, []VoterEndpoint{}, 1, 2},
		}},
	}
	if record, known := records[name]; known {
		return record
	}
	var kind string
	var epoch int32
	if _, err := fmt.Sscanf(name, "marker %s %d", &kind, &epoch); err != nil {
		t.Fatalf("no control record %q", name)
	}
	if kind == "COMMIT" {
		return EndTxnMarker{ControlCommit, epoch}
	}
	return EndTxnMarker{ControlAbort, epoch}
}

func parseControl(key, value []byte) (any, error) {
	kind, err := ParseControlKey(key)
	if err != nil {
		return nil, err
	}
	switch kind {
	case ControlLeaderChange:
		return ParseLeaderChange(value)
	case ControlSnapshotHeader:
		return ParseSnapshotHeader(value)
	case ControlSnapshotFooter:
		return ParseSnapshotFooter(value)
	case ControlKRaftVersion:
		return ParseKRaftVersion(value)
	case ControlKRaftVoters:
		return ParseVoters(value)
	}
	return ParseEndTxnMarker(key, value)
}

func TestControlRecords(t *testing.T) {
	rows := table(t, "batches/control.tsv")
	if len(rows) != 19 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		want := controlOf(t, row[0])
		key, value := want.Encode()
		if hexOf(key) != row[1] || hexOf(value) != row[2] {
			t.Errorf("%s: we %x %x, Java %s %s", row[0], key, value, row[1], row[2])
		}
		if got, err := parseControl(key, value); err != nil || !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s: %+v, %v", row[0], got, err)
		}
		for n := range value { // no prefix of a value is a value
			if got, err := parseControl(key, value[:n]); err == nil {
				t.Errorf("%s cut to %d: %+v", row[0], n, got)
			}
		}
		if _, marker := want.(EndTxnMarker); !marker { // an unknown tagged field
			tagged := append(bytes.Clone(value[:len(value)-1]), 1, 9, 2, 0xaa, 0xbb)
			if got, err := parseControl(key, tagged); err != nil || !reflect.DeepEqual(got, any(want)) {
				t.Errorf("%s with a tag: %+v, %v", row[0], got, err)
			}
		}
	}
}

func TestControlKeys(t *testing.T) {
	if kind, err := ParseControlKey([]byte{0, 9, 0, 6, 1}); err != nil || kind != ControlKRaftVoters {
		t.Error(kind, err)
	}
	if kind, err := ParseControlKey([]byte{0, 0, 0, 99}); err != nil || kind.String() != "UNKNOWN" {
		t.Error(kind, err)
	}
	for _, key := range [][]byte{nil, {0, 0, 0}, {0xff, 0, 0, 1}} {
		if _, err := ParseControlKey(key); err == nil {
			t.Errorf("%x", key)
		}
	}
	if _, err := ParseEndTxnMarker(ControlKey(ControlLeaderChange), make([]byte, 6)); err == nil {
		t.Error("a leader change is no marker")
	}
	if _, err := ParseEndTxnMarker(ControlKey(ControlCommit), []byte{0xff, 0xff, 0, 0, 0, 1}); err == nil {
		t.Error("version -1")
	}
}
