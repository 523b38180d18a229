package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// admin creates the topics, deletes and recreates some, adds partitions, deletes
// records and moves replicas between the disks; one request at a time, again until it is known what came of it.
type admin struct {
	s       *Simulation
	host    *host
	random  *seeded.Random
	conn    *conn
	pumping bool
	busy    bool
	topics  []*adminTopic
	orders  []order // of the script; nil: whatever comes to mind
}

// adminTopic is a topic as the admin wants and knows it.
type adminTopic struct {
	plan     *topicPlan
	wanted   bool
	current  *topicModel // nil: none is known
	count    int32       // of partitions that are wanted
	doubtful bool        // a request's outcome is not known
	moves    int         // of all its partitions
}

func newAdmin(s *Simulation, h *host) *admin {
	a := &admin{s: s, host: h, random: s.random.Fork()}
	for _, t := range s.plan.topics {
		if !t.auto {
			a.topics = append(a.topics, &adminTopic{plan: t, wanted: true, count: t.partitions})
		}
	}
	if s.script {
		a.orders = scriptOrders()
	}
	return a
}

func (a *admin) start() { a.again(a.random.Between(0, 500*time.Millisecond)) }

func (a *admin) again(delay time.Duration) {
	if a.pumping {
		return
	}
	a.pumping = true
	a.s.After(delay, "admin works", func() {
		a.pumping = false
		a.turn()
	})
}

func (a *admin) turn() {
	if a.s.phase == reading {
		return
	}
	if a.conn == nil || !a.conn.open {
		a.busy = false
		if a.conn = a.s.connect("admin", a.host, protocol.OnBroker, func() { a.again(20 * time.Millisecond) }); a.conn == nil {
			a.again(100 * time.Millisecond)
			return
		}
	}
	delay := a.random.Between(time.Millisecond, 500*time.Millisecond)
	if !a.busy && !a.settle() && a.s.phase == working {
		delay = a.random.Between(100*time.Millisecond, 3*time.Second)
		if len(a.orders) > 0 {
			next := a.orders[0]
			a.orders = append(a.orders[1:], next)
			if t := a.topics[next.topic]; t.current != nil || t.plan.churn {
				next.do(a, t)
			}
			delay = 100 * time.Millisecond
		} else {
			a.change()
		}
	}
	a.again(delay)
}

// settle does what is needed to have what is wanted; false if nothing is.
func (a *admin) settle() bool {
	for _, t := range a.topics {
		switch {
		case t.wanted && t.current == nil:
			a.create(t)
		case !t.wanted && t.current != nil:
			a.delete(t)
		case t.wanted && int32(len(t.current.parts)) < t.count:
			a.grow(t)
		default:
			continue
		}
		return true
	}
	return false
}

// change wants something else.
func (a *admin) change() {
	t := a.topics[a.random.Below(len(a.topics))]
	switch {
	case t.plan.churn && (t.current == nil || a.random.Chance(500)):
		t.wanted = !t.wanted
		t.count = t.plan.partitions
	case t.current == nil:
	case len(a.s.plan.dirs) > 1 && a.random.Chance(250):
		a.move(t)
	case t.plan.grows && t.count < 6 && a.random.Chance(500):
		t.count++
	case t.plan.trimmed:
		a.trim(t)
	}
}

func (a *admin) idle() string {
	for _, t := range a.topics {
		if t.wanted != (t.current != nil) || t.current != nil && int32(len(t.current.parts)) < t.count {
			return fmt.Sprintf("admin: topic %s is not as it is wanted: %+v", t.plan.name, *t)
		}
	}
	return ""
}

// send sends a request; done gets its response, unless the connection was cut.
func (a *admin) send(req kmsg.Request, lowest, highest int, done func(resp kmsg.Response, incarnation int)) {
	a.busy = true
	conn := a.conn
	conn.send(req, int16(lowest+a.random.Below(highest-lowest+1)), 20*time.Second, true, func(resp kmsg.Response, err error) {
		if conn == a.conn {
			a.busy = false
		}
		if err == nil {
			done(resp, conn.incarnation)
		}
	})
}

