package edge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Attack is one kind of misbehaviour; it returns when all its connections are closed or were left to the caller's Hold.
type Attack struct {
	Name string
	Run  func(ctx context.Context, addr string) error
}

// maxRequestBytes is the default of socket.request.max.bytes.
const maxRequestBytes = 100 << 20

// patience is how long an attack waits for an answer or for being closed.
const patience = 2 * time.Minute

// Attacks are all kinds, in the order of harm.
func Attacks() []Attack {
	return []Attack{
		{"frames of wrong lengths", wrongLengths},
		{"what is no Kafka at all", otherProtocols},
		{"requests cut short", cutShort},
		{"half-closed connections are answered", halfClosed},
		{"a byte at a time", trickle},
		{"array bombs in every API and version", arrayBombs},
		{"tagged-field bombs in every flexible API", tagBombs},
		{"lengths of 100 MB that never come", promised},
		{"requests whose answers nobody reads", neverRead},
		{"batches that expand without end", decompressionBombs},
	}
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

func prefixed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// request encodes a request with its header.
func request(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("edge")).AppendRequest(nil, req, 7)
}

// versionsRequest is one that is always answered.
func versionsRequest() []byte {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 0
	return request(req)
}

// closedOrAnswered sends bytes and wants the server to close the connection or to answer, and nothing else.
func closedOrAnswered(ctx context.Context, addr string, data []byte) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(data); err != nil {
		return nil // closed already
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("neither answered nor closed within %s after % x", patience, data[:min(len(data), 40)])
		}
		return nil
	}
	if n := binary.BigEndian.Uint32(size[:]); n < 4 || n > 1<<20 {
		return fmt.Errorf("an answer of %d bytes to % x", n, data[:min(len(data), 40)])
	}
	return nil
}

func wrongLengths(ctx context.Context, addr string) error {
	for _, length := range []int64{-1, math.MinInt32, 0, 1, 2, 3, 4, 7, 8, 9, 13, maxRequestBytes + 1, math.MaxInt32} {
		frame := binary.BigEndian.AppendUint32(nil, uint32(length))
		if length > 0 && length < 100 {
			frame = append(frame, make([]byte, length)...)
		}
		if err := closedOrAnswered(ctx, addr, frame); err != nil {
			return err
		}
	}
	// A good request with its length field one too small and one too large: what follows is out of step.
	for _, off := range []int{-1, 1, 5} {
		frame := versionsRequest()
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4+off))
		if err := closedOrAnswered(ctx, addr, append(frame, versionsRequest()...)); err != nil {
			return err
		}
	}
	return nil
}

func otherProtocols(ctx context.Context, addr string) error {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // a TLS ClientHello
		"SSH-2.0-OpenSSH_9.2\r\n",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x00\x00\x00\x10\x7f\xff\x7f\xff\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00\x00\x00", // an API and version that nobody has
	} {
		if err := closedOrAnswered(ctx, addr, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// cutShort ends connections after every number of bytes of a request.
func cutShort(ctx context.Context, addr string) error {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	frame := request(metadata)
	for n := range frame {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		_, err = conn.Write(frame[:n])
		_ = conn.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// halfClosed closes the sending side after a request; the answer is still due.
func halfClosed(ctx context.Context, addr string) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(versionsRequest()); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil || len(answer) < 20 {
		return fmt.Errorf("%d bytes came: %w", len(answer), err)
	}
	return nil
}

// trickle sends requests one byte at a time over many connections side by side: each is answered.
func trickle(ctx context.Context, addr string) error {
	frame := versionsRequest()
	conns := make([]net.Conn, 50)
	for i := range conns {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		conns[i] = conn
	}
	for _, b := range frame {
		for _, conn := range conns {
			if _, err := conn.Write([]byte{b}); err != nil {
				return err
			}
		}
	}
	for _, conn := range conns {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return err
		}
	}
	return nil
}

// promised announces requests of 100 MB on many connections and brings a little of each; then none of them goes on.
func promised(ctx context.Context, addr string) error {
	head := request(kmsg.NewPtrProduceRequest())
	binary.BigEndian.PutUint32(head, maxRequestBytes)
	head = append(head, make([]byte, 128<<10)...)
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for range 200 {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(head); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			continue // the server has closed it: right too
		}
	}
	return nil
}

// neverRead floods connections with requests of large answers and reads none of them.
func neverRead(ctx context.Context, addr string) error {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 1
	metadata.Topics = nil
	one := request(metadata)
	var flood []byte
	for range 200 {
		flood = append(flood, one...)
	}
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for range 100 {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			return err
		}
		for range 20 {
			if _, err := conn.Write(flood); err != nil {
				break // it takes no more: that is the point
			}
		}
	}
	return nil
}

// Idle opens connections, asks each for the API versions so that it is a client's, and leaves them open until release is called.
func Idle(ctx context.Context, addr string, n int) (release func(), err error) {
	conns := make([]net.Conn, 0, n)
	release = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	frame := versionsRequest()
	for range n {
		conn, err := dial(ctx, addr)
		if err != nil {
			release()
			return nil, err
		}
		conns = append(conns, conn)
		if _, err := conn.Write(frame); err != nil {
			release()
			return nil, err
		}
	}
	for i, conn := range conns {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			release()
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, n, err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// Crowd opens as many connections as the server takes, up to n, and leaves them open until release is called. Refusals are right.
func Crowd(ctx context.Context, addr string, n int) (opened int, release func()) {
	var conns []net.Conn
	for range n {
		trying, cancel := context.WithTimeout(ctx, 5*time.Second) // where nobody accepts, it would be tried until ctx ends
		conn, err := dial(trying, addr)
		cancel()
		if err != nil {
			break
		}
		conns = append(conns, conn)
	}
	return len(conns), func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}
