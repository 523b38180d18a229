package diff

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerLimit is how long a response may take; stories that wait for something
// else ask again.
const answerLimit = 2 * time.Minute

// Teller asks one server and writes down what it says.
type Teller struct {
	server Server
	conns  map[string]*conn
	ids    map[string][16]byte // of topics that setUp has made, by name
	names  map[string]string   // what differs from run to run → its name
	counts map[string]int
	// By which numbers producer ids are shown in stories of transactions; elsewhere all are 1.
	producers map[int64]int64
	lines     []string
	err       error // the first failure; nothing is asked after it
}

type conn struct {
	net.Conn
	correlation int32
	waiting     []pending // requests without answer, oldest first
}

type pending struct {
	what string
	req  kmsg.Request
}

// Server is who is asked: the addresses of its listeners.
type Server struct {
	Broker, Controller string
}

// Book is a number of stories that are told to a server that nobody else has talked to, and recorded in one file.
type Book struct {
	Name string // the file is testdata/control/diff-NAME.txt
	// Settings are laid over those of the node.
	Settings map[string]string
	stories  []story
}

type story struct {
	name string
	tell func(t *Teller)
}

// keepAll is for records of years ago, which else would be deleted some time after the start. The broker shall not be fenced on a
// machine that has much to do.
var keepAll = map[string]string{"log.retention.ms": "-1", "broker.session.timeout.ms": "60000"}

// Books are all books.
var Books = []Book{
	{"groups", nil, groupStories},
	{"apis", keepAll, apiStories},
	{"behaviour", keepAll, behaviourStories},
	{"transactions", map[string]string{
		"log.retention.ms": "-1", "broker.session.timeout.ms": "60000", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}, transactionStories},
}

// Tell tells the stories of a book to a server and gives what it answered.
func Tell(ctx context.Context, server Server, book Book) ([]string, error) {
	t := &Teller{server: server, conns: map[string]*conn{}, ids: map[string][16]byte{}, names: map[string]string{}, counts: map[string]int{}, producers: map[int64]int64{}}
	stop := context.AfterFunc(ctx, func() { t.fail(ctx.Err()) })
	defer stop()
	defer t.close()
	for _, story := range book.stories {
		t.lines = append(t.lines, "# "+story.name)
		story.tell(t)
		t.close()
	}
	return t.lines, t.err
}

var groupStories = []story{
	{"FindCoordinator", findCoordinator},
	{"members", members},
	{"static members", staticMembers},
	{"several members", severalMembers},
	{"commits", commits},
	{"groups", administration},
	{"a deleted topic", deletedTopic},
	{"refused heartbeats of consumer groups", heartbeats},
	{"reconciliation in a consumer group", reconciliation},
	{"static members of a consumer group", staticConsumers},
	{"members of both protocols", migration},
}

func (t *Teller) close() {
	for name, c := range t.conns {
		_ = c.Close()
		delete(t.conns, name)
	}
}

func (t *Teller) fail(err error) {
	if t.err == nil && err != nil {
		t.err = err
	}
}

// name makes text appear as kind and a number from now on.
func (t *Teller) name(kind, text string) {
	if _, known := t.names[text]; known || text == "" {
		return
	}
	t.counts[kind]++
	t.names[text] = fmt.Sprintf("<%s %d>", kind, t.counts[kind])
}

// ask sends a request on the connection of a name and writes its answer down. The
// answer is nil after a failure, or if the server closed the connection.
func ask[R kmsg.Response](t *Teller, on string, version int16, req kmsg.Request) R {
	t.send(on, version, req)
	return receive[R](t, on)
}

// quietly asks without writing down.
func quietly[R kmsg.Response](t *Teller, on string, version int16, req kmsg.Request) R {
	before := len(t.lines)
	resp := ask[R](t, on, version, req)
	if t.err == nil {
		t.lines = t.lines[:before]
	}
	return resp
}

// send sends a request whose answer may come late.
func (t *Teller) send(on string, version int16, req kmsg.Request) {
	if t.err != nil {
		return
	}
	c := t.dialed(on)
	if c == nil {
		return
	}
	req.SetVersion(version)
	c.correlation++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("teller")).AppendRequest(nil, req, c.correlation)
	c.waiting = append(c.waiting, pending{fmt.Sprintf("%s %d", kmsg.NameForKey(req.Key()), version), req})
	if _, err := c.Write(frame); err != nil {
		t.fail(err)
	}
}

