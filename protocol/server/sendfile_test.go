package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// segmentFile is a RegionSource over a real file that counts its releases.
type segmentFile struct {
	*os.File
	generation atomic.Uint64
	pinned     atomic.Int64
	check      func() // called when the generation is asked for
	noFd       bool
}

func (f *segmentFile) Fd() (uintptr, bool) { return f.File.Fd(), !f.noFd }
func (f *segmentFile) Release()            { f.pinned.Add(-1) }
func (f *segmentFile) Generation() uint64 {
	if f.check != nil {
		f.check()
	}
	return f.generation.Load()
}

func (f *segmentFile) region(position, length int64) wire.Region {
	f.pinned.Add(1)
	return wire.Region{Source: f, Position: position, Length: length, Generation: f.generation.Load()}
}

func newSegmentFile(t testing.TB, size int) (*segmentFile, []byte) {
	t.Helper()
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data) // never fails
	name := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &segmentFile{File: file}, data
}

func fetchRequest(id int32) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 12
	return wire.AppendRequest(nil, wire.RequestHeader{CorrelationID: id}, req)
}

func fetchOf(regions ...wire.Region) *wire.FetchResponse {
	resp := &wire.FetchResponse{Version: 12, Topics: []wire.FetchTopic{{Topic: "t"}}}
	for i, r := range regions {
		resp.Topics[0].Partitions = append(resp.Topics[0].Partitions, wire.FetchPartition{Partition: int32(i), Records: r})
	}
	return resp
}

// Regions of many sizes, interleaved with small replies, arrive whole and in
// place over TCP (sendfile), TCP with a file that has no descriptor, and a pipe.
func TestRegionsArriveWhole(t *testing.T) {
	for _, c := range []struct {
		name     string
		pipe     bool
		noFd     bool
		sendfile bool
	}{{"sendfile", false, false, canSendfile}, {"read and write", false, true, false}, {"pipe", true, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			file, data := newSegmentFile(t, 8<<20)
			file.noFd = c.noFd
			spans := [][2]int64{{0, 1}, {5, 100}, {17, copiedRegionBytes}, {0, copiedRegionBytes + 1}, {1000, 200_000}, {3, 5 << 20}, {8<<20 - 7, 7}, {0, 0}}
			s := New(HandlerFunc(func(req *Request) {
				if req.Header.Key != protocol.Fetch {
					ok(req)
					return
				}
				var regions []wire.Region
				for _, span := range spans {
					regions = append(regions, file.region(span[0], span[1]), wire.Region{Bytes: data[:span[1]%100_000]})
				}
				req.ReplyFetch(fetchOf(regions...))
			}), Options{})
			var p peer
			if c.pipe {
				p = pipeTo(t, s)
			} else {
				p = tcpTo(t, s)()
			}
			defer shut(t, s)
			p.send(heartbeat(1, ""), fetchRequest(2), heartbeat(3, ""), fetchRequest(4))
			p.expect(1)
			for _, want := range []int32{2, 4} {
				id, body := p.receive()
				if id != want {
					t.Fatalf("reply %d where %d was due", id, want)
				}
				req := kmsg.NewPtrFetchRequest()
				req.Version = 12
				_, resp, err := wire.ReadResponse(append(binary.BigEndian.AppendUint32(nil, uint32(id)), body...), req)
				if err != nil {
					t.Fatal(err)
				}
				partitions := resp.(*kmsg.FetchResponse).Topics[0].Partitions //nolint:forcetypeassert // it is one
				for i, span := range spans {
					if !bytes.Equal(partitions[2*i].RecordBatches, data[span[0]:span[0]+span[1]]) || !bytes.Equal(partitions[2*i+1].RecordBatches, data[:span[1]%100_000]) {
						t.Errorf("span %v is not what the file holds", span)
					}
				}
				if want == 2 {
					p.expect(3)
				}
			}
			if pinned := file.pinned.Load(); pinned != 0 {
				t.Errorf("%d regions are still pinned", pinned)
			}
			if sent := s.stats("PLAINTEXT").SendfileBytes.Load() > 0; sent != c.sendfile {
				t.Errorf("went by sendfile: %v", sent)
			}
		})
	}
}

