package broker

import (
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// ControllerRegistration makes this node's controller known to the cluster:
// where it listens and what it supports (KIP-919). It is sent until the active
// controller has taken it.
type ControllerRegistration struct {
	NodeID      protocol.NodeID
	Incarnation protocol.IncarnationID
	Endpoints   []metadata.Endpoint
	Features    []metadata.SupportedRange
	Send        Send
	Wake        func()
	Logger      *slog.Logger

	mu      sync.Mutex
	waiting bool
	done    bool
	failed  bool
	next    time.Time
}

// NextDeadline tells when Tick has something to do.
func (c *ControllerRegistration) NextDeadline(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.done || c.waiting:
		return time.Time{}
	case c.failed || c.next.IsZero():
		return now
	default:
		return c.next
	}
}

// Tick sends the registration if it is not there and none is on its way.
func (c *ControllerRegistration) Tick(now time.Time) {
	c.mu.Lock()
	if c.failed {
		c.failed, c.next = false, now.Add(10*retryInterval)
	}
	send := !c.done && !c.waiting && !now.Before(c.next)
	c.waiting = c.waiting || send
	c.mu.Unlock()
	if send {
		c.Send(c.request(), c.receive)
	}
}

func (c *ControllerRegistration) request() kmsg.Request {
	req := kmsg.NewPtrControllerRegistrationRequest()
	req.ControllerID, req.IncarnationID = int32(c.NodeID), c.Incarnation
	for _, e := range c.Endpoints {
		listener := kmsg.NewControllerRegistrationRequestListener()
		listener.Name, listener.Host, listener.Port, listener.SecurityProtocol = e.Name, e.Host, e.Port, e.SecurityProtocol
		req.Listeners = append(req.Listeners, listener)
	}
	for _, f := range c.Features {
		feature := kmsg.NewControllerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
		req.Features = append(req.Features, feature)
	}
	return req
}

// receive ends it, also where the finalized metadata.version knows no
// registration of controllers: then there is nothing to say.
func (c *ControllerRegistration) receive(response kmsg.Response, err error) {
	registered, ok := response.(*kmsg.ControllerRegistrationResponse)
	c.mu.Lock()
	c.waiting = false
	switch {
	case err == nil && ok && (registered.ErrorCode == 0 || protocol.ErrorCode(registered.ErrorCode) == protocol.UnsupportedVersion):
		c.done = true
	default:
		c.failed = true
		c.Logger.Warn("the controller was not registered", "error", err)
	}
	c.mu.Unlock()
	c.Wake()
}
