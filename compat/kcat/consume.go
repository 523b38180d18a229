package kcat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// format makes kcat print, for each record, a line of numbers with the lengths of key and value (-1 is null), then key and
// value themselves, then the headers and an end of line.
const format = `%p %o %T %K %S\n%k%s%h\n`

// Consume runs kcat once for each partition, in order of their numbers.
func (c *Client) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	var all []suite.Record
	for _, partition := range slices.Sorted(maps.Keys(o.From)) {
		records, err := c.consumePartition(ctx, o, partition, o.From[partition])
		all = append(all, records...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func consumeArgs(o suite.ConsumeOptions, partition int32, from int64) []string {
	start := strconv.FormatInt(from, 10)
	switch from {
	case suite.Earliest:
		start = "beginning"
	case suite.Latest:
		start = "end"
	}
	reset := o.Reset
	if reset == "" || reset == "none" {
		reset = "error"
	}
	isolation := "read_uncommitted"
	if o.ReadCommitted {
		isolation = "read_committed"
	}
	args := []string{
		"-C", "-E", "-t", o.Topic, "-p", strconv.Itoa(int(partition)), "-o", start, "-u", "-f", format,
		"-X", "topic.auto.offset.reset=" + reset, "-X", "isolation.level=" + isolation, "-X", "check.crcs=true",
	}
	switch {
	case o.UntilValue != "": // ended from outside
	case o.Count > 0:
		args = append(args, "-c", strconv.Itoa(o.Count))
	default:
		args = append(args, "-e")
	}
	if o.MaxWaitMs > 0 {
		wait := strconv.Itoa(min(o.MaxWaitMs, 300000))
		args = append(args, "-X", "fetch.wait.max.ms="+wait, "-X", "socket.timeout.ms=300000")
	}
	if o.MaxFetchBytes > 0 {
		args = append(args, "-X", "fetch.message.max.bytes="+strconv.Itoa(o.MaxFetchBytes))
	}
	return append(args, debug()...)
}

func (c *Client) consumePartition(ctx context.Context, o suite.ConsumeOptions, partition int32, from int64) ([]suite.Record, error) {
	cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", c.Addr}, consumeArgs(o, partition, from)...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	harness.RecordPid(cmd.Process.Pid)
	var records []suite.Record
	in := bufio.NewReader(stdout)
	for {
		var r suite.Record
		if r, err = readRecord(in); err != nil {
			break
		}
		records = append(records, r)
		if o.OnRecord != nil {
			o.OnRecord(len(records))
		}
		if o.UntilValue != "" && string(r.Value) == o.UntilValue {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return records, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if wait := cmd.Wait(); wait != nil && err == nil {
		err = &suite.KafkaError{Name: errorName(stderr.String()), Message: fmt.Sprintf("kcat: %v", wait)}
	}
	return records, err
}

// readRecord reads one record in the format above.
func readRecord(in *bufio.Reader) (suite.Record, error) {
	var r suite.Record
	line, err := in.ReadString('\n')
	if err != nil {
		return r, err
	}
	var keyLen, valueLen int
	if _, err := fmt.Sscan(line, &r.Partition, &r.Offset, &r.Timestamp, &keyLen, &valueLen); err != nil {
		return r, fmt.Errorf("kcat printed %q: %w", line, err)
	}
	if r.Key, err = readBytes(in, keyLen); err != nil {
		return r, err
	}
	if r.Value, err = readBytes(in, valueLen); err != nil {
		return r, err
	}
	headers, err := in.ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("kcat's headers: %w", err)
	}
	for pair := range strings.SplitSeq(strings.TrimSuffix(headers, "\n"), ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			r.Headers = append(r.Headers, suite.Header{Key: key, Value: []byte(value)})
		}
	}
	return r, nil
}

func readBytes(in *bufio.Reader, n int) ([]byte, error) {
	if n < 0 {
		return nil, nil
	}
	b := make([]byte, n)
	_, err := io.ReadFull(in, b)
	return b, err
}

// ListOffset runs kcat's query mode, which tells no timestamp.
func (c *Client) ListOffset(ctx context.Context, topic string, partition int32, at int64) (int64, int64, error) {
	out, diag, exit, err := c.Run(ctx, nil, "-Q", "-t", fmt.Sprintf("%s:%d:%d", topic, partition, at))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(out)
	if exit != 0 || len(fields) != 4 {
		return 0, 0, fmt.Errorf("kcat -Q exit %d: %s%s", exit, out, last(diag))
	}
	offset, err := strconv.ParseInt(fields[3], 10, 64)
	return offset, -1, err
}

// Partitions reads the metadata that kcat -L prints.
func (c *Client) Partitions(ctx context.Context, topic string) (int, error) {
	out, diag, exit, err := c.Run(ctx, nil, "-L", "-J", "-t", topic)
	if err != nil {
		return 0, err
	}
	var listing struct {
		Topics []struct {
			Topic      string
			Partitions []struct{ Partition, Leader int }
		}
	}
	if err := json.Unmarshal([]byte(out), &listing); err != nil || exit != 0 || len(listing.Topics) != 1 {
		return 0, fmt.Errorf("kcat -L exit %d: %s%s (%w)", exit, out, last(diag), err)
	}
	for _, p := range listing.Topics[0].Partitions {
		if p.Leader < 0 {
			return 0, fmt.Errorf("partition %d has no leader", p.Partition)
		}
	}
	return len(listing.Topics[0].Partitions), nil
}