// dialed gives the connection of a name; one whose name begins with controller is to the controller's listener. It is nil after a
// failure.
func (t *Teller) dialed(on string) *conn {
	if c := t.conns[on]; c != nil {
		return c
	}
	address := t.server.Broker
	if isController(on) {
		address = t.server.Controller
	}
	dialed, err := net.Dial("tcp", address)
	if err != nil {
		t.fail(err)
		return nil
	}
	c := &conn{Conn: dialed}
	t.conns[on] = c
	return c
}

// receive takes the answer to the oldest request of a connection that has none.
func receive[R kmsg.Response](t *Teller, on string) (resp R) {
	if t.err != nil {
		return resp
	}
	c := t.conns[on]
	asked := c.waiting[0]
	c.waiting = c.waiting[1:]
	_ = c.SetReadDeadline(time.Now().Add(answerLimit))
	answer, err := c.read(asked.req)
	switch {
	case errors.Is(err, io.EOF):
		t.lines = append(t.lines, asked.what+": the connection is closed")
		_ = c.Close()
		delete(t.conns, on)
		return resp
	case err != nil:
		t.fail(fmt.Errorf("%s after %q: %w", asked.what, last(t.lines), err))
		return resp
	}
	t.lines = append(t.lines, asked.what+" "+t.show(answer))
	return answer.(R)
}

func last(lines []string) string { return lines[len(lines)-1] }

func (c *conn) read(req kmsg.Request) (kmsg.Response, error) {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	body := frame[4:]
	if req.IsFlexible() && req.Key() != (&kmsg.ApiVersionsRequest{}).Key() {
		body = body[1:] // no tags in the header
	}
	return resp, resp.ReadFrom(body)
}

// show writes a response on one line.
func (t *Teller) show(resp kmsg.Response) string {
	unordered := []string{"Groups", "Members"}
	tidy(resp)
	switch resp.(type) {
	case *kmsg.OffsetFetchResponse, *kmsg.ConsumerGroupHeartbeatResponse: // of one that asks for all
		unordered = append(unordered, "Topics")
	case *kmsg.ConsumerGroupDescribeResponse:
		unordered = append(unordered, "TopicPartitions", "SubscribedTopics")
	}
	line := ports.ReplaceAllString(t.text(t.plain(reflect.ValueOf(resp).Elem(), unordered)), `"Port":<port>`)
	return uuids.ReplaceAllString(line, "<uuid>")
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var ports = regexp.MustCompile(`"Port":\d{4,5}`)

// plain gives a message as what json shows well: fields by name, bytes as text. The
// lists that are unordered are sorted.
func (t *Teller) plain(v reflect.Value, unordered []string) any {
	switch v.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name == "UnknownTags" || name == "Version" {
				continue
			}
			out[name] = t.plain(v.Field(i), unordered)
			if list, ok := out[name].([]any); ok && slices.Contains(unordered, name) {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(t.text(a), t.text(b)) })
			}
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return t.plain(v.Elem(), unordered)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Array { // a topic id
			return t.id(v)
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%q", v.Interface())
		}
		out := []any{}
		for i := range v.Len() {
			out = append(out, t.plain(v.Index(i), unordered))
		}
		return out
	default:
		return v.Interface()
	}
}

// id shows a topic id or the like; one that nobody has named differs from run to run.
func (t *Teller) id(v reflect.Value) string {
	id := fmt.Sprintf("%x", v.Interface())
	if _, named := t.names[id]; named || strings.HasPrefix(id, "000000000000") {
		return id
	}
	return "<id>"
}

// text writes a value on one line, with names for what differs from run to run.
func (t *Teller) text(v any) string {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	t.fail(encoder.Encode(v))
	line := strings.TrimSpace(encoded.String())
	for _, known := range slices.SortedFunc(maps.Keys(t.names), func(a, b string) int { return len(b) - len(a) }) {
		line = strings.ReplaceAll(line, known, t.names[known])
	}
	return line
}
