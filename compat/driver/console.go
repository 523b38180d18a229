package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ottla/compat/suite"
)

// Console is ConsoleProducer and ConsoleConsumer as a client. Keys and headers travel as text; the console producer sends to
// the partitions that its partitioner picks, so topics of its scenarios have one partition, and it tells no offsets.
type Console struct {
	process *Process
	addr    string
	// reference finds how many records there are: the console consumer can only stop after a number of them.
	reference suite.Client
}

// NewConsole returns the console tools as a client.
func NewConsole(p *Process, addr string, reference suite.Client) *Console {
	return &Console{p, addr, reference}
}

// Name is the column's name.
func (c *Console) Name() string { return "console" }

// Close does nothing: the process belongs to whoever started it.
func (c *Console) Close() error { return nil }

// nullText stands for null on the console.
const nullText = "<null>"

func text(b []byte) string {
	if b == nil {
		return nullText
	}
	return string(b)
}

// Produce runs ConsoleProducer with the records on its standard input.
func (c *Console) Produce(ctx context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	args := []string{
		"--bootstrap-server", c.addr, "--topic", o.Topic,
		"--request-timeout-ms", "100000", // it would send again what is not answered within 1.5 s
		"--reader-property", "null.marker=" + nullText,
		"--command-property", "linger.ms=" + strconv.Itoa(o.LingerMs),
		"--command-property", "enable.idempotence=" + strconv.FormatBool(o.Idempotent),
	}
	if o.Codec != "" {
		args = append(args, "--compression-codec", o.Codec)
	}
	if o.Acks != "" {
		args = append(args, "--request-required-acks", o.Acks)
	}
	if o.BatchBytes > 0 {
		args = append(args, "--max-partition-memory-bytes", strconv.Itoa(o.BatchBytes))
	}
	if o.MaxRequestBytes > 0 {
		args = append(args, "--command-property", "max.request.size="+strconv.Itoa(o.MaxRequestBytes))
	}
	if o.OneByOne {
		args = append(args, "--sync")
	}
	input, more := lines(records)
	result, err := c.process.Tool(ctx, "ConsoleProducer", input, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	ack := suite.Ack{Offset: -1, Timestamp: -1}
	if strings.Contains(result.Stderr, "RecordTooLargeException") {
		ack.Err = "MESSAGE_TOO_LARGE"
	} else if result.Exit != 0 || strings.Contains(result.Stderr, "ERROR") {
		return nil, fmt.Errorf("ConsoleProducer: %s", result)
	}
	return slices.Repeat([]suite.Ack{ack}, len(records)), nil
}

// lines are the records as the line reader takes them, and the properties that tell it which columns there are.
func lines(records []suite.Record) (string, []string) {
	headed := slices.ContainsFunc(records, func(r suite.Record) bool { return len(r.Headers) > 0 })
	keyed := slices.ContainsFunc(records, func(r suite.Record) bool { return r.Key != nil })
	var input strings.Builder
	for _, r := range records {
		if headed {
			var headers []string
			for _, h := range r.Headers {
				headers = append(headers, h.Key+":"+text(h.Value))
			}
			input.WriteString(strings.Join(headers, ",") + "\t")
		}
		if keyed {
			input.WriteString(text(r.Key) + "\t")
		}
		input.WriteString(text(r.Value) + "\n")
	}
	return input.String(), []string{
		"--reader-property", "parse.headers=" + strconv.FormatBool(headed),
		"--reader-property", "parse.key=" + strconv.FormatBool(keyed),
	}
}

// Consume runs ConsoleConsumer on each partition for as many records as the reference finds up to the end.
func (c *Console) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	var all []suite.Record
	for _, partition := range slices.Sorted(maps.Keys(o.From)) {
		from, count := o.From[partition], o.Count
		if from == suite.Latest && count == 0 {
			continue
		}
		if count == 0 {
			there, err := c.reference.Consume(ctx, suite.ConsumeOptions{Topic: o.Topic, From: map[int32]int64{partition: from}, ReadCommitted: o.ReadCommitted, Reset: o.Reset})
			if err != nil {
				return nil, err
			}
			if count = len(there); count == 0 {
				continue
			}
		}
		records, err := c.consumePartition(ctx, o, partition, from, count)
		if err != nil {
			return all, err
		}
		all = append(all, records...)
	}
	return all, nil
}

