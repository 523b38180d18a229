package kcat

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// Delimiters between the messages and between key and value on kcat's input; no scenario's text holds them.
const (
	messageDelimiter = "\x1e"
	keyDelimiter     = "\x1f"
)

// Client runs kcat against one address.
type Client struct {
	Addr string
}

// New returns a client for the server at addr.
func New(addr string) *Client { return &Client{Addr: addr} }

// Name is the column's name.
func (c *Client) Name() string { return "kcat" }

// Close does nothing: every call is a process that has ended.
func (c *Client) Close() error { return nil }

// Run runs kcat to its end and returns what it printed on either stream and its exit code.
func (c *Client) Run(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr string, exit int, err error) {
	cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", c.Addr}, args...)...)
	cmd.Stdin = stdin
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err = cmd.Run()
	if ctx.Err() != nil {
		return out.String(), diag.String(), -1, fmt.Errorf("kcat did not end: %w\n%s", ctx.Err(), diag.String())
	}
	if _, exited := err.(*exec.ExitError); exited {
		err = nil
	}
	return out.String(), diag.String(), cmd.ProcessState.ExitCode(), err
}

func produceArgs(o suite.ProduceOptions) []string {
	args := []string{
		"-P", "-t", o.Topic, "-E", "-D", messageDelimiter, "-vvv", "-X", "topic.produce.offset.report=true",
		"-X", "linger.ms=" + strconv.Itoa(o.LingerMs), "-X", "request.timeout.ms=100000",
	}
	if o.Codec != "" {
		args = append(args, "-z", o.Codec)
	}
	if o.Acks != "" {
		args = append(args, "-X", "acks="+o.Acks)
	}
	if o.Idempotent {
		args = append(args, "-X", "enable.idempotence=true")
	}
	if o.OneByOne {
		args = append(args, "-X", "batch.num.messages=1")
	}
	if o.BatchBytes > 0 {
		args = append(args, "-X", "batch.size="+strconv.Itoa(o.BatchBytes))
	}
	if o.MaxRequestBytes > 0 {
		args = append(args, "-X", "message.max.bytes="+strconv.Itoa(o.MaxRequestBytes))
	}
	return args
}

// runOf is a stretch of records that one run of kcat can send.
type runOf struct {
	partition int32
	headers   string
	keyed     bool
	nulls     bool
}

func shape(r suite.Record) (runOf, []string, error) {
	var args []string
	for _, h := range r.Headers {
		args = append(args, "-H", h.Key+"="+string(h.Value))
	}
	// A null value is an empty one under -Z, and needs a key (perhaps null, that is empty, itself): an empty line is skipped.
	s := runOf{r.Partition, strings.Join(args, "\x00"), r.Key != nil || r.Value == nil, r.Value == nil}
	if r.Value != nil && len(r.Value) == 0 || r.Key != nil && len(r.Key) == 0 || r.Timestamp != 0 {
		return s, nil, fmt.Errorf("kcat cannot send empty keys, empty values or timestamps")
	}
	args = append(args, "-p", strconv.Itoa(int(r.Partition)))
	if s.keyed {
		args = append(args, "-K", keyDelimiter)
	}
	if s.nulls {
		args = append(args, "-Z")
	}
	return s, args, nil
}

// Produce runs kcat once for each stretch of records that agree in partition, headers, and having keys and null values.
func (c *Client) Produce(ctx context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	var acks []suite.Ack
	for len(records) > 0 {
		first, extra, err := shape(records[0])
		if err != nil {
			return nil, err
		}
		var input bytes.Buffer
		n := 0
		for ; n < len(records); n++ {
			if s, _, err := shape(records[n]); err != nil || s != first {
				break
			}
			if first.keyed {
				input.Write(records[n].Key)
				input.WriteString(keyDelimiter)
			}
			input.Write(records[n].Value)
			input.WriteString(messageDelimiter)
		}
		some, err := c.produceRun(ctx, append(produceArgs(o), extra...), &input, n, first.partition)
		if err != nil {
			return nil, err
		}
		acks = append(acks, some...)
		records = records[n:]
	}
	return acks, nil
}

var (
	delivered = regexp.MustCompile(`% Message delivered to partition (\d+)(?: \(offset (-?\d+)\))?`)
	failed    = regexp.MustCompile(`% Delivery failed for message: (.*)`)
)

