package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/client"
	"ottla/protocol/server"
	"ottla/protocol/wire"
)

// TestMain fails if a goroutine outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	var stacks []byte
	for range 12_000 { // a minute, on a busy machine
		stacks = make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("ottla/protocol/client.(")) {
			os.Exit(code)
		}
		time.Sleep(5 * time.Millisecond)
	}
	os.Stderr.Write(stacks)
	os.Stderr.WriteString("goroutines leaked\n")
	os.Exit(1)
}

// node is a server in memory that answers ApiVersions and hands over the rest.
type node struct {
	*server.Server
	served   map[protocol.APIKey][2]int16
	versions int16 // of ApiVersions
	handle   func(req *server.Request, body kmsg.Request)
}

func newNode(handle func(req *server.Request, body kmsg.Request)) *node {
	n := &node{handle: handle, versions: 5, served: map[protocol.APIKey][2]int16{}}
	for _, api := range protocol.APIs {
		n.served[api.Key] = [2]int16{api.MinVersion, api.MaxVersion}
	}
	n.Server = server.New(n, server.Options{Supported: func(_ protocol.Scope, key protocol.APIKey, version int16) bool {
		if key == protocol.ApiVersions {
			return version <= n.versions
		}
		return version >= n.served[key][0] && version <= n.served[key][1]
	}})
	return n
}

func (n *node) dial() (net.Conn, error) {
	c, s := server.NewPipe()
	n.ServeConn(s, server.Listener{Name: "CONTROLLER", Scope: protocol.OnController})
	return c, nil
}

func (n *node) Handle(req *server.Request) {
	if req.Header.Key == protocol.ApiVersions {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = req.Header.Version
		if req.Unsupported {
			resp.Version, resp.ErrorCode = 0, int16(protocol.UnsupportedVersion)
			resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 18, MaxVersion: n.versions}}
		} else {
			for _, api := range protocol.APIs {
				resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: int16(api.Key), MinVersion: n.served[api.Key][0], MaxVersion: n.served[api.Key][1]})
			}
		}
		req.Reply(resp)
		return
	}
	body, err := wire.DecodeRequest(req.Header, req.Body)
	if err != nil {
		req.CloseConnection(err)
		return
	}
	n.handle(req, body)
}

// echo answers a Heartbeat with its generation as throttle time.
func echo(req *server.Request, body kmsg.Request) {
	resp := body.ResponseKind().(*kmsg.HeartbeatResponse)          //nolint:forcetypeassert // only heartbeats are sent
	resp.ThrottleMillis = body.(*kmsg.HeartbeatRequest).Generation //nolint:forcetypeassert // as above
	req.Reply(resp)
}

func heartbeat(generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Generation = generation
	return req
}

// result is what a callback got.
type result struct {
	resp kmsg.Response
	err  error
}

// ask sends and gives where the result will be.
func ask(c *client.Client, req kmsg.Request, timeout time.Duration) chan result {
	results := make(chan result, 2) // a second call would show
	c.Send(req, timeout, func(resp kmsg.Response, err error) { results <- result{resp, err} })
	return results
}

func (n *node) shut() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.Close(ctx) // connections are cut
}

func TestPipelinedRequestsFromManyGoroutines(t *testing.T) {
	n := newNode(echo)
	defer n.shut()
	c := client.New(n.dial, client.Options{ClientID: "test"})
	defer c.Close()
	var done sync.WaitGroup
	for i := range int32(8) {
		done.Go(func() {
			var waiting []chan result
			for j := range int32(100) {
				waiting = append(waiting, ask(c, heartbeat(i*1000+j), 0))
			}
			for j, results := range waiting {
				got := <-results
				if got.err != nil || got.resp.(*kmsg.HeartbeatResponse).ThrottleMillis != i*1000+int32(j) { //nolint:forcetypeassert // it is one
					t.Errorf("request %d %d: %+v", i, j, got)
				}
			}
		})
	}
	done.Wait()
	if connects := c.Stats.Connects.Load(); connects != 1 {
		t.Errorf("%d connections were made", connects)
	}
}