func (a *admin) create(t *adminTopic) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 5000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.plan.name, t.plan.partitions, 1
	for _, c := range t.plan.configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = c.name, kmsg.StringPtr(c.value)
		topic.Configs = append(topic.Configs, config)
	}
	req.Topics = append(req.Topics, topic)
	a.send(req, 7, 7, func(resp kmsg.Response, _ int) {
		answer := resp.(*kmsg.CreateTopicsResponse).Topics[0]
		switch code := protocol.ErrorCode(answer.ErrorCode); {
		case code == protocol.None:
			a.s.counts.TopicsCreated++
			a.created(t, answer.TopicID)
		case code == protocol.TopicAlreadyExists:
			a.find(t)
		case a.later(code), code == protocol.InvalidReplicationFactor: // the broker may be fenced for a moment
			a.s.Linef("admin: creating %s gave %s", t.plan.name, code)
		default:
			a.s.Violate("admin: creating %s (%+v) gave %s: %s", t.plan.name, t.plan.configs, code, text(answer.ErrorMessage))
		}
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// later tells that a request may be tried again: the controller was not reached, or
// could not write.
func (a *admin) later(code protocol.ErrorCode) bool {
	return code == protocol.RequestTimedOut || code == protocol.NotController && a.host.sawFault
}

// created takes an acknowledged topic: it must have been published before.
func (a *admin) created(t *adminTopic, id protocol.TopicID) {
	known := a.s.model.topics[id]
	if known == nil || int32(len(known.parts)) < t.plan.partitions {
		a.s.Violate("topic %s (%s) was acknowledged and is in no image", t.plan.name, id)
		return
	}
	if !known.deleteAsked {
		t.current = known
	}
}

// find learns the id of a topic that an earlier request has created.
func (a *admin) find(t *adminTopic) {
	req := metadataRequest(a.random, []*topicPlan{t.plan}, false)
	a.send(req, 10, 13, func(resp kmsg.Response, _ int) {
		topic := resp.(*kmsg.MetadataResponse).Topics[0]
		if topic.ErrorCode == 0 {
			a.created(t, topic.TopicID)
		}
	})
}

func (a *admin) delete(t *adminTopic) {
	doomed := t.current
	doomed.deleteAsked = true
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 5000
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.TopicID = doomed.id
	req.Topics = append(req.Topics, topic)
	tries := t.doubtful
	t.doubtful = true
	a.send(req, 6, 6, func(resp kmsg.Response, incarnation int) {
		answer := resp.(*kmsg.DeleteTopicsResponse).Topics[0]
		switch code := protocol.ErrorCode(answer.ErrorCode); {
		case code == protocol.None, code == protocol.UnknownTopicID && tries:
			a.s.counts.TopicsDeleted++
			doomed.deleted, t.doubtful = true, false
			if t.current == doomed {
				t.current = nil
			}
			if h := a.host; h.runs(incarnation) && h.node.Image().TopicByID(doomed.id) != nil {
				a.s.Violate("topic %s (%s) was acknowledged as deleted and is in the image", doomed.name, doomed.id)
			}
		case a.later(code):
		default:
			a.s.Violate("admin: deleting %s (%s) gave %s: %s", doomed.name, doomed.id, code, text(answer.ErrorMessage))
		}
	})
}

func (a *admin) grow(t *adminTopic) {
	grown := t.current
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 5000
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = grown.name, t.count
	req.Topics = append(req.Topics, topic)
	count := t.count
	a.send(req, 2, 3, func(resp kmsg.Response, _ int) {
		answer := resp.(*kmsg.CreatePartitionsResponse).Topics[0]
		switch code := protocol.ErrorCode(answer.ErrorCode); {
		case code == protocol.None, code == protocol.InvalidPartitions: // an earlier try has done it
			if int32(len(grown.parts)) < count {
				a.s.Violate("topic %s: %d partitions were acknowledged (%s) and are in no image", grown.name, count, code)
			}
		case a.later(code), code == protocol.InvalidReplicaAssignment, code == protocol.InvalidReplicationFactor:
		default:
			a.s.Violate("admin: adding partitions to %s gave %s: %s", grown.name, code, text(answer.ErrorMessage))
		}
	})
}

// trim deletes records of one partition.
func (a *admin) trim(t *adminTopic) {
	p := t.current.part(int32(a.random.Below(len(t.current.parts))))
	from := p.seen.start
	to := from + protocol.Offset(a.random.Below(int(p.seen.highWatermark-from)+1))
	asked := to
	if a.random.Chance(200) {
		asked, to = -1, 1<<62
	}
	before := a.s.model.deletes[p.tp()]
	a.s.model.deletes[p.tp()] = max(before, to)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 5000
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = t.plan.name
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Partition, part.Offset = p.n, int64(asked)
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	a.send(req, 0, 2, func(resp kmsg.Response, incarnation int) {
		answer := resp.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
		switch code := protocol.ErrorCode(answer.ErrorCode); code {
		case protocol.None:
			a.trimmed(p, asked, protocol.Offset(answer.LowWatermark), incarnation)
			if asked == -1 {
				a.s.model.deletes[p.tp()] = max(before, protocol.Offset(answer.LowWatermark))
			}
		case protocol.NotLeaderOrFollower, protocol.RequestTimedOut, protocol.KafkaStorageError:
		case protocol.OffsetOutOfRange:
			if len(p.cuts) == 0 {
				a.s.Violate("admin: deleting %s up to %d gave %s: %+v", p, asked, code, p.seen)
			}
		default:
			a.s.Violate("admin: deleting records of %s up to %d gave %s", p, asked, code)
		}
	})
}

func (a *admin) trimmed(p *partModel, asked, low protocol.Offset, incarnation int) {
	if low < asked || p.seen.incarnation == incarnation && p.seen.start < low {
		a.s.Violate("admin: %s was to start at %d, the answer is %d, it is %+v", p, asked, low, p.seen)
	}
}

// move sends some partitions of a topic to other disks, moveAll all of them to one: of two calls the one to the first, the other to the
// last. What they hold must be as before, wherever they are; so there is nothing to remember.
func (a *admin) move(t *adminTopic) { a.moveTo(t, a.s.plan.dirs, 400) }

func (a *admin) moveAll(t *adminTopic) {
	if t.current != nil {
		t.moves++
		a.moveTo(t, a.s.plan.dirs[t.moves%len(a.s.plan.dirs):][:1], 1000)
	}
}

func (a *admin) moveTo(t *adminTopic, dirs []string, perMille int) {
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	for _, dir := range dirs {
		topic := kmsg.AlterReplicaLogDirsRequestDirTopic{Topic: t.plan.name}
		for n := range t.current.parts {
			if a.random.Chance(perMille) {
				topic.Partitions = append(topic.Partitions, int32(n))
			}
		}
		if len(topic.Partitions) > 0 {
			req.Dirs = append(req.Dirs, kmsg.AlterReplicaLogDirsRequestDir{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{topic}})
		}
	}
	if len(req.Dirs) == 0 {
		return
	}
	a.send(req, 1, 2, func(resp kmsg.Response, _ int) {
		for _, topic := range resp.(*kmsg.AlterReplicaLogDirsResponse).Topics {
			for _, part := range topic.Partitions {
				switch code := protocol.ErrorCode(part.ErrorCode); code {
				case protocol.None, protocol.KafkaStorageError, protocol.ReplicaNotAvailable, protocol.UnknownTopicOrPartition:
				default:
					a.s.Violate("admin: moving %s-%d gave %s", topic.Topic, part.Partition, code)
				}
			}
		}
	})
}
