package diff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// silenceLimit is how long a request that may never be answered is waited for.
const silenceLimit = 5 * time.Second

// frame writes a request as it goes over the wire, with its length before it.
func frame(key, version int16, correlation int32, client *string, flexible bool, body []byte) []byte {
	out := binary.BigEndian.AppendUint16(make([]byte, 4, 64+len(body)), uint16(key))
	out = binary.BigEndian.AppendUint16(out, uint16(version))
	out = binary.BigEndian.AppendUint32(out, uint32(correlation))
	if client == nil {
		out = append(out, 0xff, 0xff)
	} else {
		out = binary.BigEndian.AppendUint16(out, uint16(len(*client)))
		out = append(out, *client...)
	}
	if flexible {
		out = append(out, 0)
	}
	out = append(out, body...)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func frameOf(req kmsg.Request, correlation int32, client *string) []byte {
	return frame(req.Key(), req.GetVersion(), correlation, client, req.IsFlexible(), req.AppendTo(nil))
}

// raw sends bytes on a connection and gives the answer's frame without length and correlation id, which is checked. What became
// of it otherwise is told in words.
func (t *Teller) raw(on string, bytes []byte, correlation int32) (body []byte, otherwise string) {
	c := t.dialed(on)
	if c == nil {
		return nil, "no connection"
	}
	if _, err := c.Write(bytes); err != nil {
		return nil, t.lost(on, err)
	}
	return t.rawAnswer(on, correlation)
}

func (t *Teller) rawAnswer(on string, correlation int32) (body []byte, otherwise string) {
	c := t.conns[on]
	_ = c.SetReadDeadline(time.Now().Add(silenceLimit))
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, t.lost(on, err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 4 || length > 1<<26 {
		t.hangUp(on)
		return nil, fmt.Sprintf("an answer of %d bytes", length)
	}
	body = make([]byte, length-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, t.lost(on, err)
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != correlation {
		return nil, fmt.Sprintf("correlation id %d for %d", got, correlation)
	}
	return body, ""
}

// lost hangs up, and tells why nothing was read.
func (t *Teller) lost(on string, err error) string {
	t.hangUp(on)
	var failure net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &failure) && failure.Timeout() {
		return "no answer"
	}
	return "the connection is closed"
}

func (t *Teller) hangUp(on string) {
	if c := t.conns[on]; c != nil {
		_ = c.Close()
		delete(t.conns, on)
	}
}

// exchange sends a request and gives the answer, or in words what became of it.
func (t *Teller) exchange(on string, req kmsg.Request) (kmsg.Response, string) {
	if t.err != nil {
		return nil, "not asked"
	}
	client := "teller"
	if produce, ok := req.(*kmsg.ProduceRequest); ok && produce.Acks == 0 {
		return nil, t.unanswered(on, req)
	}
	body, otherwise := t.raw(on, frameOf(req, 7, &client), 7)
	if otherwise != "" {
		return nil, otherwise
	}
	return decode(req, body)
}

// unanswered sends what has no answer, and tells what became of the connection by asking another thing.
func (t *Teller) unanswered(on string, req kmsg.Request) string {
	client := "teller"
	c := t.dialed(on)
	if c == nil {
		return "no connection"
	}
	if _, err := c.Write(frameOf(req, 7, &client)); err != nil {
		return t.lost(on, err)
	}
	next := kmsg.NewPtrApiVersionsRequest()
	if _, err := c.Write(frameOf(next, 8, &client)); err != nil {
		return t.lost(on, err)
	}
	if _, otherwise := t.rawAnswer(on, 8); otherwise != "" {
		return otherwise
	}
	return "no answer, and the connection goes on"
}

func decode(req kmsg.Request, body []byte) (resp kmsg.Response, otherwise string) {
	defer func() {
		if r := recover(); r != nil {
			resp, otherwise = nil, fmt.Sprintf("an answer that cannot be read: %v", r)
		}
	}()
	resp = req.ResponseKind()
	if req.IsFlexible() && req.Key() != (&kmsg.ApiVersionsRequest{}).Key() {
		if len(body) == 0 || body[0] != 0 {
			return nil, "an answer whose header is not of version 1"
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Sprintf("an answer that cannot be read: %v", err)
	}
	if again := resp.AppendTo(nil); len(again) != len(body) && !lossy(resp) {
		return resp, fmt.Sprintf("%d bytes where %d would say the same", len(body), len(again))
	}
	return resp, ""
}

// lossy are responses that kmsg writes otherwise than it reads them.
func lossy(resp kmsg.Response) bool {
	_, isFetch := resp.(*kmsg.FetchResponse)
	return isFetch
}

// note writes a named line.
func (t *Teller) note(name, text string) {
	t.lines = append(t.lines, name+arrow+text)
}

// arrow stands between the name of a case and its answer.
const arrow = " → "

// told is what an exchange is written down as.
func (t *Teller) told(resp kmsg.Response, otherwise string) string {
	switch {
	case resp == nil:
		return otherwise
	case otherwise != "":
		return t.show(resp) + " in " + otherwise
	default:
		return t.show(resp)
	}
}

// tell asks and writes the answer down under a name.
func tell[R kmsg.Response](t *Teller, name, on string, version int16, req kmsg.Request) R {
	req.SetVersion(version)
	resp, otherwise := t.exchange(on, req)
	t.note(fmt.Sprintf("%s: %s %d", name, kmsg.NameForKey(req.Key()), version), t.told(resp, otherwise))
	got, _ := resp.(R)
	return got
}

// secret is tell without writing down.
func secret[R kmsg.Response](t *Teller, on string, version int16, req kmsg.Request) R {
	req.SetVersion(version)
	resp, _ := t.exchange(on, req)
	got, _ := resp.(R)
	return got
}

func isController(on string) bool { return strings.HasPrefix(on, "controller") }