func TestNegotiation(t *testing.T) {
	var version atomic.Int32
	n := newNode(func(req *server.Request, body kmsg.Request) {
		version.Store(int32(req.Header.Version))
		echo(req, body)
	})
	defer n.shut()
	for _, c := range []struct {
		what                string
		apiVersions         int16
		served              [2]int16
		limit               int16
		want                int32
		unsupported, absent bool
	}{
		{what: "the same", apiVersions: 5, served: [2]int16{0, 4}, limit: 99, want: 4},
		{what: "an older node", apiVersions: 3, served: [2]int16{0, 2}, limit: 99, want: 2},
		{what: "a node with ApiVersions 0 only", apiVersions: 0, served: [2]int16{1, 1}, limit: 99, want: 1},
		{what: "a limit of ours", apiVersions: 5, served: [2]int16{0, 4}, limit: 3, want: 3},
		{what: "a newer node", apiVersions: 5, served: [2]int16{2, 9}, limit: 99, want: 4},
		{what: "nothing in common", apiVersions: 5, served: [2]int16{7, 9}, limit: 99, unsupported: true},
		{what: "limit below its minimum", apiVersions: 5, served: [2]int16{3, 4}, limit: 2, unsupported: true},
	} {
		n.versions, n.served[protocol.Heartbeat] = c.apiVersions, c.served
		under := client.New(n.dial, client.Options{MaxVersion: func(protocol.APIKey) int16 { return c.limit }})
		got := <-ask(under, heartbeat(1), 0)
		if c.unsupported {
			if !errors.Is(got.err, protocol.UnsupportedVersion.Err()) {
				t.Errorf("%s: %+v", c.what, got)
			}
		} else if got.err != nil || version.Load() != c.want {
			t.Errorf("%s: version %d: %+v", c.what, version.Load(), got)
		}
		under.Close()
	}
}

func TestTimeoutOfASentRequestBreaksTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(func(req *server.Request, body kmsg.Request) {
			if body.(*kmsg.HeartbeatRequest).Generation != 1 { //nolint:forcetypeassert // it is one
				echo(req, body)
			}
		})
		c := client.New(n.dial, client.Options{})
		start := time.Now()
		stuck, behind := ask(c, heartbeat(1), 5*time.Second), ask(c, heartbeat(2), 30*time.Second)
		if got := <-stuck; !errors.Is(got.err, client.ErrTimeout) || time.Since(start) != 5*time.Second {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
		if got := <-behind; !errors.Is(got.err, client.ErrDisconnected) {
			t.Errorf("the one behind: %+v", got)
		}
		if got := <-ask(c, heartbeat(3), 0); got.err != nil {
			t.Errorf("after it: %+v", got)
		}
		if c.Stats.Connects.Load() != 2 {
			t.Errorf("%d connections", c.Stats.Connects.Load())
		}
		c.Close()
		synctest.Wait()
		n.shut()
	})
}

func TestUnreachableNodeAndBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(echo)
		dials := []time.Duration{}
		var down atomic.Bool
		down.Store(true)
		start := time.Now()
		c := client.New(func() (net.Conn, error) {
			dials = append(dials, time.Since(start))
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return n.dial()
		}, client.Options{BackoffMin: 100 * time.Millisecond, BackoffMax: 400 * time.Millisecond})
		for range 5 {
			if got := <-ask(c, heartbeat(1), 0); !errors.Is(got.err, client.ErrUnreachable) {
				t.Fatalf("%+v", got)
			}
		}
		for i, want := range []time.Duration{0, 100, 300, 700, 1100} {
			if dials[i] != want*time.Millisecond {
				t.Errorf("attempt %d after %v", i, dials[i])
			}
		}
		early := ask(c, heartbeat(1), 10*time.Millisecond) // its time runs out while the client backs off
		if got := <-early; !errors.Is(got.err, client.ErrTimeout) {
			t.Errorf("%+v", got)
		}
		down.Store(false)
		if got := <-ask(c, heartbeat(1), 0); got.err != nil {
			t.Errorf("%+v", got)
		}
		c.Close()
		synctest.Wait()
		n.shut()
	})
}

