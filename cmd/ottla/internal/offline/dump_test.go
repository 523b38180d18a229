package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/compress"
	"ottla/protocol/record"
	"ottla/storage/vfs"
)

const (
	logsDir     = "../../../../testdata/logs-4.4.0/"
	metadataDir = "../../../../controller/metadata/testdata/apache-4.4.0/"
)

// Lines of DumpLogSegments and of ours, brought to one form.
var (
	theirBatch = regexp.MustCompile(`^baseOffset: (\S+) lastOffset: (\S+) count: (\S+) baseSequence: (\S+) lastSequence: (\S+) producerId: (\S+) producerEpoch: (\S+) partitionLeaderEpoch: (\S+) isTransactional: (\S+) isControl: (\S+) deleteHorizonMs: \S+ position: (\S+) (\w+): (\S+) size: (\S+) magic: 2 compresscodec: (\S+) crc: (\d+) isvalid: true$`)
	theirPlain = regexp.MustCompile(`^\| offset: (\d+) (\w+): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: \S+ headerKeys: \[(.*?)\](.*)$`)
	ourRecord  = regexp.MustCompile(`^  offset=(\d+) (\w+)=(-?\d+) (.*)$`)
	theirEntry = regexp.MustCompile(`^offset: (\d+) position: (\d+)$`)
	theirTime  = regexp.MustCompile(`^timestamp: (-?\d+) offset: (\d+)$`)
	theirTxn   = regexp.MustCompile(`^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)$`)
	theirState = regexp.MustCompile(`^producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: OptionalLong(\.empty|\[\d+\]) lastTimestamp: (-?\d+) ?(?:firstSequence: (\d+) lastSequence: (\d+) lastOffset: (\d+) offsetDelta: (\d+) timestamp: .*)?$`)
	quotedText = regexp.MustCompile(`^key=(null|"(?:[^"\\]|\\.)*") value=(null|"(?:[^"\\]|\\.)*")(?: headers:(.*))?$`)
)

// canonical is the form of a line of DumpLogSegments.
func canonical(t *testing.T, line string) string {
	t.Helper()
	if m := theirBatch.FindStringSubmatch(line); m != nil {
		crc, err := strconv.ParseUint(m[16], 10, 32)
		must(t, err)
		out := fmt.Sprintf("position=%s offsets=%s..%s records=%s bytes=%s leaderEpoch=%s %s=%s codec=%s crc=%08x", m[11], m[1], m[2], m[3], m[14], m[8], m[12], m[13], m[15], crc)
		if m[6] != "-1" {
			out += fmt.Sprintf(" producer=%s producerEpoch=%s sequences=%s..%s", m[6], m[7], m[4], m[5])
		}
		return out + map[string]string{"true": " transactional", "false": ""}[m[9]] + map[string]string{"true": " control", "false": ""}[m[10]]
	}
	if m := theirPlain.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("  offset=%s %s=%s %s/%s [%s]%s", m[1], m[2], m[3], m[4], m[5], m[6], normalControl(m[7]))
	}
	if m := theirEntry.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("offset=%s position=%s", m[1], m[2])
	}
	if m := theirTime.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("timestamp=%s offset=%s", m[1], m[2])
	}
	if m := theirTxn.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("producer=%s firstOffset=%s lastOffset=%s lastStableOffset=%s version=0", m[1], m[2], m[3], m[4])
	}
	if m := theirState.FindStringSubmatch(line); m != nil {
		out := fmt.Sprintf("producer=%s epoch=%s timestamp=%s coordinatorEpoch=%s", m[1], m[2], m[5], m[3])
		if m[8] != "" {
			last, _ := strconv.Atoi(m[8])
			delta, _ := strconv.Atoi(m[9])
			out += fmt.Sprintf(" sequences=%s..%s offsets=%d..%d", m[6], m[7], last-delta, last)
		}
		if strings.HasPrefix(m[4], "[") {
			out += " openTransactionFrom=" + strings.Trim(m[4], "[]")
		}
		return out
	}
	return ""
}

