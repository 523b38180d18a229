package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
)

// Request is what Handle takes: a message of the protocol, authorised, with the
// topics' names and ids filled in where the message has only one of them, and
// with only groups of this partition in it.
type Request struct {
	Message    kmsg.Request
	ClientID   string // of the request's header; "" if null
	ClientHost string // as Java prints an InetAddress: "/127.0.0.1"
}

// TopicsDeleted is an event that Handle takes: the offsets of these topics are
// deleted. It has no reply.
type TopicsDeleted struct {
	Topics []DeletedTopic
}

// DeletedTopic is a topic that is gone; one of the same name may exist by now.
type DeletedTopic struct {
	Name string
	ID   protocol.TopicID
}

// Options is what node hands in.
type Options struct {
	Settings Settings
	Random   func() uint64 // member ids
	// MaxBatchBytes is max.message.bytes of __consumer_offsets: what is larger
	// is refused before anything changes. Nil: no limit.
	MaxBatchBytes func() int
}

// Coordinator is the machine. See the package comment.
type Coordinator struct {
	options Options
}

// New makes an empty coordinator of one partition.
func New(options Options) *Coordinator { return &Coordinator{options: options} }

var _ machine.Machine = (*Coordinator)(nil)

// Restore implements machine.Machine.
func (c *Coordinator) Restore(end protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	panic("not yet")
}

// Apply implements machine.Machine.
func (c *Coordinator) Apply(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	panic("not yet")
}

// Committed implements machine.Machine: nothing here waits for it.
func (c *Coordinator) Committed(protocol.Offset) {}

// Activate implements machine.Machine: members get a whole session to show up.
func (c *Coordinator) Activate(turn machine.Turn, epoch protocol.LeaderEpoch) (machine.Result, error) {
	panic("not yet")
}

// Resign implements machine.Machine.
func (c *Coordinator) Resign() { panic("not yet") }

// Handle implements machine.Machine: request is a Request or a TopicsDeleted.
func (c *Coordinator) Handle(turn machine.Turn, request any) (machine.Result, error) {
	panic("not yet")
}

// Tick implements machine.Machine.
func (c *Coordinator) Tick(turn machine.Turn) (machine.Result, error) { panic("not yet") }

// NextDeadline implements machine.Machine.
func (c *Coordinator) NextDeadline() time.Time { panic("not yet") }
