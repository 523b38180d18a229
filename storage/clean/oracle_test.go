package clean

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/log"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// oracle replays a script of what Apache Kafka's log and cleaner did; see testdata/oracle.
type oracle struct {
	t          *testing.T
	disk       *vfs.Mem
	log        *log.Log
	options    log.Options
	now        time.Time
	line       int
	checkpoint protocol.Offset
	codecs     bool     // sizes are not compared: other compressors made them
	kafka      []string // what the log held there after a cleaning
	cleanings  int      // that changed something
}

func TestOracle(t *testing.T) {
	scripts, err := os.ReadDir("testdata/oracle")
	must(t, err)
	for _, entry := range scripts {
		if !strings.HasSuffix(entry.Name(), ".gz") {
			continue
		}
		t.Run(entry.Name(), func(t *testing.T) {
			file, err := os.Open(path.Join("testdata/oracle", entry.Name()))
			must(t, err)
			defer func() { must(t, file.Close()) }()
			unzipped, err := gzip.NewReader(file)
			must(t, err)
			o := &oracle{t: t, disk: newDisk(1), codecs: strings.HasPrefix(entry.Name(), "codecs")}
			lines := bufio.NewScanner(unzipped)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				o.line++
				o.step(lines.Text())
			}
			must(t, lines.Err())
			if o.cleanings < 5 {
				t.Errorf("only %d cleanings", o.cleanings)
			}
		})
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func milliseconds(text string) time.Duration {
	if n := number(text); n < math.MaxInt64/int64(time.Millisecond) {
		return time.Duration(n) * time.Millisecond
	}
	return 0
}

func (o *oracle) step(text string) {
	command, want, _ := strings.Cut(text, " -> ")
	words := strings.Fields(command)
	got := want
	switch words[0] {
	case "options":
		o.create(words[1:])
	case "now":
		o.now = time.UnixMilli(number(words[1]))
	case "append":
		got = o.append(words[1:])
	case "hw":
		o.log.SetHighWatermark(protocol.Offset(number(words[1])))
	case "epoch":
		must(o.t, o.log.AssignEpoch(protocol.LeaderEpoch(number(words[1])), protocol.Offset(number(words[2]))))
	case "expire":
		o.maintain()
		got = strconv.Itoa(len(o.log.ActiveProducers()))
	case "clean":
		got = o.clean(number(words[1]))
		if o.codecs {
			got, want = withoutSizes(got), withoutSizes(want)
		}
		o.kafka = o.kafka[:0]
	case "end":
		o.compare()
	case "segment", "txnindex":
		if !o.codecs { // segments that are small together are others, and so are their indexes
			o.kafka = append(o.kafka, text)
		}
	default: // of what the log holds
		o.kafka = append(o.kafka, text)
	}
	if got != want {
		o.t.Fatalf("line %d: %s\n got %s\nwant %s", o.line, command, got, want)
	}
}

func (o *oracle) create(words []string) {
	p := &o.options
	*p = log.DefaultOptions()
	p.SegmentBytes, p.IndexIntervalBytes, p.SegmentIndexBytes = number(words[0]), int(number(words[1])), int(number(words[2]))
	p.Compact, p.Delete, p.VerifyTransactions, p.FileDeleteDelay = true, false, false, 0
	p.MinCompactionLag, p.MaxCompactionLag, p.DeleteRetention = milliseconds(words[3]), milliseconds(words[4]), milliseconds(words[5])
	ratio, err := strconv.ParseFloat(words[6], 64)
	must(o.t, err)
	p.MinCleanableRatio, p.LogAppendTime = ratio, words[7] == "LogAppendTime"
	p.ProducerIDExpiration = milliseconds(words[8])
	o.log = newLog(o.t, o.disk, *p)
}

func (o *oracle) append(words []string) string {
	bytes, err := hex.DecodeString(words[2])
	must(o.t, err)
	b, _, err := record.Next(bytes)
	must(o.t, err)
	e := &log.Entry{Batch: b, Info: record.Info{Count: b.Count(), MaxTimestamp: b.MaxTimestamp()}}
	switch words[0] {
	case "marker":
		e.Origin = log.OriginMarker
	case "keyless": // a batch of a topic that was not compacted yet
		p := o.options
		p.Compact, p.Delete = false, true
		o.log.SetOptions(p)
		defer o.log.SetOptions(o.options)
	}
	must(o.t, o.log.Append(o.now, protocol.LeaderEpoch(number(words[1])), []*log.Entry{e}))
	must(o.t, e.Err)
	return fmt.Sprint(e.FirstOffset)
}

func (o *oracle) maintain() {
	if m := o.log.Maintain(o.now); m.Err != nil {
		o.t.Fatal(m.Err)
	}
}

func (o *oracle) clean(memory int64) string {
	c, err := examine(o.log, o.checkpoint, o.now)
	must(o.t, err)
	told := fmt.Sprintf("%d %d %d %d %d ", c.firstDirty, c.bound, c.cleanableBytes, c.totalBytes, c.delay.Milliseconds())
	if !c.wanted() {
		return told + "none"
	}
	s := DefaultSettings()
	s.DedupeBytes, s.BufferBytes = memory, 8<<10
	end, stats, err := Compact(o.now, o.log, o.checkpoint, s, testPool)
	must(o.t, err)
	o.checkpoint = end
	if stats.SegmentsMade > 0 {
		o.cleanings++
	}
	return fmt.Sprint(told, end)
}

// withoutSizes leaves the offsets of what is cleaned.
func withoutSizes(text string) string {
	words := strings.Fields(text)
	return strings.Join(append(words[:2], words[4:]...), " ")
}

// compare looks at the files of all segments.
func (o *oracle) compare() {
	var ours []string
	segments := o.log.Segments()
	for i, s := range segments {
		data := o.file(s.Base, segment.LogSuffix)
		if !o.codecs {
			ours = append(ours, fmt.Sprintf("segment %d %d", s.Base, len(data)))
		}
		for rest := data; len(rest) > 0; {
			var b record.Batch
			var err error
			b, rest, err = record.Next(rest)
			must(o.t, err)
			must(o.t, b.CheckCRC())
			ours = append(ours, "batch -> "+show(o.t, b))
		}
		if o.codecs {
			continue
		}
		ours = append(ours, "txnindex -> "+hex.EncodeToString(o.file(s.Base, segment.TxnIndexSuffix)))
		if i == len(segments)-1 {
			continue
		}
		ours = append(ours, "bytes -> "+hex.EncodeToString(data), "index -> "+hex.EncodeToString(o.file(s.Base, segment.IndexSuffix)),
			"timeindex -> "+hex.EncodeToString(o.file(s.Base, segment.TimeIndexSuffix)))
	}
	for i := range max(len(ours), len(o.kafka)) {
		if i == len(ours) || i == len(o.kafka) || ours[i] != o.kafka[i] {
			o.t.Fatalf("before line %d the logs differ:\nours\n%s\nKafka's\n%s", o.line, at(ours, i), at(o.kafka, i))
		}
	}
}

// at gives the lines around one.
func at(lines []string, i int) string {
	var shown []string
	for _, line := range lines[min(max(i-3, 0), len(lines)):min(i+2, len(lines))] {
		shown = append(shown, line[:min(len(line), 400)])
	}
	return strings.Join(shown, "\n")
}

func (o *oracle) file(base protocol.Offset, suffix string) []byte {
	data, err := vfs.ReadFile(o.disk, path.Join(testDir, segment.FileName(base, suffix)))
	if errors.Is(err, fs.ErrNotExist) && suffix == segment.TxnIndexSuffix {
		return nil
	}
	must(o.t, err)
	return data
}

// show tells everything that a batch says, whatever the compressor made of it, as testdata/oracle does.
func show(t *testing.T, b record.Batch) string {
	flag := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	horizon := int64(-1)
	if b.HasDeleteHorizon() {
		horizon = b.BaseTimestamp()
	}
	line := fmt.Sprintf("%d-%d e%d %s %s%s%s h%d m%d p%d/%d/%d n%d", b.BaseOffset(), b.LastOffset(), b.PartitionLeaderEpoch(), b.Codec(),
		flag(b.IsLogAppendTime(), "L", "C"), flag(b.IsTransactional(), "T", "-"), flag(b.IsControl(), "C", "-"), horizon, b.MaxTimestamp(),
		b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count())
	for r, err := range record.Records(b, testPool, 1<<20) {
		must(t, err)
		field := func(bytes []byte) string { return flag(bytes == nil, "null", hex.EncodeToString(bytes)) }
		line += fmt.Sprintf(" %d@%d:%s=%s", r.Offset, r.Timestamp, field(r.Key), field(r.Value))
		for _, h := range r.Headers {
			line += "+" + string(h.Key)
			if h.Value != nil {
				line += "~" + hex.EncodeToString(h.Value)
			}
		}
	}
	return line
}