// normalControl gives what a record says, control records by their kind alone.
func normalControl(text string) string {
	for theirs, ours := range map[string]string{
		" endTxnMarker: ABORT": " ABORT", " endTxnMarker: COMMIT": " COMMIT", " LeaderChange": " LEADER_CHANGE", " SnapshotHeader": " SNAPSHOT_HEADER",
		" SnapshotFooter": " SNAPSHOT_FOOTER", " KRaftVersion": " KRAFT_VERSION", " KRaftVoters": " KRAFT_VOTERS",
	} {
		if strings.HasPrefix(text, theirs) {
			return ours
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, " key: null"), " ")
}

// ours brings one of our lines to the same form.
func ours(t *testing.T, line string) string {
	t.Helper()
	m := ourRecord.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	head := fmt.Sprintf("  offset=%s %s=%s ", m[1], m[2], m[3])
	q := quotedText.FindStringSubmatch(m[4])
	if q == nil { // a control record or a decoded one: sizes are not printed
		kind, _, _ := strings.Cut(m[4], " ")
		if strings.HasPrefix(kind, "{") {
			return head + m[4]
		}
		return head + kind
	}
	var headers []string
	for _, h := range strings.Fields(q[3]) {
		key, _, _ := strings.Cut(h, "=")
		text, err := strconv.Unquote(key)
		must(t, err)
		headers = append(headers, text)
	}
	out := head + size(t, q[1]) + "/" + size(t, q[2]) + " [" + strings.Join(headers, ",") + "]"
	if q[1] != "null" {
		out += "key: " + unquote(t, q[1]) + " "
	}
	if q[2] != "null" {
		out += "payload: " + unquote(t, q[2])
	}
	return out
}

func unquote(t *testing.T, quoted string) string {
	t.Helper()
	text, err := strconv.Unquote(quoted)
	must(t, err)
	return text
}

func size(t *testing.T, quoted string) string {
	if quoted == "null" {
		return "-1"
	}
	return strconv.Itoa(len(unquote(t, quoted)))
}

// sections splits the output of DumpLogSegments by file.
func sections(t *testing.T, golden string) map[string][]string {
	t.Helper()
	text, err := vfs.ReadFile(vfs.OS(), golden)
	must(t, err)
	files, name := map[string][]string{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if after, ok := strings.CutPrefix(line, "Dumping "); ok {
			name = after
			files[name] = nil
			continue
		}
		if c := canonical(t, line); c != "" {
			files[name] = append(files[name], c)
		}
	}
	return files
}

// sizesOfDecoded takes sizes and brackets away where ours prints none.
var sizesOfDecoded = regexp.MustCompile(`^(  offset=\d+ \w+=-?\d+) -?\d+/-?\d+ \[\](?:(ABORT|COMMIT|LEADER_CHANGE|SNAPSHOT_HEADER|SNAPSHOT_FOOTER|KRAFT_VERSION|KRAFT_VOTERS)|payload: (\{.*\})| (ABORT|COMMIT|LEADER_CHANGE|SNAPSHOT_HEADER|SNAPSHOT_FOOTER|KRAFT_VERSION|KRAFT_VOTERS))$`)

func TestDumpSaysWhatDumpLogSegmentsSays(t *testing.T) {
	compared := 0
	for golden, dir := range map[string]string{"testdata/dump/kafka-logs.txt": logsDir, "testdata/dump/kafka-metadata.txt": metadataDir} {
		files := sections(t, golden)
		for _, name := range sortedNames(files) {
			fsys, file := onDisk(t, dir, name)
			var out bytes.Buffer
			if err := Dump(&out, fsys, file, DumpOptions{Deep: true}); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out.String())
				continue
			}
			var got, want []string
			for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
				if !strings.HasPrefix(line, "#") && line != "" {
					got = append(got, ours(t, line))
				}
			}
			for _, line := range files[name] {
				line = sizesOfDecoded.ReplaceAllString(line, "$1 $2$3$4")
				want = append(want, line)
			}
			compared += len(want)
			if i := firstDifference(got, want); i >= 0 {
				t.Errorf("%s differs at line %d:\nours   %s\ntheirs %s", name, i, at(got, i), at(want, i))
			}
		}
	}
	if compared < 1400 {
		t.Errorf("only %d lines were compared", compared)
	}
}