// Truncation under a region, before, during and after the send, closes the
// connection in the middle of the reply and releases everything.
func TestStaleAndShortRegionsCloseTheConnection(t *testing.T) {
	const size = 6 << 20
	for _, c := range []struct {
		name string
		harm func(f *segmentFile, asked int)
	}{
		{"before", func(f *segmentFile, asked int) { f.generation.Store(9) }},
		{"in the middle", func(f *segmentFile, asked int) {
			if asked == 3 {
				f.generation.Store(9)
			}
		}},
		{"short file", func(f *segmentFile, asked int) {
			if asked == 3 {
				if err := f.Truncate(size / 2); err != nil {
					panic(err)
				}
			}
		}},
	} {
		for _, noFd := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				file, _ := newSegmentFile(t, size)
				file.noFd = noFd
				asked := 0
				file.check = func() { asked++; c.harm(file, asked) }
				s := New(HandlerFunc(func(req *Request) { req.ReplyFetch(fetchOf(file.region(0, size), file.region(0, size))) }), Options{})
				p := tcpTo(t, s)()
				p.send(fetchRequest(1))
				got, err := io.ReadAll(p)
				if err != nil && !strings.Contains(err.Error(), "reset") {
					t.Fatal(err)
				}
				if len(got) > size+1000 {
					t.Errorf("%d bytes came", len(got))
				}
				shut(t, s)
				if pinned := file.pinned.Load(); pinned != 0 {
					t.Errorf("%d regions are still pinned", pinned)
				}
			})
		}
	}
}

// However a connection ends, the regions of its replies are released once.
func TestRegionsAreReleasedHoweverTheConnectionEnds(t *testing.T) {
	const size = 256 << 10
	pending := make(chan *Request, 10)
	for _, c := range []struct {
		name string
		end  func(p peer, s *Server)
	}{
		{"peer closes", func(p peer, s *Server) { _ = p.Close() }},
		{"server closes", func(p peer, s *Server) { shut(t, s) }},
		{"peer does not read", func(p peer, s *Server) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, _ := newSegmentFile(t, size)
			ended := make(chan struct{})
			s := New(HandlerFunc(func(req *Request) { pending <- req }), Options{
				FrameTimeout: 200 * time.Millisecond, SendBufferBytes: 64 << 10, ConnectionClosed: func(*Conn) { close(ended) },
			})
			p := tcpTo(t, s)()
			if err := p.Conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil { //nolint:forcetypeassert // it is TCP
				t.Fatal(err)
			}
			p.send(fetchRequest(1), fetchRequest(2), fetchRequest(3), fetchRequest(4))
			var requests [4]*Request
			for i := range requests {
				requests[i] = <-pending
			}
			requests[0].ReplyFetch(fetchOf(file.region(0, size), file.region(0, size), file.region(0, size))) // more than the sockets take
			requests[2].ReplyFetch(fetchOf(file.region(0, size)))                                             // ready, but behind the second
			c.end(p, s)
			if c.name == "peer does not read" {
				for s.stats("PLAINTEXT").WriteFailed.Load() == 0 && s.stats("PLAINTEXT").Open.Load() > 0 {
					runtime.Gosched()
				}
			}
			requests[1].ReplyFetch(fetchOf(file.region(0, size)))
			<-ended
			for s.stats("PLAINTEXT").Open.Load() > 0 { // reading has ended; the connection ends with its writer
				runtime.Gosched()
			}
			requests[3].ReplyFetch(fetchOf(file.region(0, size))) // after the end
			if pinned := file.pinned.Load(); pinned != 0 {
				t.Errorf("%d regions are still pinned", pinned)
			}
		})
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, pipelined := range []int{1, 20} {
		b.Run(map[int]string{1: "one at a time", 20: "pipelined 20"}[pipelined], func(b *testing.B) {
			conn := benchConnection(b, echo)
			request := bytes.Repeat(heartbeat(1, "group"), pipelined)
			reply := make([]byte, 16*pipelined)
			b.ReportAllocs()
			for done := 0; done < b.N; done += pipelined {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, reply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFetchRegion(b *testing.B) {
	for _, c := range []struct {
		name string
		noFd bool
		size int64
	}{{"1 MiB sendfile", false, 1 << 20}, {"1 MiB read and write", true, 1 << 20}, {"4 KiB", false, 4 << 10}, {"32 KiB sendfile", false, 32 << 10}, {"32 KiB read and write", true, 32 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			file, _ := newSegmentFile(b, 8<<20)
			file.noFd = c.noFd
			conn := benchConnection(b, HandlerFunc(func(req *Request) { req.ReplyFetch(fetchOf(file.region(4096, c.size))) }))
			request := fetchRequest(1)
			buffer := make([]byte, 256<<10)
			b.SetBytes(c.size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, buffer[:4]); err != nil {
					b.Fatal(err)
				}
				for left := int(binary.BigEndian.Uint32(buffer)); left > 0; {
					n, err := conn.Read(buffer[:min(left, len(buffer))])
					if err != nil {
						b.Fatal(err)
					}
					left -= n
				}
			}
		})
	}
}

func benchConnection(b *testing.B, handler Handler) net.Conn {
	b.Helper()
	return benchConnectionWith(b, handler, Options{})
}

func benchConnectionWith(b *testing.B, handler Handler, options Options) net.Conn {
	b.Helper()
	s := New(handler, options)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(socket, plaintext) }()
	conn, err := net.Dial("tcp", socket.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		_ = s.Close(b.Context())
		if err := <-served; !errors.Is(err, ErrClosed) {
			b.Error(err)
		}
	})
	return conn
}
