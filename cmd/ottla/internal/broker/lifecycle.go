package broker

import (
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// Send sends a request to the active controller. done is called once, from
// anywhere.
type Send func(req kmsg.Request, done func(kmsg.Response, error))

// State is how far this broker's life has come.
type State uint8

// The states, in the order in which they are passed through.
const (
	Starting State = iota // not registered yet
	Fenced                // registered, but not allowed to lead
	Running
	ShuttingDown // asked for leave, and still leading
	Stopped      // may stop
)

func (s State) String() string {
	return [...]string{"starting", "fenced", "running", "shutting down", "stopped"}[s]
}

// retryInterval is how long to wait after a refused or lost registration or
// heartbeat.
const retryInterval = 100 * time.Millisecond

// LifecycleOptions is what node hands in.
type LifecycleOptions struct {
	NodeID            protocol.NodeID
	ClusterID         string
	Incarnation       protocol.IncarnationID
	Endpoints         []metadata.Endpoint
	Features          []metadata.SupportedRange
	Rack              *string
	Directories       func() []protocol.DirectoryID // that work at the moment
	Offline           func() []protocol.DirectoryID // that failed since the registration
	PreviousEpoch     protocol.BrokerEpoch          // of the last clean stop, -1 after any other (KIP-966)
	MetadataOffset    func() protocol.Offset        // of the last Image applied
	HeartbeatInterval time.Duration                 // broker.heartbeat.interval.ms
	Send              Send
	Wake              func()
	// OnState is told of each change, without a lock held.
	OnState func(State)
	// OnRefused, if not nil, is told of a refused registration, without a lock held.
	OnRefused func(protocol.ErrorCode)
	// RegistrationTimeout is how long the first registration is tried before OnLate is
	// called once (initial.broker.registration.timeout.ms), with the last refusal if there was one; 0: for ever.
	RegistrationTimeout time.Duration
	OnLate              func(refusal protocol.ErrorCode)
	Logger              *slog.Logger
}

// Lifecycle registers this broker and keeps its session.
type Lifecycle struct {
	options LifecycleOptions

	mu       sync.Mutex
	state    State
	epoch    protocol.BrokerEpoch
	waiting  bool      // for a reply
	next     time.Time // when to send again, zero: at once
	leaving  bool
	hurried  bool                  // there is something that the last heartbeat did not tell
	incoming []func(now time.Time) // replies, for the next Tick
	trouble  string                // the last one that was logged: each is said once
	refused  protocol.ErrorCode    // a registration since the last Tick
	refusal  protocol.ErrorCode    // the last one of a registration
	begun    time.Time             // of the first Tick; zero: before it, or not to be watched any more
}

// NewLifecycle makes a Lifecycle that begins with the first Tick.
func NewLifecycle(options LifecycleOptions) *Lifecycle {
	return &Lifecycle{options: options, epoch: -1}
}

// State and Epoch tell how far it is; the epoch is -1 before registration.
func (l *Lifecycle) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Epoch is the epoch of this registration, -1 before.
func (l *Lifecycle) Epoch() protocol.BrokerEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// Leave begins the controlled shutdown; State becomes Stopped when the
// controller has let this broker go.
func (l *Lifecycle) Leave() {
	l.mu.Lock()
	l.leaving, l.next = true, time.Time{}
	l.mu.Unlock()
	l.options.Wake()
}

// Hasten has a heartbeat sent at once: a directory has failed, and others are to lead what lies in it.
func (l *Lifecycle) Hasten() {
	l.mu.Lock()
	l.hurried, l.next = true, time.Time{}
	l.mu.Unlock()
	l.options.Wake()
}

// NextDeadline tells when Tick has something to do.
func (l *Lifecycle) NextDeadline(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.incoming) > 0:
		return now
	case l.waiting || l.state == Stopped:
		return time.Time{}
	case l.next.IsZero():
		return now
	default:
		return l.next
	}
}

// Tick takes in replies and sends what is due.
func (l *Lifecycle) Tick(now time.Time) {
	l.mu.Lock()
	before := l.state
	incoming := l.incoming
	l.incoming = nil
	for _, take := range incoming {
		take(now)
	}
	after := l.state
	refused, late, refusal := l.refused, l.tooLate(now), l.refusal
	l.refused = protocol.None
	var send kmsg.Request
	if !l.waiting && l.state != Stopped && !now.Before(l.next) {
		l.waiting = true
		send = l.request()
	}
	l.mu.Unlock()
	if after != before && l.options.OnState != nil {
		l.options.OnState(after)
	}
	if refused != protocol.None && l.options.OnRefused != nil {
		l.options.OnRefused(refused)
	}
	if late {
		l.options.OnLate(refusal)
	}
	if send != nil {
		l.options.Send(send, l.receive)
	}
}

