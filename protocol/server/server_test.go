package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// TestMain fails if a goroutine of the server outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	for range 12_000 { // a minute, on a busy machine
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("ottla/protocol/server.(")) {
			os.Exit(code)
		}
		runtime.Gosched()
		time.Sleep(5 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	os.Stderr.Write(stacks[:runtime.Stack(stacks, true)])
	os.Stderr.WriteString("goroutines leaked\n")
	os.Exit(1)
}

var plaintext = Listener{Name: "PLAINTEXT", Protocol: "PLAINTEXT", Scope: protocol.OnBroker}

// peer is the other end of a connection, speaking in frames.
type peer struct {
	t *testing.T
	net.Conn
}

// pipeTo connects a peer to a server in memory.
func pipeTo(t *testing.T, s *Server) peer {
	t.Helper()
	client, end := NewPipe()
	s.ServeConn(end, plaintext)
	return peer{t, client}
}

// tcpTo starts a TCP listener for a server and gives a dialer.
func tcpTo(t *testing.T, s *Server) func() peer {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(socket, plaintext) }()
	t.Cleanup(func() {
		shut(t, s)
		if err := <-served; !errors.Is(err, ErrClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return func() peer {
		conn, err := net.Dial("tcp", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return peer{t, conn}
	}
}

// shut closes a server within a moment.
func shut(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Close(ctx)
}

func heartbeat(id int32, group string) []byte {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group = 4, group
	return wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: id}, req)
}

func (p peer) send(frames ...[]byte) {
	p.t.Helper()
	if _, err := p.Write(bytes.Join(frames, nil)); err != nil {
		p.t.Fatal(err)
	}
}

// receive gives the correlation id and the rest of the next reply.
func (p peer) receive() (int32, []byte) {
	p.t.Helper()
	var prefix [8]byte
	if _, err := io.ReadFull(p, prefix[:]); err != nil {
		p.t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(prefix[:])-4)
	if _, err := io.ReadFull(p, body); err != nil {
		p.t.Fatal(err)
	}
	return int32(binary.BigEndian.Uint32(prefix[4:])), body
}

func (p peer) expect(ids ...int32) {
	p.t.Helper()
	for _, want := range ids {
		if got, _ := p.receive(); got != want {
			p.t.Fatalf("reply %d where %d was due", got, want)
		}
	}
}

// expectEnd waits for the connection to be closed, with no further byte.
func (p peer) expectEnd() {
	p.t.Helper()
	rest, err := io.ReadAll(p)
	if len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		p.t.Fatalf("%d bytes and %v where the end was due", len(rest), err)
	}
}

func ok(req *Request) {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.Version = req.Header.Version
	req.Reply(resp)
}

var echo = HandlerFunc(ok)

func TestRepliesInOrderThoughAnsweredBackwards(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *Server) peer{
		"pipe": pipeTo,
		"tcp":  func(t *testing.T, s *Server) peer { return tcpTo(t, s)() },
	} {
		t.Run(name, func(t *testing.T) {
			var pending []*Request
			s := New(HandlerFunc(func(req *Request) {
				pending = append(pending, req)
				if len(pending) < 10 {
					return
				}
				for i := len(pending) - 1; i >= 0; i-- {
					if i == 4 {
						pending[i].ReplyNothing() // acks=0
						continue
					}
					ok(pending[i])
				}
				pending = nil
			}), Options{})
			defer shut(t, s)
			p := connect(t, s)
			var frames [][]byte
			for id := range int32(20) {
				frames = append(frames, heartbeat(id, "g"))
			}
			p.send(frames...)
			p.expect(0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19)
		})
	}
}