// onDisk puts a file, with what lies beside it, into the directory that its topic has.
func onDisk(t *testing.T, dir, name string) (vfs.FS, string) {
	t.Helper()
	if dir == logsDir {
		return vfs.OS(), dir + name
	}
	m := vfs.NewMem(nil)
	data, err := vfs.ReadFile(vfs.OS(), dir+name)
	must(t, err)
	file := "__cluster_metadata-0/" + path.Base(name)
	put(t, m, file, string(data))
	return m, file
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if at(a, i) != at(b, i) {
			return i
		}
	}
	return -1
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}

func TestDumpShallow(t *testing.T) {
	var out bytes.Buffer
	must(t, Dump(&out, vfs.OS(), logsDir+"codecs-0/00000000000000000000.log", DumpOptions{}))
	if text := out.String(); strings.Contains(text, "  offset=") || !strings.HasPrefix(text, "# a segment of codecs from offset 0\nposition=0 ") {
		t.Errorf("it says\n%s", text)
	}
}

func TestDumpBootstrap(t *testing.T) {
	var out bytes.Buffer
	must(t, Dump(&out, vfs.OS(), "testdata/dump/bootstrap.checkpoint", DumpOptions{}))
	if !strings.Contains(out.String(), `{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":21}}`) {
		t.Errorf("it says\n%s", out.String())
	}
}

func TestDumpSmallFiles(t *testing.T) {
	const meta = "version=1\ncluster.id=c\nnode.id=3\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n"
	cases := []struct{ name, content, want string }{
		{"d/meta.properties", meta, "clusterId=c nodeId=3 directoryId=JEXY6aqzQY-32P5TStzaFg\n"},
		{"d/meta.properties", "version=1\n", "DAMAGE at byte 0: the file is damaged: it has no cluster.id\n"},
		{"d/recovery-point-offset-checkpoint", "0\n2\nb 1 7\na 0 5\n", "topic=a partition=0 offset=5\ntopic=b partition=1 offset=7\n"},
		{"d/replication-offset-checkpoint", "", ""},
		{"d/log-start-offset-checkpoint", "0\n1\na 0 5", "topic=a partition=0 offset=5\nDAMAGE at byte 0: the last line is cut\n"},
		{"d/cleaner-offset-checkpoint", "7\n", "DAMAGE at byte 0: "},
		{"d/t-0/leader-epoch-checkpoint", "0\n2\n0 0\n3 9\n", "epoch=0 startOffset=0\nepoch=3 startOffset=9\n"},
		{"d/t-0/leader-epoch-checkpoint", "0\n2\n0 0\n3 9", "epoch=0 startOffset=0\nepoch=3 startOffset=9\nDAMAGE at byte 0: the last line is cut\n"},
		{"d/t-0/leader-epoch-checkpoint", "0\n1\n0 0\n3 9\n", "DAMAGE at byte 0: "},
		{"d/t-0/leader-epoch-checkpoint", "", ""},
		{"d/t-0/partition.metadata", "version: 0\ntopic_id: JEXY6aqzQY-32P5TStzaFg", "topicId=JEXY6aqzQY-32P5TStzaFg\n"},
		{"d/t-0/partition.metadata", "version: 0", "DAMAGE at byte 0: "},
		{
			"d/m/quorum-state", `{"leaderId":1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`,
			"leaderEpoch=4 leaderId=1 votedId=-1 version=1 votedDirectoryId=AAAAAAAAAAAAAAAAAAAAAA\n",
		},
		{
			"d/m/quorum-state", `{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":2,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}`,
			"leaderEpoch=4 leaderId=1 votedId=2 version=0 voter=1 voter=2\n",
		},
		{"d/m/quorum-state", `{"leaderId":1,"leaderEpoch":4}`, "DAMAGE at byte 0: leaderId, leaderEpoch, votedId or data_version is missing\n"},
		{"d/m/quorum-state", `{"leaderId":1,"leaderEpoch":-4,"votedId":2,"data_version":1}`, "DAMAGE at byte 0: an epoch or id is negative\n"},
		{"d/m/quorum-state", `{"leaderId":1,"leaderEpoch":4,"votedId":2,"data_version":2}`, "DAMAGE at byte 0: data_version is 2"},
		{"d/m/quorum-state", `{"leader`, "DAMAGE at byte 0: "},
		{"d/.kafka_cleanshutdown", `{"version":0,"brokerEpoch":13}`, "brokerEpoch=13\n"},
		{"d/.kafka_cleanshutdown", ``, "DAMAGE at byte 0: "},
		{"d/.kafka_cleanshutdown", `{}`, "DAMAGE at byte 0: its version is not 0\n"},
		{"d/t-0/00000000000000000005.snapshot", "\x00\x01", "DAMAGE at byte 0: "},
	}
	for _, c := range cases {
		m := vfs.NewMem(nil)
		put(t, m, c.name, c.content)
		var out bytes.Buffer
		err := Dump(&out, m, c.name, DumpOptions{})
		if strings.Contains(c.want, "DAMAGE") != errors.Is(err, ErrDamaged) {
			t.Errorf("%s %q: the error is %v", c.name, c.content, err)
		}
		_, text, _ := strings.Cut(out.String(), "\n")
		if !strings.Contains(text, c.want) || (c.want == "" && text != "") {
			t.Errorf("%s %q: it says %q", c.name, c.content, out.String())
		}
	}
}