// A node that accepts and closes at once is not dialled without pause.
func TestNodeThatClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		c := client.New(func() (net.Conn, error) {
			dials++
			a, b := server.NewPipe()
			_ = b.Close()
			return a, nil
		}, client.Options{})
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			if got := <-ask(c, heartbeat(1), 0); !errors.Is(got.err, client.ErrUnreachable) {
				t.Fatalf("%+v", got)
			}
		}
		if dials > 20 {
			t.Errorf("%d attempts in ten seconds", dials)
		}
		c.Close()
	})
}

// A node that never answers ApiVersions costs the connect timeout, and Close
// does not wait for it.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func() (net.Conn, error) { a, _ := server.NewPipe(); return a, nil }
		c := client.New(silent, client.Options{ConnectTimeout: 3 * time.Second})
		start := time.Now()
		if got := <-ask(c, heartbeat(1), time.Minute); !errors.Is(got.err, client.ErrUnreachable) || time.Since(start) != 3*time.Second {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
		start = time.Now()
		waiting := ask(c, heartbeat(1), time.Minute)
		time.Sleep(500 * time.Millisecond)
		c.Close()
		if got := <-waiting; !errors.Is(got.err, client.ErrClosed) || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
	})
}

func TestServerEndsAndComesBack(t *testing.T) {
	first, second := newNode(echo), newNode(echo)
	var current atomic.Pointer[node]
	current.Store(first)
	c := client.New(func() (net.Conn, error) { return current.Load().dial() }, client.Options{})
	defer c.Close()
	if got := <-ask(c, heartbeat(1), 0); got.err != nil {
		t.Fatal(got.err)
	}
	current.Store(second)
	first.shut()
	for { // the request may meet the connection that is just ending
		got := <-ask(c, heartbeat(2), 0)
		if got.err == nil {
			break
		}
		if !errors.Is(got.err, client.ErrDisconnected) {
			t.Fatal(got.err)
		}
	}
	second.shut()
}

func TestCloseCallsBackEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(func(*server.Request, kmsg.Request) {}) // never answers
		c := client.New(n.dial, client.Options{MaxOutstanding: 10})
		var waiting []chan result
		for range 10 {
			waiting = append(waiting, ask(c, heartbeat(1), time.Minute))
		}
		if got := <-ask(c, heartbeat(1), 0); !errors.Is(got.err, client.ErrBusy) {
			t.Errorf("the eleventh: %+v", got)
		}
		synctest.Wait()
		closed := make(chan struct{})
		c.Send(heartbeat(1), 0, func(_ kmsg.Response, err error) { close(closed) })
		<-closed
		c.Close()
		c.Close()
		for i, results := range waiting {
			if got := <-results; !errors.Is(got.err, client.ErrClosed) {
				t.Errorf("request %d: %+v", i, got)
			}
		}
		if got := <-ask(c, heartbeat(1), 0); !errors.Is(got.err, client.ErrClosed) {
			t.Errorf("after Close: %+v", got)
		}
		time.Sleep(2 * time.Minute) // no timer calls back again
		for _, results := range waiting {
			if len(results) > 0 {
				t.Error("called back twice")
			}
		}
		n.shut()
	})
}

