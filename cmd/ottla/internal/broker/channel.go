package broker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/client"
)

// maxErrands bounds the requests that are on their way to the controller.
const maxErrands = 10_000

// Channel carries requests to the active controller where that is another node. A
// request waits until the leader of the quorum is known. One that was lost, or met a
// node that does not lead any more, is sent again until its time is over, as by
// Apache Kafka (NodeToControllerRequestThread). So is one that a node has not answered
// which ceased to lead meanwhile: it may hang.
type Channel struct {
	// Leader is the leader of the metadata quorum as far as this node knows; nil:
	// nobody.
	Leader func() *raft.Address
	// SendTo sends a request to a node of the quorum, and calls done once, from
	// anywhere.
	SendTo  func(to raft.Address, req kmsg.Request, done func(kmsg.Response, error))
	Timeout time.Duration // of a request, from Send on (request.timeout.ms)
	Backoff time.Duration // before it is sent again (retry.backoff.ms)
	Wake    func()

	mu      sync.Mutex
	waiting []*errand // to be sent
	back    []*errand // that failed, for the next Tick, which knows the time
	flying  []*errand // in the order in which they were sent
	next    time.Time // when those that wait are looked at again; zero: at once
}

// errand is one request on its way.
type errand struct {
	req   kmsg.Request
	done  func(kmsg.Response, error)
	until time.Time // zero: not known yet
	after time.Time // when to send it again
	err   error     // why it failed the last time
	tries int
	to    raft.Address // of the last try
}

// flightCheck is how often it is looked whether those who are asked still lead.
const flightCheck = 500 * time.Millisecond

// Send is a Send.
func (c *Channel) Send(req kmsg.Request, done func(kmsg.Response, error)) {
	c.mu.Lock()
	full := len(c.waiting)+len(c.back)+len(c.flying) >= maxErrands
	if !full {
		c.waiting = append(c.waiting, &errand{req: req, done: done})
		c.next = time.Time{}
	}
	c.mu.Unlock()
	if full {
		done(nil, client.ErrBusy)
		return
	}
	c.Wake()
}

// NextDeadline tells when Tick has something to do.
func (c *Channel) NextDeadline(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.back) > 0:
		return now
	case len(c.waiting) == 0 && len(c.flying) == 0:
		return time.Time{}
	case c.next.IsZero():
		return now
	default:
		return c.next
	}
}

// Tick sends what is due, and gives up what has waited too long.
func (c *Channel) Tick(now time.Time) {
	leader := c.Leader()
	var send, late []*errand
	c.mu.Lock()
	for _, e := range c.back {
		e.after = now.Add(c.Backoff)
	}
	rest := append(c.waiting, c.back...)
	c.flying = slices.DeleteFunc(c.flying, func(e *errand) bool {
		elsewhere := leader != nil && e.to != *leader
		if elsewhere {
			e.tries++ // what it still answers is not heard
			rest = append(rest, e)
		}
		return elsewhere
	})
	c.waiting, c.back, c.next = nil, nil, now.Add(c.Backoff)
	for _, e := range rest {
		if e.until.IsZero() {
			e.until = now.Add(c.Timeout)
		}
		switch {
		case !now.Before(e.until):
			late = append(late, e)
		case leader != nil && !now.Before(e.after):
			send = append(send, e)
		default:
			c.waiting = append(c.waiting, e)
		}
	}
	if len(c.waiting) == 0 {
		c.next = now.Add(flightCheck)
	}
	tries := make([]int, len(send))
	for i, e := range send {
		e.to, tries[i] = *leader, e.tries
	}
	c.flying = append(c.flying, send...)
	c.mu.Unlock()
	for _, e := range late {
		e.done(nil, e.lateError())
	}
	for i, e := range send {
		c.SendTo(*leader, copyOf(e.req), func(resp kmsg.Response, err error) { c.receive(e, tries[i], resp, err) })
	}
}

// copyOf gives a request of its own to each try: the connection of a former one may
// not have written it yet, and sets the version in it.
func copyOf(req kmsg.Request) kmsg.Request {
	made := reflect.New(reflect.TypeOf(req).Elem())
	made.Elem().Set(reflect.ValueOf(req).Elem())
	return made.Interface().(kmsg.Request) //nolint:forcetypeassert // the type of req
}

func (e *errand) lateError() error {
	if e.err == nil {
		return fmt.Errorf("the active controller is not known: %w", client.ErrTimeout)
	}
	return fmt.Errorf("%w: %w", client.ErrTimeout, e.err)
}

// receive answers, or has the request sent again.
func (c *Channel) receive(e *errand, try int, resp kmsg.Response, err error) {
	var refused *protocol.Error // the version, for one: another try would end alike
	again := err != nil && !errors.Is(err, client.ErrClosed) && !errors.As(err, &refused)
	if err == nil && codeOf(resp) == protocol.NotController {
		again, err = true, protocol.NotController.Err()
	}
	c.mu.Lock()
	if try != e.tries {
		c.mu.Unlock()
		return // it was sent to another since
	}
	at := slices.Index(c.flying, e)
	c.flying = slices.Delete(c.flying, at, at+1)
	e.tries++
	if again {
		e.err = err
		c.back = append(c.back, e)
	}
	c.mu.Unlock()
	if again {
		c.Wake()
		return
	}
	e.done(resp, err)
}

// codeOf is the code of a response as a whole. The messages have no common
// interface; all that go over a Channel have such a field.
func codeOf(resp kmsg.Response) protocol.ErrorCode {
	if field := reflect.ValueOf(resp).Elem().FieldByName("ErrorCode"); field.IsValid() {
		return protocol.ErrorCode(field.Int())
	}
	return protocol.None
}
