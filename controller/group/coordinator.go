package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/controller/offsets"
	"ottla/protocol"
)

// Request is what Handle takes: a message of the protocol, authorised, with the
// topics' names and ids filled in where the message has only one of them, and
// with only groups of this partition in it.
type Request struct {
	Message    kmsg.Request
	ClientID   string // of the request's header; "" if null
	ClientHost string // as Java prints an InetAddress: "/127.0.0.1"
	Guard      uint64 // of the verification of a producer's transaction; 0: none was needed
	// MayDescribe tells which topics a regular expression may find for whoever
	// sent a ConsumerGroupHeartbeat. It may be called as long as the next Tick;
	// nil: all. Other messages have no use for it.
	MayDescribe func(topic string) bool
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
	// Image is the cluster as this node knows it when it is asked: topics, racks,
	// settings of groups. Each decision asks once. A group notices at its members'
	// next heartbeat what has changed, as in Kafka; nobody has to tell it. Nil: an
	// empty cluster.
	Image func() *metadata.Image
	// MaxBatchBytes is max.message.bytes of __consumer_offsets: what is larger
	// is refused before anything changes. Nil: no limit.
	MaxBatchBytes func() int
}

// maxExpiries bounds how many deadlines one Tick serves; what is left is due at
// once.
const maxExpiries = 1000

// Coordinator is the machine. See the package comment.
type Coordinator struct {
	options Options

	// Durable: changed by Apply alone (of a group, what is marked so).
	groups  map[string]*group
	offsets *offsets.Store

	// Volatile.
	active    bool
	deadlines deadlines
	cleanup   deadline // the next look for offsets and groups that expired
	alarms    map[alarmKey]*alarm
	topics    *consumer.Topics
	tokens    machine.Token
}

// New makes an empty coordinator of one partition.
func New(options Options) *Coordinator {
	return &Coordinator{
		options: options, groups: map[string]*group{}, offsets: offsets.NewStore(),
		alarms: map[alarmKey]*alarm{}, topics: consumer.NewTopics(),
	}
}

var _ machine.Machine = (*Coordinator)(nil)

// Restore implements machine.Machine. Coordinators have no snapshots: the shell
// restores to nothing and replays the log.
func (c *Coordinator) Restore(end protocol.Offset, _ protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	c.Resign()
	c.groups, c.offsets = map[string]*group{}, offsets.NewStore()
	return c.replay(end-1, 0, timestampMs, protocol.NoProducerID, records)
}

// Apply implements machine.Machine.
func (c *Coordinator) Apply(base protocol.Offset, _ protocol.LeaderEpoch, timestampMs int64, records []machine.Record) error {
	return c.replay(base, 1, timestampMs, protocol.NoProducerID, records)
}

// Committed implements machine.Machine: nothing here waits for it.
func (c *Coordinator) Committed(protocol.Offset) {}

// Activate implements machine.Machine: every member gets a whole session to
// show up.
func (c *Coordinator) Activate(turn machine.Turn, _ protocol.LeaderEpoch) (machine.Result, error) {
	c.Resign()
	c.active = true
	c.look()
	d := &decision{now: turn.Now}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		c.wake(d, c.groups[id])
	}
	c.cleanup.expire, c.cleanup.alone = c.expireOffsets, true
	c.deadlines.set(&c.cleanup, turn.Now.Add(c.options.Settings.OffsetsCheckInterval))
	result := d.result(nil)
	result.Divisible = true
	return result, nil
}

// Resign implements machine.Machine: the volatile state is gone.
func (c *Coordinator) Resign() {
	c.active, c.deadlines, c.cleanup = false, deadlines{}, deadline{}
	c.alarms, c.topics = map[alarmKey]*alarm{}, consumer.NewTopics()
	for _, g := range c.groups {
		g.sleep()
	}
}

// Handle implements machine.Machine: request is a Request, a TopicsDeleted or a Survey.
func (c *Coordinator) Handle(turn machine.Turn, request any) (machine.Result, error) {
	d := &decision{now: turn.Now}
	c.look()
	switch request := request.(type) {
	case Request:
		reply, err := c.serve(d, request)
		if err != nil {
			return machine.Result{}, err
		}
		result := d.result(reply)
		_, result.Divisible = request.Message.(*kmsg.DeleteGroupsRequest)
		return result, nil
	case TopicsDeleted:
		c.deleteTopics(d, request.Topics)
		result := d.result(nil)
		result.Divisible = true
		return result, nil
	case Survey:
		return machine.Result{Reply: c.survey(request)}, nil
	default:
		return machine.Result{}, protocol.Errorf(protocol.InvalidRequest, "the group coordinator does not know %T", request)
	}
}

// serve decides one message. The response is nil if the request is parked.
func (c *Coordinator) serve(d *decision, request Request) (kmsg.Response, error) {
	switch message := request.Message.(type) {
	case *kmsg.JoinGroupRequest:
		return c.joinGroup(d, request, message), nil
	case *kmsg.SyncGroupRequest:
		return c.syncGroup(d, message), nil
	case *kmsg.HeartbeatRequest:
		return c.heartbeat(d, message), nil
	case *kmsg.LeaveGroupRequest:
		return c.leaveGroup(d, message), nil
	case *kmsg.OffsetCommitRequest:
		return c.commitOffsets(d, message), nil
	case *kmsg.TxnOffsetCommitRequest:
		return c.commitInTransaction(d, request, message), nil
	case *kmsg.OffsetFetchRequest:
		return c.fetchOffsets(message), nil
	case *kmsg.OffsetDeleteRequest:
		return c.deleteOffsets(d, message), nil
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return c.consumerHeartbeat(d, request, message), nil
	case *kmsg.ConsumerGroupDescribeRequest:
		return c.describeConsumers(d, message), nil
	case *kmsg.DescribeGroupsRequest:
		return c.describeGroups(message), nil
	case *kmsg.ListGroupsRequest:
		return c.listGroups(message), nil
	case *kmsg.DeleteGroupsRequest:
		return c.deleteGroups(d, message), nil
	default:
		return nil, protocol.Errorf(protocol.UnsupportedVersion, "the group coordinator does not serve %T", message)
	}
}

// Tick implements machine.Machine: it serves the deadlines that are due. One that
// stands alone ends the Tick, and a Tick that has decided something ends before it.
func (c *Coordinator) Tick(turn machine.Turn) (machine.Result, error) {
	d, divisible := &decision{now: turn.Now}, true
	c.look()
	for range maxExpiries {
		if c.deadlines.nextAlone() && (len(d.records) > 0 || len(d.answers) > 0) {
			break
		}
		t := c.deadlines.due(turn.Now)
		if t == nil {
			break
		}
		t.expire(d)
		if t.alone {
			divisible = t == &c.cleanup // what removes a member stands or falls together
			break
		}
	}
	result := d.result(nil)
	result.Divisible = divisible
	return result, nil
}

// NextDeadline implements machine.Machine.
func (c *Coordinator) NextDeadline() time.Time { return c.deadlines.next() }
