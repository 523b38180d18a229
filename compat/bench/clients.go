package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/bench/latency"
	"ottla/compat/harness"
)

// clientRecordBytes is the size of the values that real clients send.
const clientRecordBytes = 1024

// clientLines are real clients. What they themselves cost is most of the time, so the broker's processor time says more than the
// speed.
func clientLines(s settings, records int) []*line {
	stored := &clientTopics{records: records, names: map[string]string{}}
	return []*line{
		{name: "Java ProducerPerformance", round: javaProducer{records, clientRecordBytes, 6}.round},
		{name: "kcat (librdkafka) producing", prepare: stored.makeInput(s.dir), round: stored.kcatProduce},
		{name: "franz-go producing", round: func(ctx context.Context, s *server) (figures, error) { return kgoProduce(ctx, s, records) }},
		{name: "kcat (librdkafka) consuming", prepare: stored.fill, round: stored.kcatConsume},
		{name: "franz-go consuming", prepare: stored.fill, round: stored.kgoConsume},
	}
}

// command runs a client to its end.
func command(ctx context.Context, out *bytes.Buffer, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	harness.RecordPid(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", argv[0], err, failed.String())
	}
	return nil
}

// clientFigures are those of a client that moved so many records.
func clientFigures(records, recordBytes int, seconds float64, used usage) figures {
	mb := float64(records * recordBytes)
	return figures{
		{name: "MB/s", value: mb / 1e6 / seconds, higher: true},
		{name: "CPU s/GB", value: used.cpuSeconds / (mb / 1e9)},
		used.peak(),
	}
}

// produced ends the round of a client that wrote a topic.
func (s *server) produced(ctx context.Context, topic string, got figures) (figures, error) {
	batch, err := s.batchFigure(topic)
	return append(got, batch), errors.Join(err, s.ref.DeleteTopic(ctx, topic))
}

// kcatPasses is how often kcat reads the topic in one round: once is over too soon to be measured.
const kcatPasses = 5

type javaProducer struct{ records, recordBytes, partitions int }

// The last line that ProducerPerformance prints.
var performance = regexp.MustCompile(`records sent, ([0-9.]+) records/sec .* ([0-9]+) ms 50th, [0-9]+ ms 95th, ([0-9]+) ms 99th`)

func (j javaProducer) round(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, j.partitions)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	used, err := s.during(func() error {
		return command(ctx, &out, "java", "-Xmx256M", "-cp", harness.KafkaClassPath(),
			"-Dlog4j2.configurationFile="+filepath.Join(harness.CompatDir(), "java", "log4j2-tools.xml"),
			"org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", s.Addr(), "--topic", topic,
			"--num-records", strconv.Itoa(j.records), "--record-size", strconv.Itoa(j.recordBytes), "--throughput", "-1")
	})
	if err != nil {
		return nil, err
	}
	all := performance.FindAllStringSubmatch(out.String(), -1)
	if all == nil {
		return nil, fmt.Errorf("ProducerPerformance printed no result: %s", out.String())
	}
	last := all[len(all)-1]
	perSecond, err := strconv.ParseFloat(last[1], 64)
	if err != nil {
		return nil, err
	}
	out99, err := strconv.ParseFloat(last[3], 64)
	if err != nil {
		return nil, err
	}
	got, err := s.produced(ctx, topic, clientFigures(j.records, j.recordBytes, float64(j.records)/perSecond, used))
	return append(got, figure{name: "p99 ms", value: out99}), err
}

func kgoProduce(ctx context.Context, s *server, records int) (figures, error) {
	topic, err := s.topic(ctx, 6)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addr()), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	value := make([]byte, clientRecordBytes)
	used, err := s.during(func() error {
		var once sync.Once
		var failed error
		for range records {
			client.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					once.Do(func() { failed = err })
				}
			})
		}
		return errors.Join(client.Flush(ctx), failed)
	})
	if err != nil {
		return nil, err
	}
	return s.produced(ctx, topic, clientFigures(records, clientRecordBytes, used.wall.Seconds(), used))
}

// clientTopics are topics that are read again and again, and the file that kcat sends.
type clientTopics struct {
	records int
	input   string
	names   map[string]string // by server
}

func (c *clientTopics) makeInput(dir string) func(context.Context, *server) error {
	return func(context.Context, *server) error {
		if c.input != "" {
			return nil
		}
		path := filepath.Join(dir, "kcat-input")
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(file)
		text := strings.Repeat("k", clientRecordBytes) + "\n"
		for range c.records {
			_, _ = out.WriteString(text) // Flush tells
		}
		c.input = path
		return errors.Join(out.Flush(), file.Close())
	}
}

func (c *clientTopics) kcatProduce(ctx context.Context, s *server) (figures, error) {
	topic, err := s.topic(ctx, 6)
	if err != nil {
		return nil, err
	}
	used, err := s.during(func() error {
		return command(ctx, nil, "kcat", "-P", "-b", s.Addr(), "-t", topic, "-X", "acks=all", "-X", "linger.ms=5", "-l", c.input)
	})
	if err != nil {
		return nil, err
	}
	return s.produced(ctx, topic, clientFigures(c.records, clientRecordBytes, used.wall.Seconds(), used))
}

// fill writes the topic that is read.
func (c *clientTopics) fill(ctx context.Context, s *server) error {
	if c.names[s.Addr()] != "" {
		return nil
	}
	topic, err := s.topic(ctx, 1)
	if err != nil {
		return err
	}
	c.names[s.Addr()] = topic
	conn, err := openProduce(ctx, s.Addr(), newProduceFrame(topic, 0, newBatch(16, 16<<10)), false)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.pipeline(c.records/16, 5, &latency.Histogram{})
}

func (c *clientTopics) kcatConsume(ctx context.Context, s *server) (figures, error) {
	used, err := s.during(func() error {
		for range kcatPasses {
			if err := command(ctx, nil, "kcat", "-C", "-b", s.Addr(), "-t", c.names[s.Addr()], "-o", "beginning", "-c", strconv.Itoa(c.records/16*16), "-q", "-f", ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return clientFigures(kcatPasses*c.records, clientRecordBytes, used.wall.Seconds(), used), nil
}

func (c *clientTopics) kgoConsume(ctx context.Context, s *server) (figures, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addr()), kgo.ConsumeTopics(c.names[s.Addr()]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	used, err := s.during(func() error {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for left := c.records / 16 * 16; left > 0; {
			fetches := client.PollFetches(limited)
			if errs := fetches.Errors(); len(errs) > 0 {
				return errs[0].Err
			}
			left -= fetches.NumRecords()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return clientFigures(c.records, clientRecordBytes, used.wall.Seconds(), used), nil
}