func TestRandomCompletionOrder(t *testing.T) {
	const n = 2000
	work := make(chan *Request, n)
	s := New(HandlerFunc(func(req *Request) { work <- req }), Options{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for req := range work {
				if req.Header.CorrelationID%3 == 0 {
					runtime.Gosched()
				}
				ok(req)
			}
		})
	}
	dial := tcpTo(t, s)
	var peers sync.WaitGroup
	for range 3 {
		p := dial()
		peers.Go(func() {
			for id := range int32(n) {
				if _, err := p.Write(heartbeat(id, "g")); err != nil {
					t.Error(err)
					return
				}
			}
		})
		peers.Go(func() {
			for want := range int32(n) {
				var reply [4 + 4 + 2 + 4 + 1 + 1]byte // length, id, header tags, throttle, code, tags
				if _, err := io.ReadFull(p, reply[:]); err != nil {
					t.Error(err)
					return
				}
				if got := int32(binary.BigEndian.Uint32(reply[4:])); got != want {
					t.Errorf("reply %d where %d was due", got, want)
					return
				}
			}
		})
	}
	peers.Wait()
	close(work)
	workers.Wait()
}

func TestWhatEndsAConnection(t *testing.T) {
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	metadata77 := append(length(10), 0, 3, 0, 77, 0, 0, 0, 1, 0xff, 0xff)
	produce2 := append(length(10), 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff)
	for name, bad := range map[string][]byte{
		"negative length":     length(0xffffffff),
		"smallest integer":    length(0x80000000),
		"largest integer":     length(0x7fffffff),
		"one byte too long":   length(1<<20 + 1),
		"length 0":            length(0),
		"length 7":            append(length(7), 0, 3, 0, 1, 0, 0, 0),
		"unknown key":         append(length(10), 3, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"unknown version":     metadata77,
		"removed version":     produce2,
		"controller API":      append(length(10), 0, 52, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"client id too long":  append(length(10), 0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff),
		"tags cut in header":  append(length(12), 0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 5, 5),
		"ApiVersions no name": append(length(9), 0, 18, 0, 99, 0, 0, 0, 1, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			s := New(echo, Options{MaxRequestBytes: 1 << 20})
			defer shut(t, s)
			p := pipeTo(t, s)
			p.send(heartbeat(1, "before"), bad)
			p.expect(1)
			p.expectEnd()
			s.EachListener(func(_ string, stats *Stats) {
				if stats.Malformed.Load() != 1 || stats.MemoryHeld() != 0 {
					t.Errorf("malformed %d, memory held %d", stats.Malformed.Load(), stats.MemoryHeld())
				}
			})
		})
	}
}

func TestUnsupportedApiVersionsIsHandedOver(t *testing.T) {
	s := New(HandlerFunc(func(req *Request) {
		if !req.Unsupported || req.Header.Version != 99 || req.Body != nil {
			t.Errorf("got %+v", req)
		}
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = int16(protocol.UnsupportedVersion)
		resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 18, MaxVersion: 4}}
		req.Reply(resp)
	}), Options{})
	defer shut(t, s)
	p := pipeTo(t, s)
	p.send([]byte{0, 0, 0, 11, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0})
	id, body := p.receive()
	if want := []byte{0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4}; id != 7 || !bytes.Equal(body, want) {
		t.Errorf("%d %x", id, body)
	}
	p.send(heartbeat(1, "")[:4], nil)
	_ = p.Close()
}

func TestCloseConnectionAfterEarlierReplies(t *testing.T) {
	var first *Request
	s := New(HandlerFunc(func(req *Request) {
		switch req.Header.CorrelationID {
		case 1:
			first = req
		case 2:
			req.CloseConnection(errors.New("enough"))
		case 3:
			ok(first)
			ok(req) // too late: behind the close
		}
	}), Options{})
	defer shut(t, s)
	p := pipeTo(t, s)
	p.send(heartbeat(1, ""), heartbeat(2, ""), heartbeat(3, ""))
	p.expect(1)
	p.expectEnd()
}

func TestHalfClosedPeerGetsItsReplies(t *testing.T) {
	pending := make(chan *Request, 2)
	s := New(HandlerFunc(func(req *Request) { pending <- req }), Options{})
	p := tcpTo(t, s)()
	p.send(heartbeat(1, ""), heartbeat(2, ""))
	if err := p.Conn.(*net.TCPConn).CloseWrite(); err != nil { //nolint:forcetypeassert // it is TCP
		t.Fatal(err)
	}
	first, second := <-pending, <-pending
	ok(second)
	ok(first)
	p.expect(1, 2)
	p.expectEnd()
}

func TestHoldReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []int32
		var held *Request
		s := New(HandlerFunc(func(req *Request) {
			seen = append(seen, req.Header.CorrelationID)
			if req.Header.CorrelationID == 1 {
				held = req
				req.HoldReading()
				return
			}
			ok(req)
		}), Options{})
		p := pipeTo(t, s)
		p.send(heartbeat(1, ""), heartbeat(2, ""))
		synctest.Wait()
		if len(seen) != 1 {
			t.Fatalf("requests %v were taken while reading was held", seen)
		}
		ok(held)
		p.expect(1, 2)
		held.HoldReading() // after the reply it does nothing
		p.send(heartbeat(3, ""))
		p.expect(3)
		_ = p.Close()
		shut(t, s)
	})
}

func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(HandlerFunc(func(req *Request) {
			if req.Header.CorrelationID == 1 {
				req.Mute(20 * time.Second)
			}
			ok(req)
		}), Options{})
		p := pipeTo(t, s)
		start := time.Now()
		p.send(heartbeat(1, ""), heartbeat(2, ""))
		p.expect(1)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the throttled reply came after %v", waited)
		}
		p.expect(2)
		if waited := time.Since(start); waited != 20*time.Second {
			t.Errorf("the next reply came after %v", waited)
		}
		_ = p.Close()
		shut(t, s)
	})
}

func TestIdleConnectionsAreClosedAndBusyOnesAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending *Request
		s := New(HandlerFunc(func(req *Request) {
			if req.Header.CorrelationID == 2 {
				pending = req
				return
			}
			ok(req)
		}), Options{IdleTimeout: time.Minute})
		p := pipeTo(t, s)
		start := time.Now()
		time.Sleep(50 * time.Second)
		p.send(heartbeat(1, ""))
		p.expect(1)
		time.Sleep(50 * time.Second)
		p.send(heartbeat(2, ""))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		ok(pending)
		p.expect(2)
		answered := time.Now()
		p.expectEnd()
		if idle := time.Since(answered); idle != time.Minute {
			t.Errorf("closed after %v of silence, %v altogether", idle, time.Since(start))
		}
		shut(t, s)
		s.EachListener(func(_ string, stats *Stats) {
			if stats.IdleClosed.Load() != 1 {
				t.Errorf("%d idle closes", stats.IdleClosed.Load())
			}
		})
	})
}

// A peer that declares a frame and does not send it, or drips it, is cut.
func TestSlowSenderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(echo, Options{FrameTimeout: 10 * time.Second})
		p := pipeTo(t, s)
		frame := heartbeat(1, strings.Repeat("x", 1000))
		start := time.Now()
		for _, b := range frame {
			if _, err := p.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("cut after %v", took)
		}
		p.expectEnd()
		shut(t, s)
	})
}

// A peer that never reads: its reading stops, then the write deadline ends it,
// and nothing is held.
func TestPeerThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		s := New(HandlerFunc(func(req *Request) {
			handled++
			resp := kmsg.NewPtrDescribeGroupsResponse()
			group := kmsg.NewDescribeGroupsResponseGroup()
			group.Group = strings.Repeat("g", 32000)
			for range 40 {
				resp.Groups = append(resp.Groups, group)
			}
			req.Reply(resp)
		}), Options{FrameTimeout: 10 * time.Second, MaxQueuedReplyBytes: 4 << 20})
		p := pipeTo(t, s)
		go func() {
			for id := range int32(1000) {
				if _, err := p.Write(heartbeat(id, "g")); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if handled > 6 { // 1.3 MB each: 4 MiB queued, one being written, one in the pipe
			t.Errorf("%d requests were taken of a peer that does not read", handled)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.EachListener(func(_ string, stats *Stats) {
			if stats.Open.Load() != 0 || stats.WriteFailed.Load() != 1 || stats.MemoryHeld() != 0 {
				t.Errorf("open %d, write failed %d, memory %d", stats.Open.Load(), stats.WriteFailed.Load(), stats.MemoryHeld())
			}
		})
		shut(t, s)
	})
}

func TestOutstandingRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending []*Request
		s := New(HandlerFunc(func(req *Request) { pending = append(pending, req) }), Options{MaxOutstanding: 5})
		p := pipeTo(t, s)
		for id := range int32(20) {
			p.send(heartbeat(id, ""))
		}
		synctest.Wait()
		if len(pending) != 5 {
			t.Fatalf("%d requests were taken", len(pending))
		}
		for id := range int32(20) {
			ok(pending[id])
			p.expect(id)
			synctest.Wait()
		}
		_ = p.Close()
		shut(t, s)
	})
}

func TestMemoryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending []*Request
		s := New(HandlerFunc(func(req *Request) { pending = append(pending, req) }), Options{MemoryBytes: 100_000})
		big := strings.Repeat("x", 30_000)
		var peers []peer
		for id := range int32(6) {
			p := pipeTo(t, s)
			p.send(heartbeat(id, big))
			peers = append(peers, p)
			synctest.Wait()
		}
		if len(pending) != 3 {
			t.Fatalf("%d requests of 30 kB were taken with a budget of 100 kB", len(pending))
		}
		for i := range 6 {
			ok(pending[i])
			peers[i].expect(int32(i))
			synctest.Wait()
		}
		p := pipeTo(t, s) // more than the budget, alone
		p.send(heartbeat(9, big), heartbeat(10, big), heartbeat(11, big), heartbeat(12, big))
		synctest.Wait()
		if len(pending) != 9 {
			t.Errorf("%d requests taken", len(pending))
		}
		shut(t, s)
		for _, req := range pending[6:] {
			ok(req)
		}
		s.EachListener(func(_ string, stats *Stats) {
			if stats.MemoryHeld() != 0 {
				t.Errorf("%d bytes held at the end", stats.MemoryHeld())
			}
		})
	})
}

// 200 connections declare 100 MiB each and send little: what is allocated stays
// small.
// TestHalfRequestsDoNotStallTheOthers: whoever holds memory for bytes that do not
// come, or that trickle, is cut off as soon as somebody else waits for it; not
// before, and not one whose bytes come.
func TestHalfRequestsDoNotStallTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(echo, Options{MemoryBytes: 3_000_000})
		whole := heartbeat(1, strings.Repeat("x", 30_000))
		half := append(binary.BigEndian.AppendUint32(nil, 1_000_000), whole[4:]...)
		feeding := make(chan struct{})
		reasons := make(chan error, 3)
		for _, chunk := range []int{0, 1, 20_000} { // bytes every 100 ms
			p := pipeTo(t, s)
			go func() {
				defer p.Close()
				_, err := p.Write(half)
				for sent := len(half); err == nil && sent+chunk < len(half)+960_000; sent += chunk {
					select {
					case <-feeding:
						return
					case <-time.After(100 * time.Millisecond):
						_, err = p.Write(make([]byte, chunk))
					}
				}
				reasons <- err
			}()
		}
		time.Sleep(3 * time.Second)
		if held := s.stats("PLAINTEXT").MemoryHeld(); held != 3_000_000 || len(reasons) > 0 {
			t.Errorf("%d bytes are held: somebody was cut off though nobody waited", held)
		}
		p, asked := pipeTo(t, s), time.Now()
		p.send(heartbeat(9, strings.Repeat("y", 30_000)))
		p.expect(9)
		if took := time.Since(asked); took > 2*stallPatience {
			t.Errorf("a whole request waited %v for half ones", took)
		}
		synctest.Wait()
		if held := s.stats("PLAINTEXT").MemoryHeld(); held != 1_000_000 {
			t.Errorf("%d bytes are held, but only the frame whose bytes come should be left", held)
		}
		close(feeding)
		shut(t, s)
	})
}

func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	s := New(echo, Options{})
	dial := tcpTo(t, s)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 200 {
		p := dial()
		p.send([]byte{0x06, 0x40, 0, 0}, heartbeat(1, strings.Repeat("x", 9000))[4:])
	}
	stats := s.stats("PLAINTEXT")
	for stats.Open.Load() < 200 {
		runtime.Gosched()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if held := stats.MemoryHeld(); held > 0 {
		t.Errorf("%d bytes of the budget are held for bytes that did not come", held)
	}
}

