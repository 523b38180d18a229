package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Special offsets and timestamps, as ListOffsets numbers them.
const (
	Latest                int64 = -1
	Earliest              int64 = -2
	MaxTimestamp          int64 = -3
	EarliestLocal         int64 = -4
	LatestTiered          int64 = -5
	EarliestPendingUpload int64 = -6
)

// Header is one record header. A nil value is null.
type Header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// Record is a record as a client sees it. Key and Value: nil is null.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"` // ms since the epoch; 0 when producing: the client's clock
	LogAppend bool     `json:"log_append,omitempty"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers,omitempty"`
}

// ProduceOptions are the settings of one short-lived producer.
type ProduceOptions struct {
	Topic      string `json:"topic"`
	Acks       string `json:"acks"`  // 0, 1, all (default)
	Codec      string `json:"codec"` // none (default), gzip, snappy, lz4, zstd
	Idempotent bool   `json:"idempotent"`
	LingerMs   int    `json:"linger_ms"`
	// BatchBytes is the client's batch size; MaxRequestBytes the largest record it lets pass. Zero: the client's default.
	BatchBytes      int `json:"batch_bytes,omitempty"`
	MaxRequestBytes int `json:"max_request_bytes,omitempty"`
	// OneByOne waits for each record's acknowledgement before the next is sent, so each is a batch of its own.
	OneByOne bool `json:"one_by_one,omitempty"`
}

// Ack is what the client was told about one record. Err is Kafka's error name, empty if it went well. Offset is -1 where the
// client learns none.
type Ack struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"`
	Err       string `json:"err,omitempty"`
}

// ConsumeOptions say what to read. From holds the partitions with their starting offsets (or Earliest, Latest).
type ConsumeOptions struct {
	Topic string          `json:"topic"`
	From  map[int32]int64 `json:"from"`
	// Count ends the reading after so many records; 0 reads up to the end offsets found when it began.
	Count         int    `json:"count"`
	ReadCommitted bool   `json:"read_committed"`
	Reset         string `json:"reset"` // what to do out of range: none (default), earliest, latest
	MaxWaitMs     int    `json:"max_wait_ms,omitempty"`
	MaxFetchBytes int    `json:"max_fetch_bytes,omitempty"` // per partition
	// UntilValue ends the reading with the record of this value, whatever Count says.
	UntilValue string `json:"until_value,omitempty"`
	// OnRecord, if set, is told how many records were read so far.
	OnRecord func(int) `json:"-"`
}

// StreamOptions describe a producer that goes on until it is told to stop: record i has the value Prefix followed by i.
type StreamOptions struct {
	ProduceOptions
	Prefix string `json:"prefix"`
	Window int    `json:"window"` // records under way at most
	// PauseMs is how long it waits after each record; only franz-go and Java do.
	PauseMs int `json:"pause_ms,omitempty"`
	// OnAck is told how many records were acknowledged so far.
	OnAck func(int) `json:"-"`
}

// MemberOptions say how to read as a member of a group, from the earliest record where the group has committed nothing, or
// something that lies outside the log (auto.offset.reset=earliest). What was read is committed as the reading goes on, and all of
// it before the member leaves.
type MemberOptions struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	SessionMs int    `json:"session_ms"`
	// Protocol is the group protocol: classic (default) or consumer (KIP-848), where the server says how long a session is.
	Protocol string `json:"protocol,omitempty"`
	// InstanceID makes the member a static one, which comes back as itself.
	InstanceID string `json:"instance_id,omitempty"`
	// Pattern is a regular expression by which the member subscribes instead of Topic; only with the protocol consumer.
	Pattern string `json:"pattern,omitempty"`
	// Assignor is the one that the member asks the coordinator for: uniform or range; empty: none. Only with the protocol consumer.
	Assignor string `json:"assignor,omitempty"`
	// Count ends the reading after so many records, which are all committed; 0 reads until told to stop.
	Count int `json:"count"`
	// Die ends it then like a crash: nothing is committed any more, and the group is not told.
	Die bool `json:"die,omitempty"`
	// Commit is how many of the records are committed: 0 all, as they are read; a positive number exactly the first so many, with
	// one commit of the positions after them, and nothing later; -1 none.
	Commit int `json:"commit,omitempty"`
	// Seek moves the member to another position in each partition, the first time that it is given it: to the beginning, to an
	// offset (SeekAt), or to the first record of a time (SeekAt, ms since the epoch), which the client asks for by itself. Empty: it
	// starts where the group has committed.
	Seek   string `json:"seek,omitempty"`
	SeekAt int64  `json:"seek_at,omitempty"`
	// OnRecord, if set, is told how many records were read so far.
	OnRecord func(int) `json:"-"`
}

