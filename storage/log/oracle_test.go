package log

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/storage/checkpoint"
	"ottla/storage/segment"
	"ottla/storage/vfs"
)

// oracle replays a script that Apache Kafka's own log wrote; see testdata/oracle.
type oracle struct {
	t    *testing.T
	disk *vfs.Mem
	log  *Log
	now  time.Time
	line int
	cuts bool // the script truncates, after which Kafka counts index intervals anew
	done bool // the log is closed
	// The script deletes records up to offsets within batches.
	starts bool
	seen   map[string]int
}

func TestOracle(t *testing.T) {
	for n := 1; n <= 9; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			o := &oracle{t: t, disk: newDisk(1), seen: map[string]int{}}
			file, err := os.Open(fmt.Sprintf("testdata/oracle/script%d.gz", n))
			check(t, err)
			defer func() { check(t, file.Close()) }()
			unzipped, err := gzip.NewReader(file)
			check(t, err)
			lines := bufio.NewScanner(unzipped)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				o.line++
				o.step(lines.Text())
			}
			check(t, lines.Err())
			t.Logf("%v", o.seen)
			if o.seen["append"] < 200 || o.seen["file"] == 0 {
				t.Errorf("the script is too short: %v", o.seen)
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

func (o *oracle) step(text string) {
	command, want, _ := strings.Cut(text, " ->")
	words, want := strings.Fields(command), strings.TrimSpace(want)
	o.seen[words[0]]++
	got := want
	switch words[0] {
	case "options":
		o.create(words[1:])
	case "now":
		o.now = time.UnixMilli(number(words[1]))
		o.log.sawMs.Store(o.now.UnixMilli())
	case "append":
		got = o.append(words[1:])
	case "verify":
		got = o.verify(words[1:])
	case "expire":
		o.log.mu.Lock()
		o.log.producers.Expire(o.now.UnixMilli())
		got = strconv.Itoa(o.log.producers.Len())
		o.log.mu.Unlock()
	case "roll":
		check(o.t, o.log.roll(o.log.end, o.now.UnixMilli()))
	case "hw":
		o.log.SetHighWatermark(protocol.Offset(number(words[1])))
	case "epoch":
		check(o.t, o.log.AssignEpoch(protocol.LeaderEpoch(number(words[1])), protocol.Offset(number(words[2]))))
	case "endfor":
		epoch, end := o.log.EpochEnd(protocol.LeaderEpoch(number(words[1])))
		got = fmt.Sprint(epoch, " ", end)
	case "time":
		got = o.time(number(words[1]))
		if o.starts && want == "none" {
			return // Kafka looks into one segment only, which may lie below the log's start
		}
	case "retain":
		var m Maintenance
		check(o.t, o.log.retain(o.now, &m))
		got = strconv.Itoa(m.SegmentsDeleted)
	case "truncate":
		o.cuts = true
		check(o.t, o.log.TruncateTo(protocol.Offset(number(words[1]))))
	case "start":
		o.starts = true
		check(o.t, o.log.AdvanceLogStart(o.now, protocol.Offset(number(words[1]))))
	case "aborted":
		got = o.aborted(protocol.Offset(number(words[1])), protocol.Offset(number(words[2])))
		want = sortWords(want)
	case "state":
		v := o.log.View()
		if o.starts && v.FirstUnstableOffset == v.LogStartOffset {
			return // Kafka says the beginning of the batch in which the log starts
		}
		if o.cuts && v.FirstUnstableOffset == protocol.NoOffset {
			return // Kafka may say what was before the truncation
		}
		got = fmt.Sprint(v.LogStartOffset, " ", v.LogEndOffset, " ", v.FirstUnstableOffset, " ", v.LatestEpoch, " ", len(o.log.Segments()))
	case "producer":
		got, want = o.producer(number(strings.Fields(want)[0])), strings.TrimSpace(want)
	case "file":
		got = o.file(words[1], want)
	default:
		o.t.Fatalf("line %d: %s", o.line, text)
	}
	if got != want {
		o.t.Fatalf("line %d: %s\n got %s\nwant %s", o.line, command, got, want)
	}
}

func (o *oracle) create(words []string) {
	opts := DefaultOptions()
	opts.SegmentBytes, opts.IndexIntervalBytes, opts.SegmentIndexBytes = number(words[0]), int(number(words[1])), int(number(words[2]))
	opts.SegmentAge = time.Duration(number(words[3])) * time.Millisecond
	opts.RetentionAge = time.Duration(number(words[4])) * time.Millisecond
	opts.RetentionBytes = number(words[5])
	opts.ProducerIDExpiration, opts.VerifyTransactions = 2_000_000_000*time.Millisecond, false
	if len(words) > 6 {
		opts.ProducerIDExpiration, opts.VerifyTransactions = time.Duration(number(words[6]))*time.Millisecond, true
	}
	l, err := Create(testEnv(o.disk), "log/t-0", testTP, protocol.TopicID{}, opts)
	check(o.t, err)
	o.log = l
}

func (o *oracle) append(words []string) string {
	bytes, err := hex.DecodeString(words[3])
	check(o.t, err)
	b, rest, err := record.Next(bytes)
	check(o.t, err)
	if len(rest) > 0 {
		o.t.Fatal("more than one batch")
	}
	e := &Entry{Batch: b, TransactionVersion: int8(number(words[1]))}
	e.Info = record.Info{Count: b.Count(), MaxTimestamp: b.MaxTimestamp()}
	switch words[0] {
	case "marker":
		e.Origin = OriginMarker
	case "coordinator":
		e.Origin = OriginCoordinator
	}
	if len(words) > 4 {
		e.Guard = Guard(number(words[4]))
	}
	check(o.t, o.log.Append(o.now, protocol.LeaderEpoch(number(words[2])), []*Entry{e}))
	var refused *protocol.Error
	switch {
	case errors.As(e.Err, &refused):
		o.seen[refused.Code.String()]++
		return "error " + refused.Code.String()
	case e.Duplicate:
		o.seen["duplicate"]++
		return fmt.Sprint("duplicate ", e.FirstOffset, " ", e.LastOffset, " ", e.LogAppendTimeMs)
	}
	return fmt.Sprint("ok ", e.FirstOffset, " ", e.LastOffset, " ", e.LogAppendTimeMs)
}

func (o *oracle) verify(words []string) string {
	id, epoch := protocol.ProducerID(number(words[0])), protocol.ProducerEpoch(number(words[1]))
	guard, err := o.log.BeginVerification(o.now, id, epoch, int32(number(words[2])), words[3] == "true")
	if err != nil {
		return "error " + protocol.CodeOf(err).String()
	}
	return strconv.Itoa(int(guard))
}

func (o *oracle) time(timestamp int64) string {
	found, ok, err := o.log.OffsetForTime(timestamp)
	if timestamp == -3 {
		found, ok, err = o.log.MaxTimestamp()
	}
	check(o.t, err)
	if !ok {
		return "none"
	}
	return fmt.Sprint(found.TimestampMs, " ", found.Offset, " ", found.LeaderEpoch)
}

// aborted lists the transactions sorted, where Kafka gives them in the order of their markers.
func (o *oracle) aborted(from, to protocol.Offset) string {
	list, err := o.log.AbortedIn(from, to)
	check(o.t, err)
	var words []string
	for _, a := range list {
		words = append(words, fmt.Sprint(a.ProducerID, ":", a.FirstOffset))
	}
	return sortWords(strings.Join(words, " "))
}

func sortWords(text string) string {
	words := strings.Fields(text)
	for i := range words { // few
		for j := i; j > 0 && words[j] < words[j-1]; j-- {
			words[j], words[j-1] = words[j-1], words[j]
		}
	}
	return strings.Join(words, " ")
}

func (o *oracle) producer(id int64) string {
	for _, p := range o.log.ActiveProducers() {
		if int64(p.ProducerID) == id {
			return fmt.Sprint(p.ProducerID, " ", p.Epoch, " ", p.LastSequence, " ", p.LastTimestampMs, " ", p.CoordinatorEpoch, " ", p.CurrentTxnFirstOffset)
		}
	}
	return "none"
}

func (o *oracle) file(name, want string) string {
	if !o.done {
		_, err := o.log.Close(o.now, true)
		check(o.t, err)
		o.done = true
	}
	data, err := vfs.ReadFile(o.disk, path.Join("log/t-0", name))
	if strings.HasSuffix(name, snapshotSuffix) && errors.Is(err, os.ErrNotExist) {
		return want // both keep those of the segments; of others Kafka keeps some longer
	}
	check(o.t, err)
	switch {
	case name == epochFile: // an epoch without a batch is in Kafka's file, and forgotten by the next start
		have, err := checkpoint.ParseEpochs(data)
		check(o.t, err)
		text, err := hex.DecodeString(want)
		check(o.t, err)
		kafka, err := checkpoint.ParseEpochs(text)
		check(o.t, err)
		if slices.Equal(have, checkpoint.EpochsUpTo(kafka, o.log.View().LogEndOffset)) {
			return want
		}
	case strings.HasSuffix(name, segment.LogSuffix):
		return strconv.Itoa(len(data))
	case strings.HasPrefix(name, segment.FileName(o.log.active().Base(), "")):
		// Only Kafka's LogManager trims the files of the active segment, and adds the last time index entry.
		have, kafka := hex.EncodeToString(data), want
		for strings.HasSuffix(kafka, "00000000000000000000000000000000") {
			kafka = kafka[:len(kafka)-16]
		}
		if o.cuts || strings.HasPrefix(have+strings.Repeat("0", len(kafka)), strings.TrimRight(kafka, "0")) {
			return want
		}
	case o.cuts && (strings.HasSuffix(name, segment.IndexSuffix) || strings.HasSuffix(name, segment.TimeIndexSuffix)):
		return want
	}
	return hex.EncodeToString(data)
}
