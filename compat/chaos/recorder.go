package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/history"
)

// topics are those that the workers use, with their partitions. A partition's number
// in the history is the topic's place times mostPartitions, plus its own.
var topics = []struct {
	name       string
	partitions int32
}{{"chaos-plain", 3}, {"chaos-txn", 3}, {"chaos-in", 2}, {"chaos-out", 2}}

const (
	plain = iota
	transactional
	input
	output

	mostPartitions = 16
)

func partitionOf(topic string, n int32) int32 {
	for i, t := range topics {
		if t.name == topic {
			return int32(i)*mostPartitions + n
		}
	}
	panic("a topic that nobody uses: " + topic)
}

// recorder keeps the history.
type recorder struct {
	began  time.Time
	values atomic.Int64

	mu      sync.Mutex
	ops     []history.Op
	sources map[int64]int64 // of a copied value: what it was made of
	strange []string        // what no client should be told
}

func newRecorder() *recorder { return &recorder{began: time.Now(), sources: map[int64]int64{}} }

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// add adds an operation that ends now.
func (r *recorder) add(op history.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.End = r.now()
	r.ops = append(r.ops, op)
}

// odd notes an error that is no answer to any fault.
func (r *recorder) odd(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.strange) < 20 {
		r.strange = append(r.strange, fmt.Sprintf("%.1f s: ", time.Since(r.began).Seconds())+fmt.Sprintf(format, args...))
	}
}

// record makes a record with a value of its own; source is what it is a copy of, or 0.
func (r *recorder) record(topic int, n int32, source int64) (*kgo.Record, history.Record) {
	value := r.values.Add(1)
	text := strconv.FormatInt(value, 10)
	if source != 0 {
		text += " " + strconv.FormatInt(source, 10)
		r.mu.Lock()
		r.sources[value] = source
		r.mu.Unlock()
	}
	made := &kgo.Record{Topic: topics[topic].name, Partition: n, Value: []byte(text)}
	return made, history.Record{Partition: partitionOf(made.Topic, n), Offset: history.NoOffset, Value: value}
}

// taken is a record that was read.
func taken(got *kgo.Record) history.Record {
	return history.Record{Partition: partitionOf(got.Topic, got.Partition), Offset: got.Offset, Value: valueOf(got)}
}

// valueOf is the value of a record. What holds none becomes one that nobody sent.
func valueOf(got *kgo.Record) int64 {
	first, _, _ := strings.Cut(string(got.Value), " ")
	value, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return -1
	}
	return value
}