// Client is what every client can do.
type Client interface {
	Name() string
	Produce(ctx context.Context, opts ProduceOptions, records []Record) ([]Ack, error)
	Consume(ctx context.Context, opts ConsumeOptions) ([]Record, error)
	Close() error
}

// Streamer is a client that can produce until told to stop; it returns the acknowledgement of every record sent, in order.
// Acks of records that never succeeded have Err set.
type Streamer interface {
	Stream(ctx context.Context, opts StreamOptions, stop <-chan struct{}) ([]Ack, error)
}

// GroupMember is a client that reads as a member of a group, until it has read enough or is told to stop. A nil stop is never
// closed.
type GroupMember interface {
	ReadInGroup(ctx context.Context, opts MemberOptions, stop <-chan struct{}) ([]Record, error)
}

// GroupAdmin is a client that sets and reads what a group has committed for a topic, by partition. Commit is for groups without
// members; Committed leaves out partitions for which nothing is committed.
type GroupAdmin interface {
	Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error
	Committed(ctx context.Context, group, topic string) (map[int32]int64, error)
}

// OffsetLister is a client that can ask for offsets by time, with the special values above. The timestamp is -1 where the
// client does not tell it.
type OffsetLister interface {
	ListOffset(ctx context.Context, topic string, partition int32, at int64) (offset, timestamp int64, err error)
}

// TopicAdmin is a client that manages topics.
type TopicAdmin interface {
	CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error
	DeleteTopic(ctx context.Context, topic string) error
	CreatePartitions(ctx context.Context, topic string, total int) error
	Topics(ctx context.Context) ([]string, error)
}

// Describer is a client that sees a topic's metadata: Partitions is the number of partitions, and each must have a leader.
type Describer interface {
	Partitions(ctx context.Context, topic string) (int, error)
}

// ConfigReader is a client that reads topic configurations.
type ConfigReader interface {
	TopicConfigs(ctx context.Context, topic string) (map[string]string, error)
}

// RecordDeleter is a client that deletes records before an offset (Latest: all) and returns the new log start.
type RecordDeleter interface {
	DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error)
}

// Explainer is a client that can tell what it said last and which connections it has, for whoever wonders why it hangs.
type Explainer interface {
	Explain() string
}

// KafkaError is an error that a server or a client's own check gave, under Kafka's name.
type KafkaError struct {
	Name    string
	Message string
}

func (e *KafkaError) Error() string { return e.Name + ": " + e.Message }

// ErrorName returns Kafka's name of the error inside err, or "" where there is none.
func ErrorName(err error) string {
	var own *KafkaError
	if errors.As(err, &own) {
		return own.Name
	}
	var theirs *kerr.Error
	if errors.As(err, &theirs) {
		return theirs.Message
	}
	return ""
}

// ErrorNameOfCode is Kafka's name of an error code.
func ErrorNameOfCode(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "NONE"
}

// Values of MemberOptions.Seek.
const (
	SeekBeginning = "beginning"
	SeekOffset    = "offset"
	SeekTime      = "time"
)

// Values makes n records with distinct values of the given size, which compress well, in partition 0.
func Values(prefix string, n, sizeBytes int) []Record {
	records := make([]Record, n)
	for i := range records {
		head := fmt.Sprintf("%s-%d-", prefix, i)
		fill := max(0, sizeBytes-len(head))
		records[i] = Record{Value: []byte(head + strings.Repeat("x", fill))}
	}
	return records
}

// Eventually repeats a question whose answer may lag behind until it is right; one that stays wrong is ended by the context, and
// the last answer is the error.
func Eventually(ctx context.Context, ask func() error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var err error
	for {
		before := err
		if err = ask(); err == nil {
			return nil
		}
		if ctx.Err() != nil && before != nil {
			err = before // the question itself ran out of time: what it said last tells more
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("still: %w", err)
		}
	}
}