func TestDumpUnknownNames(t *testing.T) {
	m := vfs.NewMem(nil)
	for _, name := range []string{"d/photo.jpg", "d/x.log", "d/123", "d/5-6.checkpoint", "d/missing-offset-checkpoint", "d/00000000000000000000.txt"} {
		put(t, m, name, "")
		if err := Dump(io.Discard, m, name, DumpOptions{}); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Dump(io.Discard, m, "d/00000000000000000000.log", DumpOptions{}); err == nil {
		t.Error("a missing file was dumped")
	}
}

func TestDumpRetiredFiles(t *testing.T) {
	m := vfs.NewMem(nil)
	put(t, m, "t-0/00000000000000000007.log.deleted", string(batch(7, "v")))
	put(t, m, "t-0/00000000000000000007.index.deleted", "")
	for _, name := range []string{"t-0/00000000000000000007.log.deleted", "t-0/00000000000000000007.index.deleted"} {
		must(t, Dump(io.Discard, m, name, DumpOptions{}))
	}
}

func batch(base protocol.Offset, values ...string) record.Batch {
	options := record.PlainOptions()
	options.BaseOffset = base
	builder := record.NewBuilder(options)
	for _, v := range values {
		builder.Append(1000+int64(builder.NextOffset()), []byte("k"), []byte(v), nil)
	}
	return builder.Build(nil)
}

func TestDumpDamagedLog(t *testing.T) {
	whole := append(append(slices.Clone(batch(0, "a", "b")), batch(2, "c")...), batch(3, "d")...)
	first, second := len(batch(0, "a", "b")), len(batch(0, "a", "b"))+len(batch(2, "c"))
	flipped := slices.Clone(whole)
	flipped[first+66] ^= 1
	far := slices.Clone(whole)
	far[second] ^= 1 // the base offset, which no checksum covers
	magic := slices.Clone(whole)
	magic[first+16] = 1
	cases := []struct {
		name    string
		content []byte
		want    string
		batches int
	}{
		{"whole", whole, "", 3},
		{"empty", nil, "", 0},
		{"cut in a header", whole[:first+10], fmt.Sprintf("DAMAGE at byte %d: 10 bytes are left, less than the header", first), 1},
		{"cut in a batch", whole[:second+65], fmt.Sprintf("DAMAGE at byte %d: a batch claims", second), 2},
		{"zeros", append(slices.Clone(whole[:first]), make([]byte, 500)...), fmt.Sprintf("DAMAGE at byte %d: from here to the end at %d there are only zeros", first, first+500), 1},
		{"flipped", flipped, fmt.Sprintf("DAMAGE at byte %d: ", first), 3},
		{"far away", far, fmt.Sprintf("DAMAGE at byte %d: the batch ends at offset", second), 3},
		{"old format", magic, fmt.Sprintf("DAMAGE at byte %d: the batch has format 1", first), 1},
		{"garbage", append(slices.Clone(whole), bytes.Repeat([]byte{0xff}, 100)...), fmt.Sprintf("DAMAGE at byte %d: no batch begins here", len(whole)), 3},
		{"again", append(slices.Clone(whole), batch(2, "c")...), fmt.Sprintf("DAMAGE at byte %d: the batch begins at offset 2, but 4 is next", len(whole)), 4},
	}
	for _, c := range cases {
		m := vfs.NewMem(nil)
		put(t, m, "t-0/00000000000000000000.log", string(c.content))
		var out bytes.Buffer
		err := Dump(&out, m, "t-0/00000000000000000000.log", DumpOptions{Deep: true})
		if errors.Is(err, ErrDamaged) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, out.String())
		}
		if got := strings.Count(out.String(), "\nposition="); got != c.batches {
			t.Errorf("%s: %d batches:\n%s", c.name, got, out.String())
		}
	}
}

