package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"ottla/compat/suite"
)

// fake is a client that can produce and be a member, and no more.
type fake struct{ addr string }

func (f fake) Name() string { return "fake" }
func (f fake) Close() error { return nil }

func (f fake) Produce(_ context.Context, o suite.ProduceOptions, records []suite.Record) ([]suite.Ack, error) {
	if o.Topic == "" {
		return nil, errors.New("no topic")
	}
	return []suite.Ack{{Partition: records[0].Partition, Offset: int64(len(records[0].Value))}}, nil
}

func (f fake) Consume(context.Context, suite.ConsumeOptions) ([]suite.Record, error) {
	return nil, &suite.KafkaError{Name: "OFFSET_OUT_OF_RANGE", Message: "from " + f.addr}
}

func (f fake) ReadInGroup(_ context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	o.OnRecord(o.Count)
	<-stop
	return []suite.Record{{Offset: 7}}, nil
}

// lines is a writer that hands out each line.
type lines chan string

func (l lines) Write(data []byte) (int, error) {
	l <- string(data)
	return len(data), nil
}

func TestConversation(t *testing.T) {
	in, commands := io.Pipe()
	out, done := make(lines, 10), make(chan error)
	go func() {
		done <- Run(in, out, func(addr string) suite.Client { return fake{addr} }, func(error) string { return "NAMED" })
	}()
	for _, step := range []struct{ command, want string }{
		{`{"id":1,"op":"produce","topic":"t","records":[{"partition":3,"value":"AAAA"}]}`, `{"id":1,"ok":[{"partition":3,"offset":3,"timestamp":0}]}`},
		{`{"id":2,"op":"produce"}`, `{"error":"NAMED","id":2,"message":"no topic"}`},
		{`{"id":3,"op":"consume","bootstrap":"there"}`, `{"error":"OFFSET_OUT_OF_RANGE","id":3,"message":"OFFSET_OUT_OF_RANGE: from there"}`},
		{`{"id":4,"op":"member","count":5}`, `{"id":4,"progress":5}`},
		{`{"op":"stop","target":4}`, `{"id":4,"ok":[{"partition":0,"offset":7,"timestamp":0,"key":null,"value":null}]}`},
		{`{"id":5,"op":"topics"}`, `{"error":"NAMED","id":5,"message":"fake has no way to do this"}`},
		{`{"id":6,"op":"dance"}`, `{"error":"NAMED","id":6,"message":"no such command: dance"}`},
	} {
		if _, err := commands.Write([]byte(step.command + "\n")); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(<-out); got != step.want {
			t.Errorf("%s is answered by %s, want %s", step.command, got, step.want)
		}
	}
	_ = commands.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := Run(bytes.NewReader([]byte("no json\n")), io.Discard, nil, nil); err == nil || json.Valid([]byte(err.Error())) {
		t.Errorf("a line that is no command gives %v", err)
	}
}

func TestDue(t *testing.T) {
	records := []suite.Record{{Partition: 0, Offset: 4}, {Partition: 1, Offset: 9}, {Partition: 0, Offset: 5}}
	for _, c := range []struct {
		commit, before int
		want           map[int32]int64
	}{
		{0, 0, map[int32]int64{0: 6, 1: 10}},
		{0, 2, map[int32]int64{0: 6}},
		{0, 3, nil},
		{-1, 0, nil},
		{2, 0, map[int32]int64{0: 5, 1: 10}},
		{2, 1, map[int32]int64{0: 5, 1: 10}},
		{2, 2, nil},
		{4, 0, nil},
	} {
		if got := Due(suite.MemberOptions{Commit: c.commit}, records, c.before); !maps.Equal(got, c.want) {
			t.Errorf("commit %d, %d read before: %v, want %v", c.commit, c.before, got, c.want)
		}
	}
}