func (c *Console) consumePartition(ctx context.Context, o suite.ConsumeOptions, partition int32, from int64, count int) ([]suite.Record, error) {
	start := strconv.FormatInt(from, 10)
	switch from {
	case suite.Earliest:
		start = "earliest"
	case suite.Latest:
		start = "latest"
	}
	args := []string{
		"--bootstrap-server", c.addr, "--topic", o.Topic, "--partition", strconv.Itoa(int(partition)), "--offset", start,
		"--max-messages", strconv.Itoa(count),
	}
	for _, what := range []string{"timestamp", "partition", "offset", "key", "headers"} {
		args = append(args, "--formatter-property", "print."+what+"=true")
	}
	args = append(args, "--formatter-property", "null.literal="+nullText)
	if o.ReadCommitted {
		args = append(args, "--isolation-level", "read_committed")
	}
	return c.runConsumer(ctx, args)
}

// ReadInGroup runs ConsoleConsumer in a group; it can only stop after a number of records, and it does not die.
func (c *Console) ReadInGroup(ctx context.Context, o suite.MemberOptions, _ <-chan struct{}) ([]suite.Record, error) {
	if o.Count == 0 || o.Die {
		return nil, fmt.Errorf("ConsoleConsumer reads a number of records and then leaves its group")
	}
	args := []string{
		"--bootstrap-server", c.addr, "--topic", o.Topic, "--group", o.Group, "--from-beginning", "--max-messages", strconv.Itoa(o.Count),
		"--command-property", "session.timeout.ms=" + strconv.Itoa(o.SessionMs),
		"--command-property", "heartbeat.interval.ms=" + strconv.Itoa(o.SessionMs/10),
	}
	for _, what := range []string{"timestamp", "partition", "offset", "key", "headers"} {
		args = append(args, "--formatter-property", "print."+what+"=true")
	}
	return c.runConsumer(ctx, append(args, "--formatter-property", "null.literal="+nullText))
}

func (c *Console) runConsumer(ctx context.Context, args []string) ([]suite.Record, error) {
	result, err := c.process.Tool(ctx, "consumer.ConsoleConsumer", "", args...)
	if err != nil {
		return nil, err
	}
	if result.Exit != 0 {
		return nil, fmt.Errorf("ConsoleConsumer: %s", result)
	}
	var records []suite.Record
	for line := range strings.Lines(result.Stdout) {
		r, err := parseConsole(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

// parseConsole reads one line of the default formatter: CreateTime:N, Partition:N, Offset:N, headers, key, value.
func parseConsole(line string) (suite.Record, error) {
	var r suite.Record
	fields := strings.SplitN(line, "\t", 6)
	if len(fields) != 6 {
		return r, fmt.Errorf("ConsoleConsumer printed %q", line)
	}
	kind, timestamp, _ := strings.Cut(fields[0], ":")
	r.LogAppend = kind == "LogAppendTime"
	if _, err := fmt.Sscanf(fields[1]+" "+fields[2]+" "+timestamp, "Partition:%d Offset:%d %d", &r.Partition, &r.Offset, &r.Timestamp); err != nil {
		return r, fmt.Errorf("ConsoleConsumer printed %q: %w", line, err)
	}
	if fields[3] != "NO_HEADERS" {
		for pair := range strings.SplitSeq(fields[3], ",") {
			key, value, _ := strings.Cut(pair, ":")
			r.Headers = append(r.Headers, suite.Header{Key: key, Value: bytesOf(value)})
		}
	}
	r.Key, r.Value = bytesOf(fields[4]), bytesOf(fields[5])
	return r, nil
}

func bytesOf(text string) []byte {
	if text == nullText {
		return nil
	}
	return []byte(text)
}