// produceRun sends n records. kcat reports deliveries without saying of which record; of one partition they come in order.
func (c *Client) produceRun(ctx context.Context, args []string, input io.Reader, n int, partition int32) ([]suite.Ack, error) {
	_, stderr, exit, err := c.Run(ctx, input, args...)
	if err != nil {
		return nil, err
	}
	var acks []suite.Ack
	for line := range strings.Lines(stderr) {
		if ack, ok := parseDelivery(line, partition); ok {
			acks = append(acks, ack)
		}
	}
	if len(acks) != n {
		return nil, fmt.Errorf("kcat exit %d reported %d deliveries for %d records:\n%s", exit, len(acks), n, last(stderr))
	}
	return acks, nil
}

func parseDelivery(line string, partition int32) (suite.Ack, bool) {
	ack := suite.Ack{Partition: partition, Offset: -1, Timestamp: -1}
	if m := delivered.FindStringSubmatch(line); m != nil {
		if m[2] != "" {
			ack.Offset, _ = strconv.ParseInt(m[2], 10, 64)
		}
		return ack, true
	}
	if m := failed.FindStringSubmatch(line); m != nil {
		ack.Err = errorName(m[1])
		return ack, true
	}
	return ack, false
}

// names maps librdkafka's texts to Kafka's names, as far as scenarios expect them.
var names = map[string]string{
	"Broker: Message size too large":           "MESSAGE_TOO_LARGE",
	"Broker: Unknown topic or partition":       "UNKNOWN_TOPIC_OR_PARTITION",
	"Local: Unknown topic":                     "UNKNOWN_TOPIC_OR_PARTITION",
	"Local: Unknown partition":                 "UNKNOWN_TOPIC_OR_PARTITION",
	"Broker: Offset out of range":              "OFFSET_OUT_OF_RANGE",
	"Broker: Broker failed to validate record": "INVALID_RECORD",
}

func errorName(text string) string {
	for known, name := range names {
		if strings.Contains(text, known) {
			return name
		}
	}
	return strings.TrimSpace(text)
}

// Stream feeds kcat's standard input until stop is closed. kcat looks at deliveries only when it reads the next message, so it
// is fed without waiting for them; its own queue, of the size of the window, and the pipe hold the feeder back.
func (c *Client) Stream(ctx context.Context, o suite.StreamOptions, stop <-chan struct{}) ([]suite.Ack, error) {
	args := append([]string{"-b", c.Addr}, produceArgs(o.ProduceOptions)...)
	args = append(args, "-p", "0", "-X", "message.timeout.ms=600000", "-X", "queue.buffering.max.messages="+strconv.Itoa(max(o.Window, 1)))
	cmd := exec.CommandContext(ctx, "kcat", args...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	harness.RecordPid(cmd.Process.Pid)
	sent := make(chan int, 1)
	go func() {
		n := feed(input, o.Prefix, stop, ctx.Done())
		_ = input.Close()
		sent <- n
	}()
	var acks []suite.Ack
	var rest strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		ack, ok := parseDelivery(lines.Text(), 0)
		if !ok {
			rest.WriteString(lines.Text() + "\n")
			continue
		}
		acks = append(acks, ack)
		if o.OnAck != nil {
			o.OnAck(len(acks))
		}
	}
	err = cmd.Wait()
	if n := <-sent; n != len(acks) {
		return acks, fmt.Errorf("kcat reported %d of %d deliveries (%w):\n%s", len(acks), n, err, last(rest.String()))
	}
	return acks, nil
}

// feed writes numbered messages until it is told to stop, and returns how many.
func feed(input io.Writer, prefix string, stop, gone <-chan struct{}) int {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return n
		case <-gone:
			return n
		default:
		}
		if _, err := io.WriteString(input, prefix+strconv.Itoa(n)+messageDelimiter); err != nil {
			return n
		}
	}
}

// last shortens kcat's diagnostics for an error message.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// debug says whether OTTLA_COMPAT_KCAT_DEBUG asks for librdkafka's own log on standard error.
func debug() []string {
	if d := os.Getenv("OTTLA_COMPAT_KCAT_DEBUG"); d != "" {
		return []string{"-d", d}
	}
	return nil
}