func TestProduceFramesArePooledAndCounted(t *testing.T) {
	wire.PoisonFrames(true)
	defer wire.PoisonFrames(false)
	for _, size := range []int{10, 5_000, 3 << 20} { // in the read buffer, beyond it, after a prefix
		frames := make(chan *Request, 1)
		s := New(HandlerFunc(func(req *Request) {
			if req.Frame == nil {
				t.Error("a Produce without a frame")
			}
			req.Frame.Retain()
			frames <- req
		}), Options{})
		p := tcpTo(t, s)()
		produce := kmsg.NewPtrProduceRequest()
		produce.Version = 9
		topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		partition.Records = bytes.Repeat([]byte("r"), size)
		topic.Partitions = append(topic.Partitions, partition)
		produce.Topics = append(produce.Topics, topic)
		p.send(wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: 1}, produce))
		req := <-frames
		decoded, err := wire.DecodeRequest(req.Header, req.Body)
		if err != nil {
			t.Fatal(err)
		}
		records := decoded.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records //nolint:forcetypeassert // it is one
		if !bytes.Equal(records, partition.Records) {
			t.Error("records changed on the way")
		}
		req.ReplyNothing()
		if s.stats("PLAINTEXT").MemoryHeld() == 0 {
			t.Error("the budget came back while the frame is held")
		}
		req.Frame.Release()
		for s.stats("PLAINTEXT").MemoryHeld() != 0 { // the reader's own reference
			runtime.Gosched()
		}
		shut(t, s)
	}
}

func TestConnectionLimits(t *testing.T) {
	s := New(echo, Options{Limits: Limits{MaxConnections: 3}})
	dial := tcpTo(t, s)
	var open []peer
	for range 3 {
		p := dial()
		p.send(heartbeat(1, ""))
		p.expect(1)
		open = append(open, p)
	}
	dial().expectEnd()
	_ = open[0].Close()
	for s.stats("PLAINTEXT").Open.Load() == 3 {
		runtime.Gosched()
	}
	p := dial()
	p.send(heartbeat(1, ""))
	p.expect(1)

	perIP := New(echo, Options{Limits: Limits{MaxConnectionsPerIP: 1, MaxConnectionsPerIPOverrides: map[string]int{"127.0.0.1": 2}}})
	dial = tcpTo(t, perIP)
	for range 2 {
		p := dial()
		p.send(heartbeat(1, ""))
		p.expect(1)
	}
	dial().expectEnd()
	if refused := perIP.stats("PLAINTEXT").Refused.Load(); refused != 1 {
		t.Errorf("%d refused", refused)
	}
}

// TestConnectionLimitsOfOne: a listener's own limit, a limit of none, and the
// exceptions from it.
func TestConnectionLimitsOfOne(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		taken   int
	}{
		"the listener's own":            {Options{Limits: Limits{MaxConnectionsOf: map[string]int{"PLAINTEXT": 2}}}, 2},
		"another listener's":            {Options{Limits: Limits{MaxConnectionsOf: map[string]int{"OTHER": 0}}}, 3},
		"none":                          {Options{Limits: Limits{MaxConnections: -1}}, 0},
		"none from an address":          {Options{Limits: Limits{MaxConnectionsPerIP: -1}}, 0},
		"none but from this address":    {Options{Limits: Limits{MaxConnectionsPerIP: -1, MaxConnectionsPerIPOverrides: map[string]int{"127.0.0.1": 1}}}, 1},
		"none but from another address": {Options{Limits: Limits{MaxConnectionsPerIP: -1, MaxConnectionsPerIPOverrides: map[string]int{"10.0.0.1": 1}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dial := tcpTo(t, New(echo, c.options))
			for i := range 3 {
				p := dial()
				if i >= c.taken {
					p.expectEnd()
					continue
				}
				p.send(heartbeat(1, ""))
				p.expect(1)
			}
		})
	}
}

