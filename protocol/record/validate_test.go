package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"ottla/protocol"
	"ottla/protocol/compress"
)

var topicPartition = protocol.TopicPartition{Topic: "topic", Partition: 0}

// settings reads the config column of the verdicts; target is the codec to
// store with, or -1 for the producer's.
func settings(t testing.TB, config string) (v Validation, target compress.Codec) {
	t.Helper()
	v = Validation{
		TopicPartition: topicPartition, Now: now, BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3_600_000,
		MaxDecompressed: maxTest, AllowZstd: true,
	}
	target = -1
	for setting := range strings.FieldsSeq(config) {
		name, value, _ := strings.Cut(setting, "=")
		number, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "cleanup.policy":
			v.Compacted = strings.Contains(value, "compact")
		case "message.timestamp.type":
			v.TimestampType = LogAppendTime
		case "message.timestamp.before.max.ms":
			v.BeforeMaxMs = number
		case "message.timestamp.after.max.ms":
			v.AfterMaxMs = number
		case "max.decompressed.message.bytes":
			v.MaxRecordBytes = int(number)
		case "version":
			v.AllowZstd = number >= 7
		case "compression.type":
			if value == "uncompressed" {
				value = "none"
			}
			codec, err := compress.ParseCodec(value)
			if err != nil {
				t.Fatal(err)
			}
			target = codec
		default:
			t.Fatalf("unknown setting %q", name)
		}
	}
	return v, target
}

// appended does what the produce path does with a valid batch.
func appended(b Batch, v Validation, target compress.Codec, info Info) (Batch, error) {
	b = bytes.Clone(b)
	if target >= 0 && target != b.Codec() {
		var err error
		if b, err = Recompress(b, target, 0, v.Pool, maxTest); err != nil {
			return nil, err
		}
	}
	b.SetBaseOffset(0)
	b.SetPartitionLeaderEpoch(7)
	b.SetMaxTimestamp(v.TimestampType, info.MaxTimestamp)
	return b, nil
}

func errorText(bad []RecordError) string {
	var out []string
	for _, e := range bad {
		out = append(out, fmt.Sprintf("%d:%s", e.BatchIndex, e.Message))
	}
	return strings.Join(out, "|")
}

// known lists where we answer otherwise than Apache Kafka, on purpose; see
// testdata/validate/README.md.
func known(ours, theirs protocol.ErrorCode, message string, name string) bool {
	switch {
	case theirs == protocol.None && ours == protocol.InvalidRecord:
		return strings.Contains(message, "offset deltas") || strings.Contains(message, "expected to read")
	case theirs == protocol.None && ours == protocol.UnknownServerError: // recompressed, Kafka numbers anew
		return strings.Contains(message, "offset deltas") || strings.Contains(message, "invalid source or destination buffer") ||
			strings.Contains(message, "gzip: invalid header")
	case theirs == protocol.InvalidRecord && ours == protocol.UnknownServerError: // of a broken zstd frame Kafka sees more
		return strings.Contains(message, "cannot decompress zstd")
	case theirs == protocol.UnknownServerError: // its own crashes
		return name == "length/field=2147483647" || strings.HasSuffix(name, " to 26")
	}
	return false
}

func TestVerdictsOfKafka(t *testing.T) {
	pool := compress.NewPool()
	differ, alike := 0, 0
	for i, row := range table(t, "validate/verdicts.tsv") {
		name, message := row[0], ""
		v, target := settings(t, row[1])
		v.Pool = pool
		input := unbase64(t, row[2])
		number, err := strconv.Atoi(row[3])
		if err != nil {
			t.Fatal(err)
		}
		theirs := protocol.ErrorCode(number)
		var info Info
		batch, err := OneBatch(input)
		before := bytes.Clone(input)
		if err == nil {
			info, err = Validate(batch, v)
		}
		if !bytes.Equal(before, input) {
			t.Fatalf("%s: the batch was changed", name)
		}
		ours, records := protocol.CodeOf(err), ""
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("%s: %v is not an *Error", name, err)
			}
			message, records = refused.Cause.Message, errorText(refused.Records)
		}
		if ours != theirs && known(ours, theirs, message, name) {
			differ++
			continue
		}
		if clientTime := strings.Contains(row[5], "Invalid timestamp type in message"); clientTime && target >= 0 {
			records = row[5] // the name of a Java class in it depends on the codecs
		}
		if ours != theirs || records != row[5] {
			t.Errorf("row %d: %s (%s):\n  we    %d %s %s\n  Kafka %s %s %s (%s)", i+1, name, row[1], ours, message, records, row[3], row[4], row[5], row[8])
			continue
		}
		alike++
		if theirs != protocol.None && theirs != protocol.UnknownServerError && !strings.HasPrefix(row[4], "Produce requests") && !strings.HasPrefix(name, "length/made shorter") && message != row[4] {
			t.Errorf("row %d: %s: the sentences differ:\n  we    %s\n  Kafka %s", i+1, name, message, row[4])
		}
		if err != nil {
			continue
		}
		compareStored(t, name, v, target, batch, info, row)
	}
	t.Logf("%d rows alike, %d differ on purpose", alike, differ)
}

// compareStored holds the batch as we would append it against Kafka's log.
func compareStored(t *testing.T, name string, v Validation, target compress.Codec, batch Batch, info Info, row []string) {
	t.Helper()
	ours, err := appended(batch, v, target, info)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	theirs := one(t, unbase64(t, row[6]))
	if got := strconv.FormatInt(info.MaxTimestamp, 10); got != row[7] {
		t.Errorf("%s: largest timestamp %s, Kafka %s", name, got, row[7])
	}
	if target < 0 || target == batch.Codec() {
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s:\n  we    %x\n  Kafka %x", name, ours, theirs)
		}
		return
	}
	if batch.IsLogAppendTime() && v.TimestampType == CreateTime {
		return // no client does that; Kafka then writes that time into each record
	}
	// Recompressed: the bytes depend on the encoder, and Kafka counts from the
	// timestamp of the first record then. What is read must be the same.
	if got, want := meaning(t, ours, v.Pool), meaning(t, theirs, v.Pool); got != want {
		t.Errorf("%s:\n  we    %s\n  Kafka %s", name, got, want)
	}
}

func meaning(t *testing.T, b Batch, pool *compress.Pool) string {
	text := dump(t, b, pool)
	_, text, _ = strings.Cut(text, "codec=")
	before, after, _ := strings.Cut(text, "baseTimestamp=")
	_, after, _ = strings.Cut(after, " ")
	return before + after
}
