package driver

import (
	"context"
	"encoding/json"
	"fmt"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// Client is the client library behind a driver process, speaking to one address.
type Client struct {
	process *Process
	name    string
	addr    string
}

// NewClient returns a client under the given column name. The process is shared and not closed by it.
func NewClient(p *Process, name, addr string) *Client { return &Client{p, name, addr} }

// Name is the column's name.
func (c *Client) Name() string { return c.name }

// Close does nothing: the process belongs to whoever started it.
func (c *Client) Close() error { return nil }

// Explain tells the program's connections to the server, and what it said last.
func (c *Client) Explain() string {
	pid := c.process.cmd.Process.Pid
	return fmt.Sprintf("the %s driver (pid %d) has %s\nit said last:\n%s",
		c.process.name, pid, harness.Connections(pid, c.addr), harness.Tail(c.process.logPath, 8))
}

// args are the fields of an options struct and more, with the address.
func (c *Client) args(options any, more ...any) map[string]any {
	args := map[string]any{}
	if options != nil {
		data, err := json.Marshal(options)
		if err == nil {
			err = json.Unmarshal(data, &args)
		}
		if err != nil {
			panic("options that are no JSON object: " + err.Error())
		}
	}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	args["bootstrap"] = c.addr
	return args
}

func call[T any](ctx context.Context, c *Client, op string, args map[string]any) (T, error) {
	var result T
	err := c.process.call(ctx, op, args, &result, nil, nil)
	return result, err
}

// Produce sends the records and waits for all acknowledgements.
func (c *Client) Produce(ctx context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	return call[[]suite.Ack](ctx, c, "produce", c.args(o, "records", records))
}

// Stream produces until stop is closed.
func (c *Client) Stream(ctx context.Context, o suite.StreamOptions, stop <-chan struct{}) ([]suite.Ack, error) {
	var acks []suite.Ack
	err := c.process.call(ctx, "stream", c.args(o), &acks, o.OnAck, stop)
	return acks, err
}

// Consume reads as told by the options.
func (c *Client) Consume(ctx context.Context, o suite.ConsumeOptions) ([]suite.Record, error) {
	var records []suite.Record
	err := c.process.call(ctx, "consume", c.args(o), &records, o.OnRecord, nil)
	return records, err
}

// ConsumeNear is Consume by a client in a rack, and tells how many bytes came from each broker: {"op":"consume_near",…,"rack"} is answered
// by {"records","bytes":{"1":5}}.
func (c *Client) ConsumeNear(ctx context.Context, rack string, o suite.ConsumeOptions) ([]suite.Record, map[int32]int, error) {
	var answer struct {
		Records []suite.Record
		Bytes   map[int32]int
	}
	err := c.process.call(ctx, "consume_near", c.args(o, "rack", rack), &answer, o.OnRecord, nil)
	return answer.Records, answer.Bytes, err
}

// ReadInGroup reads as a member of a group.
func (c *Client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	var records []suite.Record
	err := c.process.call(ctx, "member", c.args(o), &records, o.OnRecord, stop)
	return records, err
}

// Commit sets what a group without members has committed: {"op":"commit","group","topic","offsets":{"0":5}}.
func (c *Client) Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	_, err := call[any](ctx, c, "commit", c.args(nil, "group", group, "topic", topic, "offsets", offsets))
	return err
}

// Committed tells what a group has committed for a topic: {"op":"committed","group","topic"} is answered by {"0":5}.
func (c *Client) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	return call[map[int32]int64](ctx, c, "committed", c.args(nil, "group", group, "topic", topic))
}

// ListOffset asks for the offset at a timestamp or at one of the special values.
func (c *Client) ListOffset(ctx context.Context, topic string, partition int32, at int64) (int64, int64, error) {
	r, err := call[struct{ Offset, Timestamp int64 }](ctx, c, "list_offset", c.args(nil, "topic", topic, "partition", partition, "at", at))
	return r.Offset, r.Timestamp, err
}

// CreateTopic creates a topic with one replica a partition.
func (c *Client) CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error {
	_, err := call[any](ctx, c, "create_topic", c.args(nil, "topic", topic, "partitions", partitions, "configs", configs))
	return err
}

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	_, err := call[any](ctx, c, "delete_topic", c.args(nil, "topic", topic))
	return err
}

// CreatePartitions raises the number of partitions to total.
func (c *Client) CreatePartitions(ctx context.Context, topic string, total int) error {
	_, err := call[any](ctx, c, "create_partitions", c.args(nil, "topic", topic, "total", total))
	return err
}

// Partitions counts the partitions and fails if one has no leader.
func (c *Client) Partitions(ctx context.Context, topic string) (int, error) {
	return call[int](ctx, c, "partitions", c.args(nil, "topic", topic))
}

// Topics lists the names of all topics that are not internal.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	return call[[]string](ctx, c, "topics", c.args(nil))
}

// TopicConfigs reads a topic's configuration.
func (c *Client) TopicConfigs(ctx context.Context, topic string) (map[string]string, error) {
	return call[map[string]string](ctx, c, "topic_configs", c.args(nil, "topic", topic))
}

// DeleteRecords deletes what lies before an offset; Latest means all.
func (c *Client) DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error) {
	return call[int64](ctx, c, "delete_records", c.args(nil, "topic", topic, "partition", partition, "before", before))
}