// scriptedListener accepts what it is told to.
type scriptedListener struct {
	results chan any
	closed  chan struct{}
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	select {
	case result := <-l.results:
		if err, failed := result.(error); failed {
			return nil, err
		}
		return result.(net.Conn), nil //nolint:forcetypeassert // the other thing it is told
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *scriptedListener) Close() error   { close(l.closed); return nil }
func (l *scriptedListener) Addr() net.Addr { return PipeAddr{} }

func TestAcceptErrorsEndNothingAndCreationIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(echo, Options{ConnectionsPerSecond: 10})
		listener := &scriptedListener{make(chan any, 100), make(chan struct{})}
		served := make(chan error)
		go func() { served <- s.Serve(listener, plaintext) }()
		for range 20 {
			listener.results <- &net.OpError{Op: "accept", Err: errors.New("too many open files")}
		}
		var last peer
		for range 30 {
			client, end := NewPipe()
			listener.results <- end
			last = peer{t, client}
		}
		start := time.Now()
		last.send(heartbeat(1, ""))
		last.expect(1)
		failing, pacing := 15*time.Second, 2*time.Second // 20 pauses up to a second; the 20 beyond a second's worth
		if took := time.Since(start); took < 10*time.Second+pacing || took > failing+2*pacing {
			t.Errorf("the last connection was served after %v", took)
		}
		shut(t, s)
		if err := <-served; !errors.Is(err, ErrClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
}

func TestCloseFinishesWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending []*Request
		var closed atomic.Int64
		s := New(HandlerFunc(func(req *Request) { pending = append(pending, req) }), Options{ConnectionClosed: func(*Conn) { closed.Add(1) }})
		p, idle, stuck := pipeTo(t, s), pipeTo(t, s), pipeTo(t, s)
		p.send(heartbeat(1, ""))
		synctest.Wait()
		stuck.send(heartbeat(2, ""))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		result := make(chan error)
		go func() { result <- s.Close(ctx) }()
		synctest.Wait()
		idle.expectEnd()
		ok(pending[0])
		p.expect(1)
		p.expectEnd()
		start := time.Now()
		if err := <-result; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("Close gave %v after %v", err, time.Since(start))
		}
		stuck.expectEnd()
		ok(pending[1]) // nobody listens any more
		if closed.Load() != 3 {
			t.Errorf("%d connections were reported closed", closed.Load())
		}
		client, end := NewPipe()
		s.ServeConn(end, plaintext)
		peer{t, client}.expectEnd()
	})
}

func TestAnsweringTwiceIsAPanic(t *testing.T) {
	panicked := make(chan any, 1)
	s := New(HandlerFunc(func(req *Request) {
		defer func() { panicked <- recover() }()
		ok(req)
		ok(req)
	}), Options{})
	defer shut(t, s)
	p := pipeTo(t, s)
	p.send(heartbeat(1, ""))
	if <-panicked == nil {
		t.Error("no panic")
	}
	p.expect(1)
}

func TestConnFields(t *testing.T) {
	s := New(HandlerFunc(func(req *Request) {
		c := req.Conn
		if c.Principal() != AnonymousPrincipal || c.ListenerName() != "PLAINTEXT" || c.Scope() != protocol.OnBroker || c.Secure() || c.ID() == 0 || c.RemoteAddr().String() != "memory" || req.Received.IsZero() {
			t.Errorf("fields of the connection: %+v", c)
		}
		c.SetPrincipal("User:alice")
		c.SetClientSoftware("kcat", "1.7")
		if name, version := c.ClientSoftware(); c.Principal() != "User:alice" || name != "kcat" || version != "1.7" {
			t.Error("what was set is not there")
		}
		ok(req)
	}), Options{})
	defer shut(t, s)
	p := pipeTo(t, s)
	p.send(heartbeat(1, ""))
	p.expect(1)
}

// TestSetLimits: other limits count from the next connection on.
func TestSetLimits(t *testing.T) {
	s := New(echo, Options{})
	dial := tcpTo(t, s)
	first := dial()
	first.send(heartbeat(1, ""))
	first.expect(1)
	s.SetLimits(Limits{MaxConnections: 1})
	dial().expectEnd()
	first.send(heartbeat(2, ""))
	first.expect(2)
	s.SetLimits(Limits{})
	second := dial()
	second.send(heartbeat(1, ""))
	second.expect(1)
}