func TestDumpDamagedIndexes(t *testing.T) {
	first := len(batch(10, "a"))
	segment := append(slices.Clone(batch(10, "a")), batch(11, "b")...)
	entry := func(values ...int) []byte {
		var e []byte
		for _, v := range values {
			e = append(e, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
		return e
	}
	cases := []struct{ name, file, content, want string }{
		{"good", "index", string(entry(1, first)), ""},
		{"preallocated", "index", string(entry(1, first)) + strings.Repeat("\x00", 80), ""},
		{"misses the batch", "index", string(entry(1, first+1)), "DAMAGE at byte 0: no batch begins at position"},
		{"offset before the batch", "index", string(entry(0, first)), "DAMAGE at byte 0: the batch at position"},
		{"falls", "index", string(entry(1, first, 1, first)), "DAMAGE at byte 8: the entry"},
		{"odd", "index", string(entry(1, first)) + "xyz", "DAMAGE at byte 8: the last entry has 3 bytes"},
		{"good", "timeindex", string(entry(0, 1011, 1)), ""},
		{"other time", "timeindex", string(entry(0, 1012, 1)), "DAMAGE at byte 0: the largest timestamp"},
		{"beyond", "timeindex", string(entry(0, 1011, 5)), "DAMAGE at byte 0: the segment does not reach offset 15"},
		{"falls", "timeindex", string(entry(0, 1011, 1, 0, 1010, 0)), "DAMAGE at byte 12: the entry"},
		{"good", "txnindex", "\x00\x00" + string(entry(0, 7, 0, 10, 0, 12, 0, 13)), ""},
		{"version", "txnindex", "\x00\x01" + string(entry(0, 7, 0, 10, 0, 12, 0, 13)), "DAMAGE at byte 0: the entry has version 1"},
		{"backwards", "txnindex", "\x00\x00" + string(entry(0, 7, 0, 12, 0, 12, 0, 13)), "DAMAGE at byte 0: a transaction cannot go"},
		{"falls", "txnindex", strings.Repeat("\x00\x00"+string(entry(0, 7, 0, 10, 0, 12, 0, 13)), 2), "DAMAGE at byte 34: the marker"},
		{"odd", "txnindex", "\x00\x00xyz", "DAMAGE at byte 0: the last entry has 5 bytes"},
	}
	for _, c := range cases {
		m := vfs.NewMem(nil)
		put(t, m, "t-0/00000000000000000010.log", string(segment))
		name := "t-0/00000000000000000010." + c.file
		put(t, m, name, c.content)
		var out bytes.Buffer
		err := Dump(&out, m, name, DumpOptions{})
		if errors.Is(err, ErrDamaged) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s, %s: %v\n%s", c.file, c.name, err, out.String())
		}
	}
}

func TestDumpSnapshotThatIsNotWhole(t *testing.T) {
	whole, err := vfs.ReadFile(vfs.OS(), "testdata/format/standalone.checkpoint")
	must(t, err)
	for cut := range whole {
		m := vfs.NewMem(nil)
		put(t, m, "__cluster_metadata-0/"+firstSnapshot, string(whole[:cut]))
		if err := Dump(io.Discard, m, "__cluster_metadata-0/"+firstSnapshot, DumpOptions{}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		flipped := slices.Clone(whole)
		flipped[cut] ^= 0x10
		put(t, m, "__cluster_metadata-0/"+firstSnapshot, string(flipped))
		err := Dump(io.Discard, m, "__cluster_metadata-0/"+firstSnapshot, DumpOptions{})
		if unchecked := inUncheckedHeader(whole, cut); !errors.Is(err, ErrDamaged) && !unchecked {
			t.Fatalf("flipped at %d: %v", cut, err)
		}
	}
}

// inUncheckedHeader tells the bytes of a batch that its checksum does not cover: base offset and leader epoch.
func inUncheckedHeader(snapshot []byte, at int) bool {
	position := 0
	for rest := snapshot; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil {
			return false
		}
		in := at - position
		if in >= 0 && in < len(b) {
			return in < 8 || (in >= 12 && in < 16)
		}
		position, rest = position+len(b), after
	}
	return false
}

// FuzzDump takes any bytes for any kind of file: all of it is told, or damage is named, and neither costs more than the bytes are worth.
func FuzzDump(f *testing.F) {
	names := []string{
		"t-0/00000000000000000000.log", "t-0/00000000000000000000.index", "t-0/00000000000000000000.timeindex", "t-0/00000000000000000000.txnindex",
		"t-0/00000000000000000000.snapshot", "__cluster_metadata-0/" + firstSnapshot, "t-0/leader-epoch-checkpoint", "recovery-point-offset-checkpoint",
		"t-0/partition.metadata", "meta.properties", "__cluster_metadata-0/quorum-state", ".kafka_cleanshutdown", "__consumer_offsets-0/00000000000000000000.log",
		"__transaction_state-0/00000000000000000000.log", "__share_group_state-0/00000000000000000000.log",
	}
	whole, err := vfs.ReadFile(vfs.OS(), "testdata/format/scram.checkpoint")
	if err != nil {
		f.Fatal(err)
	}
	for i := range names {
		f.Add(uint8(i), whole)
		f.Add(uint8(i), []byte(batch(0, "a", "b")))
		f.Add(uint8(i), []byte(formattedText))
		f.Add(uint8(i), []byte("0\n1\na 0 5\n"))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		m := vfs.NewMem(nil)
		name := names[int(which)%len(names)]
		put(t, m, name, string(data))
		bound := uint64(64*len(data) + 64<<10)
		for rest := data; ; { // what is compressed may expand to MaxDecompressed, batch by batch
			b, after, err := record.Next(rest)
			if err != nil {
				break
			}
			if b.Codec() != compress.None {
				bound += 4<<20 + 2<<20
			}
			rest = after
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Dump(io.Discard, m, name, DumpOptions{Deep: true, MaxDecompressed: 1 << 20})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > bound {
			t.Errorf("%s: %d bytes were allocated for %d", name, used, len(data))
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: %v", name, err)
		}
	})
}

func TestDumpDecodesCoordinators(t *testing.T) {
	m := vfs.NewMem(nil)
	b := batch(0, "garbage")
	put(t, m, "__consumer_offsets-3/00000000000000000000.log", string(b))
	var out bytes.Buffer
	if err := Dump(&out, m, "__consumer_offsets-3/00000000000000000000.log", DumpOptions{Deep: true}); !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), `value="garbage"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestDumpCompressed(t *testing.T) {
	options := record.PlainOptions()
	options.Codec = compress.Zstd
	builder := record.NewBuilder(options)
	builder.Append(1, nil, bytes.Repeat([]byte("x"), 100_000), nil)
	m := vfs.NewMem(nil)
	put(t, m, "t-0/00000000000000000000.log", string(builder.Build(compress.NewPool())))
	var out bytes.Buffer
	if err := Dump(&out, m, "t-0/00000000000000000000.log", DumpOptions{Deep: true, MaxDecompressed: 50_000}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a batch that expands too far: %v\n%s", err, out.String())
	}
	must(t, Dump(io.Discard, m, "t-0/00000000000000000000.log", DumpOptions{Deep: true}))
}