// A peer that answers wrongly is not believed.
func TestWrongResponses(t *testing.T) {
	for name, answer := range map[string]func(id []byte) []byte{
		"wrong id":        func(id []byte) []byte { return append([]byte{0, 0, 0, 12, 9, 9, 9, 9}, make([]byte, 8)...) },
		"cut":             func(id []byte) []byte { return append([]byte{0, 0, 0, 6}, append(id, 0, 0)...) },
		"negative length": func(id []byte) []byte { return []byte{0xff, 0xff, 0xff, 0xff} },
		"too long":        func(id []byte) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"two for one": func(id []byte) []byte {
			return bytes.Repeat(append([]byte{0, 0, 0, 12}, append(id, make([]byte, 8)...)...), 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(echo)
			defer n.shut()
			c := client.New(func() (net.Conn, error) {
				ours, end := server.NewPipe()
				real, _ := n.dial()
				go relay(end, real, answer)
				return ours, nil
			}, client.Options{})
			defer c.Close()
			got := <-ask(c, heartbeat(7), 0)
			if name == "two for one" {
				if got.err != nil {
					t.Fatal(got.err)
				}
				for c.Stats.Connects.Load() == 1 {
					if got := <-ask(c, heartbeat(7), 0); got.err != nil && !errors.Is(got.err, client.ErrDisconnected) {
						t.Fatal(got.err)
					}
				}
				return
			}
			if !errors.Is(got.err, client.ErrDisconnected) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// relay lets the first exchange pass and answers the others by itself.
func relay(end, real net.Conn, answer func(id []byte) []byte) {
	defer func() { _ = end.Close(); _ = real.Close() }()
	for exchange := 0; ; exchange++ {
		request, err := frame(end)
		if err != nil {
			return
		}
		if exchange > 0 {
			if _, err := end.Write(answer(request[8:12:12])); err != nil {
				return
			}
			continue
		}
		if _, err := real.Write(request); err != nil {
			return
		}
		response, err := frame(real)
		if err != nil {
			return
		}
		if _, err := end.Write(response); err != nil {
			return
		}
	}
}

func frame(conn net.Conn) ([]byte, error) {
	bytes := make([]byte, 4)
	if _, err := io.ReadFull(conn, bytes); err != nil {
		return nil, err
	}
	bytes = append(bytes, make([]byte, binary.BigEndian.Uint32(bytes))...)
	_, err := io.ReadFull(conn, bytes[4:])
	return bytes, err
}

func TestFetchResponsesComeInFrames(t *testing.T) {
	wire.PoisonFrames(true)
	defer wire.PoisonFrames(false)
	records := bytes.Repeat([]byte("record"), 500_000)
	n := newNode(func(req *server.Request, body kmsg.Request) {
		req.ReplyFetch(&wire.FetchResponse{Version: req.Header.Version, Topics: []wire.FetchTopic{{Partitions: []wire.FetchPartition{{Records: wire.Region{Bytes: records}}}}}})
	})
	defer n.shut()
	c := client.New(n.dial, client.Options{})
	defer c.Close()
	for range 3 {
		done := make(chan struct{})
		c.SendFetch(kmsg.NewPtrFetchRequest(), 0, func(resp *kmsg.FetchResponse, frame *wire.Frame, err error) {
			defer close(done)
			if err != nil {
				t.Error(err)
				return
			}
			got := resp.Topics[0].Partitions[0].RecordBatches
			if !bytes.Equal(got, records) {
				t.Error("records changed on the way")
			}
			frame.Release()
			if got[0] != 0xDB {
				t.Error("the records do not lie in the frame")
			}
		})
		<-done
	}
	c.Close()
	called := false
	c.SendFetch(kmsg.NewPtrFetchRequest(), 0, func(resp *kmsg.FetchResponse, frame *wire.Frame, err error) {
		called = resp == nil && frame == nil && errors.Is(err, client.ErrClosed)
	})
	if !called {
		t.Error("a closed client did not refuse")
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	n := newNode(echo)
	defer n.shut()
	c := client.New(n.dial, client.Options{})
	defer c.Close()
	done := make(chan error, 1)
	b.ReportAllocs()
	for b.Loop() {
		c.Send(heartbeat(1), 0, func(_ kmsg.Response, err error) { done <- err })
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
