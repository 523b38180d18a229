package client

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// session is one connection from its negotiation to its end.
type session struct {
	client   *Client
	conn     net.Conn
	reader   *bufio.Reader
	versions map[protocol.APIKey]versionRange // what the node serves

	// Guarded by the client's lock.
	inflight []*call // in the order they were sent
	spoke    bool    // a response has come
	dead     bool
}

type versionRange struct{ min, max int16 }

const (
	readBufferBytes   = 4 << 10
	patientFrameBytes = 1 << 20 // longer responses are allocated only when
	prefixFrameBytes  = 64 << 10
)

// open dials and asks the node what it speaks.
func (c *Client) open() (*session, error) {
	conn, err := c.dial()
	if err != nil {
		return nil, err
	}
	s := &session{client: c, conn: conn, reader: bufio.NewReaderSize(conn, readBufferBytes)}
	stop := make(chan struct{})
	go func() { // Close must not wait for a peer that is silent
		select {
		case <-c.closing:
			_ = conn.Close() // the exchange below fails
		case <-stop:
		}
	}()
	err = s.negotiate()
	close(stop)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// negotiateVersion is the version of ApiVersions that is tried first: every
// Kafka since 3.5 has it.
const negotiateVersion = 4

// negotiate fills in versions, with the fall-back of KIP-511.
func (s *session) negotiate() error {
	if err := s.conn.SetDeadline(time.Now().Add(s.client.options.ConnectTimeout)); err != nil {
		return err
	}
	resp, err := s.askVersions(negotiateVersion)
	if err != nil {
		return err
	}
	if protocol.ErrorCode(resp.ErrorCode) == protocol.UnsupportedVersion {
		supported := int16(0)
		for _, api := range resp.ApiKeys {
			if protocol.APIKey(api.ApiKey) == protocol.ApiVersions {
				supported = min(api.MaxVersion, negotiateVersion-1)
			}
		}
		if resp, err = s.askVersions(max(supported, 0)); err != nil {
			return err
		}
	}
	if resp.ErrorCode != 0 {
		return fmt.Errorf("ApiVersions was refused: %w", protocol.ErrorCode(resp.ErrorCode).Err())
	}
	s.versions = make(map[protocol.APIKey]versionRange, len(resp.ApiKeys))
	for _, api := range resp.ApiKeys {
		s.versions[protocol.APIKey(api.ApiKey)] = versionRange{api.MinVersion, api.MaxVersion}
	}
	return s.conn.SetDeadline(time.Time{})
}

func (s *session) askVersions(version int16) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = version
	req.ClientSoftwareName, req.ClientSoftwareVersion = "ottla", s.client.options.SoftwareVersion
	if _, err := s.conn.Write(wire.AppendRequest(nil, s.header(0), req)); err != nil {
		return nil, fmt.Errorf("asking ApiVersions: %w", err)
	}
	frame, _, err := s.readFrame(false)
	if err != nil {
		return nil, fmt.Errorf("reading the ApiVersions response: %w", err)
	}
	if len(frame) >= 6 && protocol.ErrorCode(binary.BigEndian.Uint16(frame[4:])) == protocol.UnsupportedVersion {
		req.Version = 0 // such a response is always of version 0
	}
	_, resp, err := wire.ReadResponse(frame, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.ApiVersionsResponse), nil //nolint:forcetypeassert // the response of that request
}

func (s *session) header(id int32) wire.RequestHeader {
	return wire.RequestHeader{CorrelationID: id, ClientID: &s.client.options.ClientID}
}

// Serves tells which versions of an API the node serves, as it said when it was connected to; highest below lowest: none. known is
// false while there is no connection.
func (c *Client) Serves(key protocol.APIKey) (lowest, highest int16, known bool) {
	s := c.current()
	if s == nil {
		return 0, 0, false
	}
	theirs, has := s.versions[key]
	if !has {
		return 0, -1, true
	}
	return theirs.min, theirs.max, true
}

// version gives the highest version that both sides have of a request.
func (s *session) version(key protocol.APIKey) (int16, error) {
	api, theirs := protocol.APIOf(key), s.versions[key]
	if _, known := s.versions[key]; !known || api == nil {
		return 0, protocol.Errorf(protocol.UnsupportedVersion, "the node does not serve %s", key)
	}
	highest := min(api.MaxVersion, theirs.max)
	if limit := s.client.options.MaxVersion; limit != nil {
		highest = min(highest, limit(key))
	}
	if highest < max(api.MinVersion, theirs.min) {
		return 0, protocol.Errorf(protocol.UnsupportedVersion, "the node serves %s %d to %d, we speak %d to %d", key, theirs.min, theirs.max, api.MinVersion, api.MaxVersion)
	}
	return highest, nil
}

// write sends what is in the queue.
func (s *session) write() {
	buffer, refused := s.encodeQueue()
	for _, r := range refused {
		s.client.finish(r.call, nil, nil, r.err)
	}
	if len(buffer) == 0 {
		return
	}
	n, err := s.conn.Write(buffer)
	s.client.Stats.BytesOut.Add(int64(n))
	if err != nil {
		s.fail(err)
	}
}

