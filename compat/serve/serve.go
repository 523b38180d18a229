package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"ottla/compat/suite"
)

// command is what every command may say; the options of each are decoded from the same line again.
type command struct {
	ID        int    `json:"id"`
	Op        string `json:"op"`
	Target    int    `json:"target"` // of stop
	Bootstrap string `json:"bootstrap"`

	Records    []suite.Record    `json:"records"`
	Topic      string            `json:"topic"`
	Partition  int32             `json:"partition"`
	Partitions int               `json:"partitions"`
	Total      int               `json:"total"`
	At         int64             `json:"at"`
	Before     int64             `json:"before"`
	Configs    map[string]string `json:"configs"`
	Group      string            `json:"group"`
	Offsets    map[int32]int64   `json:"offsets"`

	Transactions []suite.Transaction `json:"transactions"`

	line []byte
}

// server is one conversation.
type server struct {
	open func(addr string) suite.Client
	name func(error) string

	write sync.Mutex
	out   io.Writer
	stops sync.Map // of commands under way, by id: func()
}

// Run takes commands from in until it ends. open gives a client for an address; name gives Kafka's name of an error of its
// library, or "" where it has none.
func Run(in io.Reader, out io.Writer, open func(addr string) suite.Client, name func(error) string) error {
	s := &server{open: open, name: name, out: out}
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c := command{line: line}
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("a command that is no command: %w", err)
		}
		if c.Op == "stop" {
			if stop, ok := s.stops.Load(c.Target); ok {
				stop.(func())()
			}
			continue
		}
		stop := make(chan struct{})
		s.stops.Store(c.ID, sync.OnceFunc(func() { close(stop) }))
		go s.answer(&c, stop)
	}
}

func (s *server) answer(c *command, stop <-chan struct{}) {
	result, err := s.run(c, stop)
	s.stops.Delete(c.ID)
	if err == nil {
		s.say(map[string]any{"id": c.ID, "ok": result})
		return
	}
	name := suite.ErrorName(err)
	if name == "" {
		name = s.name(err)
	}
	s.say(map[string]any{"id": c.ID, "error": name, "message": err.Error()})
}

func (s *server) say(what any) {
	data, err := json.Marshal(what)
	if err != nil {
		panic(err) // maps of plain values
	}
	s.write.Lock()
	defer s.write.Unlock()
	_, _ = s.out.Write(append(data, '\n')) // the other side may be gone
}

// options decodes the options of a command.
func options[O any](c *command) (O, error) {
	var o O
	err := json.Unmarshal(c.line, &o)
	return o, err
}

func (s *server) progress(c *command) func(int) {
	return func(n int) { s.say(map[string]any{"id": c.ID, "progress": n}) }
}

// run runs a command that reads or writes; the rest is administration.
func (s *server) run(c *command, stop <-chan struct{}) (any, error) {
	ctx, client := context.Background(), s.open(c.Bootstrap)
	switch c.Op {
	case "produce":
		o, err := options[suite.ProduceOptions](c)
		if err != nil {
			return nil, err
		}
		return client.Produce(ctx, o, c.Records)
	case "consume":
		o, err := options[suite.ConsumeOptions](c)
		if err != nil {
			return nil, err
		}
		o.OnRecord = s.progress(c)
		return client.Consume(ctx, o)
	case "stream":
		o, err := options[suite.StreamOptions](c)
		if err != nil {
			return nil, err
		}
		o.OnAck = s.progress(c)
		return do(client, func(c suite.Streamer) (any, error) { return c.Stream(ctx, o, stop) })
	case "member":
		o, err := options[suite.MemberOptions](c)
		if err != nil {
			return nil, err
		}
		o.OnRecord = s.progress(c)
		return do(client, func(c suite.GroupMember) (any, error) { return c.ReadInGroup(ctx, o, stop) })
	case "transact":
		o, err := options[suite.TransactOptions](c)
		if err != nil {
			return nil, err
		}
		o.OnOpen = s.progress(c)
		return do(client, func(t suite.Transactor) (any, error) { return t.Transact(ctx, o, c.Transactions, stop) })
	case "copy":
		o, err := options[suite.CopyOptions](c)
		if err != nil {
			return nil, err
		}
		o.OnCopied = s.progress(c)
		return do(client, func(c suite.Copier) (any, error) { return c.CopyInTransactions(ctx, o, stop) })
	}
	return administer(ctx, client, c)
}

func administer(ctx context.Context, client suite.Client, c *command) (any, error) {
	switch c.Op {
	case "list_offset":
		return do(client, func(l suite.OffsetLister) (any, error) {
			offset, timestamp, err := l.ListOffset(ctx, c.Topic, c.Partition, c.At)
			return map[string]int64{"offset": offset, "timestamp": timestamp}, err
		})
	case "create_topic":
		return do(client, func(a suite.TopicAdmin) (any, error) {
			return nil, a.CreateTopic(ctx, c.Topic, c.Partitions, c.Configs)
		})
	case "delete_topic":
		return do(client, func(a suite.TopicAdmin) (any, error) { return nil, a.DeleteTopic(ctx, c.Topic) })
	case "create_partitions":
		return do(client, func(a suite.TopicAdmin) (any, error) { return nil, a.CreatePartitions(ctx, c.Topic, c.Total) })
	case "topics":
		return do(client, func(a suite.TopicAdmin) (any, error) { return a.Topics(ctx) })
	case "partitions":
		return do(client, func(d suite.Describer) (any, error) { return d.Partitions(ctx, c.Topic) })
	case "topic_configs":
		return do(client, func(r suite.ConfigReader) (any, error) { return r.TopicConfigs(ctx, c.Topic) })
	case "delete_records":
		return do(client, func(d suite.RecordDeleter) (any, error) { return d.DeleteRecords(ctx, c.Topic, c.Partition, c.Before) })
	case "commit":
		return do(client, func(a suite.GroupAdmin) (any, error) { return nil, a.Commit(ctx, c.Group, c.Topic, c.Offsets) })
	case "committed":
		return do(client, func(a suite.GroupAdmin) (any, error) { return a.Committed(ctx, c.Group, c.Topic) })
	}
	return nil, fmt.Errorf("no such command: %s", c.Op)
}

// do runs something with a client that can do it.
func do[I any](client suite.Client, what func(I) (any, error)) (any, error) {
	able, ok := client.(I)
	if !ok {
		return nil, fmt.Errorf("%s has no way to do this", client.Name())
	}
	return what(able)
}