// tooLate tells, once, that there was no registration in time.
func (l *Lifecycle) tooLate(now time.Time) bool {
	switch {
	case l.options.RegistrationTimeout == 0 || l.options.OnLate == nil:
		return false
	case l.epoch >= 0:
		l.options.RegistrationTimeout = 0
		return false
	case l.begun.IsZero():
		l.begun = now
	}
	late := now.Sub(l.begun) >= l.options.RegistrationTimeout
	if late {
		l.options.RegistrationTimeout = 0
	}
	return late
}

func (l *Lifecycle) request() kmsg.Request {
	if l.epoch < 0 {
		return l.registration()
	}
	return l.heartbeat()
}

// receive keeps a reply for the next Tick, which knows the time.
func (l *Lifecycle) receive(response kmsg.Response, err error) {
	l.mu.Lock()
	l.incoming = append(l.incoming, func(now time.Time) {
		l.waiting = false
		if err != nil {
			l.complain("the controller did not answer", err.Error())
			l.next = now.Add(retryInterval)
			return
		}
		switch response := response.(type) {
		case *kmsg.BrokerRegistrationResponse:
			l.registered(now, response)
		case *kmsg.BrokerHeartbeatResponse:
			l.heard(now, response)
		}
	})
	l.mu.Unlock()
	l.options.Wake()
}

func (l *Lifecycle) registration() kmsg.Request {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.BrokerID, req.ClusterID = int32(l.options.NodeID), l.options.ClusterID
	req.IncarnationID, req.Rack = l.options.Incarnation, l.options.Rack
	req.PreviousBrokerEpoch = int64(l.options.PreviousEpoch)
	for _, e := range l.options.Endpoints {
		listener := kmsg.NewBrokerRegistrationRequestListener()
		listener.Name, listener.Host, listener.Port, listener.SecurityProtocol = e.Name, e.Host, e.Port, e.SecurityProtocol
		req.Listeners = append(req.Listeners, listener)
	}
	for _, f := range l.options.Features {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
		req.Features = append(req.Features, feature)
	}
	for _, directory := range l.options.Directories() {
		req.LogDirs = append(req.LogDirs, directory)
	}
	return req
}

func (l *Lifecycle) registered(now time.Time, response *kmsg.BrokerRegistrationResponse) {
	if code := protocol.ErrorCode(response.ErrorCode); code != protocol.None {
		what := "the controller refused the registration"
		if code == protocol.DuplicateBrokerRegistration { // also after a clean stop
			what += " for as long as the session of the former process, or of another one with this node.id, lasts"
		}
		l.complain(what, code.String())
		l.refused, l.refusal = code, code
		l.next = now.Add(10 * retryInterval)
		return
	}
	l.epoch, l.state, l.next = protocol.BrokerEpoch(response.BrokerEpoch), Fenced, time.Time{}
}

func (l *Lifecycle) heartbeat() kmsg.Request {
	l.hurried = false
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.BrokerID, req.BrokerEpoch = int32(l.options.NodeID), int64(l.epoch)
	req.CurrentMetadataOffset = int64(l.options.MetadataOffset())
	req.WantShutdown = l.leaving
	for _, directory := range l.options.Offline() {
		req.OfflineLogDirs = append(req.OfflineLogDirs, directory)
	}
	return req
}

func (l *Lifecycle) heard(now time.Time, response *kmsg.BrokerHeartbeatResponse) {
	if l.next = now.Add(l.options.HeartbeatInterval); l.hurried {
		l.next = time.Time{}
	}
	switch code := protocol.ErrorCode(response.ErrorCode); {
	case code == protocol.StaleBrokerEpoch:
		// The controller does not know this registration (any more): anew.
		l.epoch, l.state, l.next = -1, Starting, now.Add(retryInterval)
	case code != protocol.None:
		l.complain("the controller refused a heartbeat", code.String())
		l.next = now.Add(retryInterval)
	case response.ShouldShutdown:
		l.state = Stopped
	case l.leaving:
		l.state, l.next = ShuttingDown, now.Add(retryInterval/10)
	case response.IsFenced:
		l.state, l.next = Fenced, now.Add(retryInterval/10)
	default:
		l.state, l.trouble = Running, ""
	}
}

// complain says what goes wrong when it begins or changes, not at each try.
func (l *Lifecycle) complain(what, why string) {
	if l.trouble != what+why {
		l.trouble = what + why
		l.options.Logger.Warn(what, "error", why)
	}
}