// refusal is a request that cannot be sent in any version.
type refusal struct {
	call *call
	err  error
}

// encodeQueue moves the queue to the requests in flight. It encodes under the
// lock: a request belongs to us only until its callback, which takes the lock.
func (s *session) encodeQueue() (buffer []byte, refused []refusal) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.dead {
		return nil, nil // the queue waits for the next session
	}
	for _, one := range c.queue {
		version, err := s.version(protocol.APIKey(one.key))
		if err != nil {
			refused = append(refused, refusal{one, err})
			continue
		}
		one.req.SetVersion(version)
		one.version = version
		c.nextID++
		one.id, one.session = c.nextID, s
		s.inflight = append(s.inflight, one)
		buffer = wire.AppendRequest(buffer, s.header(one.id), one.req)
		c.Stats.Requests.Add(1)
	}
	c.queue = nil
	return buffer, refused
}

// read is the goroutine that takes responses until the connection ends.
func (s *session) read() {
	for {
		if err := s.readResponse(); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *session) readResponse() error {
	if _, err := s.reader.Peek(wire.LengthBytes); err != nil {
		return err
	}
	one := s.first()
	if one == nil {
		return fmt.Errorf("%w: a response that nobody asked for", wire.ErrMalformed)
	}
	bytes, frame, err := s.readFrame(one.pooled)
	if err != nil {
		return err
	}
	s.client.Stats.Responses.Add(1)
	s.client.Stats.BytesIn.Add(int64(len(bytes)) + wire.LengthBytes)
	shape := kmsg.RequestForKey(one.key) // the request itself is the caller's again if its time ran out
	shape.SetVersion(one.version)
	id, resp, err := wire.ReadResponse(bytes, shape)
	if err == nil && id != one.id {
		err = fmt.Errorf("%w: response %d where %d was due", wire.ErrMalformed, id, one.id)
	}
	if err != nil {
		if frame != nil {
			frame.Release()
		}
		return err
	}
	if !s.answered() {
		if frame != nil {
			frame.Release()
		}
		return net.ErrClosed
	}
	s.client.finish(one, resp, frame, nil)
	return nil
}

// first gives the request whose response is due.
func (s *session) first() *call {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if len(s.inflight) == 0 {
		return nil
	}
	return s.inflight[0]
}

// answered takes the first request off those in flight; false if the session
// failed meanwhile and they have been called back.
func (s *session) answered() bool {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.dead {
		return false
	}
	s.inflight[0] = nil
	if s.inflight = s.inflight[1:]; len(s.inflight) == 0 {
		s.inflight = nil
	}
	s.spoke = true
	s.client.backoff = 0
	return true
}

// readFrame takes one response off the connection.
func (s *session) readFrame(pooled bool) ([]byte, *wire.Frame, error) {
	var length [wire.LengthBytes]byte
	if _, err := io.ReadFull(s.reader, length[:]); err != nil {
		return nil, nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(length[:])))
	if size < 0 || size > s.client.options.MaxResponseBytes {
		return nil, nil, fmt.Errorf("%w: a response of %d bytes", wire.ErrMalformed, size)
	}
	var prefix []byte
	if size > patientFrameBytes {
		prefix = make([]byte, prefixFrameBytes)
		if _, err := io.ReadFull(s.reader, prefix); err != nil {
			return nil, nil, err
		}
	}
	var frame *wire.Frame
	var bytes []byte
	if pooled {
		frame = wire.NewFrame(size, nil)
		bytes = frame.Bytes
	} else {
		bytes = make([]byte, size)
	}
	copied := copy(bytes, prefix)
	if _, err := io.ReadFull(s.reader, bytes[copied:]); err != nil {
		if frame != nil {
			frame.Release()
		}
		return nil, nil, err
	}
	return bytes, frame, nil
}

// fail ends the session: the requests in flight are called back. Those that were
// not sent yet wait for the next session.
func (s *session) fail(reason error) {
	c := s.client
	c.mu.Lock()
	if s.dead {
		c.mu.Unlock()
		return
	}
	s.dead = true
	if c.session == s {
		c.session = nil
	}
	inflight := s.inflight
	s.inflight = nil
	if len(inflight) > 0 || !s.spoke {
		c.Stats.Failures.Add(1)
	}
	if !s.spoke { // it may do so again at once
		c.backOff()
	}
	result := fmt.Errorf("%w: %w", ErrDisconnected, reason)
	if c.closed {
		result = ErrClosed
	}
	c.mu.Unlock()
	_ = s.conn.Close() // broken or not wanted any more
	c.options.Logger.Debug("connection ended", "peer", s.conn.RemoteAddr(), "unanswered", len(inflight), "reason", reason)
	for _, one := range inflight {
		c.finish(one, nil, nil, result)
	}
	signal(c.wake)
}
