package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is one plain connection to a server.
type conn struct {
	*net.TCPConn
	reader *bufio.Reader
	answer []byte // reused
	next   int32  // correlation id
}

func dial(ctx context.Context, addr string) (*conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn) //nolint:forcetypeassert // of network tcp
	return &conn{TCPConn: tcp, reader: bufio.NewReaderSize(tcp, 16<<10)}, nil
}

// read takes one small response; it is valid until the next.
func (c *conn) read() ([]byte, error) {
	prefix, err := c.reader.Peek(4)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(prefix))
	_, _ = c.reader.Discard(4) // peeked
	if cap(c.answer) < size {
		c.answer = make([]byte, size)
	}
	c.answer = c.answer[:size]
	_, err = io.ReadFull(c.reader, c.answer)
	return c.answer, err
}

// ask sends one request and waits for its answer.
func (c *conn) ask(req kmsg.Request) (kmsg.Response, error) {
	c.next++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, c.next)
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	body, err := c.read()
	if err != nil {
		return nil, err
	}
	header := 4
	if req.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		header++ // no tagged fields
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	return resp, resp.ReadFrom(body[header:])
}

// producerID asks for one, again while the coordinator that gives them out is being loaded.
func (c *conn) producerID() (int64, int16, error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.ProducerID, req.ProducerEpoch = 1, -1, -1
	for {
		resp, err := c.ask(req)
		if err != nil {
			return 0, 0, err
		}
		id := resp.(*kmsg.InitProducerIDResponse) //nolint:forcetypeassert // ResponseKind
		err = kerr.ErrorForCode(id.ErrorCode)
		if err == nil || !kerr.IsRetriable(err) {
			return id.ProducerID, id.ProducerEpoch, err
		}
		time.Sleep(retryPause)
	}
}

// retryPause is between two tries of what a server is not ready for yet.
const retryPause = 20 * time.Millisecond

// acknowledged checks the answer to a produce frame.
func (f *produceFrame) acknowledged(answer []byte) error {
	if len(answer) < f.errorAt+2 {
		return fmt.Errorf("an answer of %d bytes", len(answer))
	}
	return kerr.ErrorForCode(int16(binary.BigEndian.Uint16(answer[f.errorAt:])))
}
