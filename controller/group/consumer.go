package group

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// alarmKey names what time will demand of a consumer group.
type alarmKey struct {
	group string
	consumer.Timer
}

// alarm is a deadline of a consumer group. It is a decision of its own: it reads
// what only Apply changes.
type alarm struct {
	deadline
	set consumer.Alarm
	// mayDescribe is whom regular expressions are looked up for (Regex).
	mayDescribe func(topic string) bool
}

// retryAlarm is when a deadline is tried again whose records were too many.
const retryAlarm = 500 * time.Millisecond

// look takes the cluster as it is now.
func (c *Coordinator) look() {
	if c.options.Image != nil {
		c.topics.Follow(c.options.Image())
	}
}

// turn begins a decision about a consumer group.
func (c *Coordinator) turn(d *decision, group string) *consumer.Turn {
	return &consumer.Turn{
		Now: d.now, Topics: c.topics, Settings: &c.options.Settings.Consumer,
		Resolving: c.alarms[alarmKey{group, consumer.Timer{Kind: consumer.Regex}}] != nil,
	}
}

// settle takes over what a turn has gathered about a group. If that is more than a
// batch holds, nothing has happened.
func (c *Coordinator) settle(d *decision, g *consumer.Group, t *consumer.Turn, mayDescribe func(string) bool) error {
	records := append(d.records, t.Records...)
	var classic *classicGroup
	if t.Classic != nil {
		classic = c.downgraded(d, g.ID(), t.Classic)
		writes := decision{now: d.now, records: records}
		classic.write(&writes)
		records = writes.records
	}
	if c.tooLarge(records) {
		return protocol.UnknownServerError.Err()
	}
	d.records = records
	g.Settle(t)
	for _, a := range t.Alarms {
		c.setAlarm(d, g.ID(), a, mayDescribe)
	}
	if classic != nil {
		c.groups[g.ID()] = &group{id: g.ID(), classic: classic}
		c.wakeDowngraded(d, classic, t.Classic.Rebalance)
	}
	return nil
}

// setAlarm sets, moves or cancels a deadline of a consumer group.
func (c *Coordinator) setAlarm(d *decision, group string, a consumer.Alarm, mayDescribe func(string) bool) {
	key := alarmKey{group, a.Timer}
	known := c.alarms[key]
	switch {
	case a.Cancel:
		if known != nil {
			c.deadlines.cancel(&known.deadline)
			delete(c.alarms, key)
		}
		return
	case known != nil && a.Keep:
		return
	case known == nil:
		known = &alarm{}
		known.alone = true
		known.expire = func(d *decision) { c.ring(d, key, known) }
		c.alarms[key] = known
	}
	if known.set = a; a.Kind == consumer.Regex {
		known.mayDescribe = mayDescribe // it holds on to a request, so nothing else keeps it
	}
	c.deadlines.set(&known.deadline, d.now.Add(milliseconds(a.AfterMs)))
}

// ring does what a deadline of a consumer group demands.
func (c *Coordinator) ring(d *decision, key alarmKey, a *alarm) {
	delete(c.alarms, key)
	known := c.lookup(key.group)
	if known == nil || known.consumer == nil {
		return
	}
	g, t := known.consumer, c.turn(d, key.group)
	if key.Kind == consumer.Regex {
		g.Resolve(t, a.mayDescribe)
	} else {
		g.Expire(t, a.set)
	}
	if err := c.settle(d, g, t, a.mayDescribe); err != nil {
		again := a.set
		again.AfterMs = int32(retryAlarm.Milliseconds())
		c.setAlarm(d, key.group, again, a.mayDescribe)
	}
}

// wakeConsumer sets the alarms of a group that was loaded.
func (c *Coordinator) wakeConsumer(d *decision, g *consumer.Group) {
	t := c.turn(d, g.ID())
	g.Wake(t)
	for _, a := range t.Alarms {
		c.setAlarm(d, g.ID(), a, nil)
	}
}

// consumerHeartbeat serves a ConsumerGroupHeartbeat.
func (c *Coordinator) consumerHeartbeat(d *decision, sender Request, m *kmsg.ConsumerGroupHeartbeatRequest) kmsg.Response {
	response, err := c.beatConsumer(d, sender, m)
	if err == nil {
		return response
	}
	refused := m.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	refused.ErrorCode = code(protocol.CodeOf(err))
	var known *protocol.Error
	if errors.As(err, &known) && known.Message != "" && known.Code != protocol.UnknownServerError {
		refused.ErrorMessage = &known.Message
	}
	return refused
}

func (c *Coordinator) beatConsumer(d *decision, sender Request, m *kmsg.ConsumerGroupHeartbeatRequest) (*kmsg.ConsumerGroupHeartbeatResponse, error) {
	if err := consumer.Validate(m, &c.options.Settings.Consumer); err != nil {
		return nil, err
	}
	t := c.turn(d, m.Group)
	if consumer.Leaves(m) {
		g, err := c.consumerGroup(m.Group)
		if err != nil {
			return nil, err
		}
		response, err := g.Leave(t, m)
		if err == nil {
			err = c.settle(d, g, t, nil)
		}
		return response, err
	}
	id := m.MemberID
	if id == "" {
		id = c.newUUID()
	}
	g, classic, err := c.consumerGroupFor(t, m)
	if err != nil {
		return nil, err
	}
	response, err := g.Heartbeat(t, m, id, senderOf(sender))
	if err != nil {
		return nil, err
	}
	if err := c.settle(d, g, t, sender.MayDescribe); err != nil {
		return nil, err
	}
	if classic != nil {
		c.answerAll(d, classic, protocol.RebalanceInProgress)
	}
	return response, nil
}

func senderOf(r Request) consumer.Sender {
	return consumer.Sender{ClientID: r.ClientID, ClientHost: r.ClientHost}
}

// newUUID makes an id as Kafka prints them.
func (c *Coordinator) newUUID() string { return protocol.NewUUID(c.options.Random).String() }

// consumerGroup finds a consumer group.
func (c *Coordinator) consumerGroup(id string) (*consumer.Group, error) {
	switch g := c.lookup(id); {
	case g == nil:
		return nil, protocol.Errorf(protocol.GroupIDNotFound, "Group %s not found.", id)
	case g.consumer == nil:
		return nil, protocol.Errorf(protocol.GroupIDNotFound, "Group %s is not a consumer group.", id)
	default:
		return g.consumer, nil
	}
}

// consumerGroupFor finds the group of a heartbeat. One who joins makes it: out of
// nothing, or out of a classic group, which is then told, too.
func (c *Coordinator) consumerGroupFor(t *consumer.Turn, m *kmsg.ConsumerGroupHeartbeatRequest) (*consumer.Group, *classicGroup, error) {
	known, joins := c.lookup(m.Group), m.MemberEpoch == 0
	switch {
	case known == nil && !joins:
		return nil, nil, protocol.Errorf(protocol.GroupIDNotFound, "Consumer group %s not found.", m.Group)
	case known == nil:
		return consumer.New(m.Group), nil, nil
	case known.consumer != nil || !joins:
		g, err := c.consumerGroup(m.Group)
		return g, nil, err
	}
	gone := decision{now: t.Now}
	gone.write(groupKey(m.Group), nil, 0)
	t.Records = append(t.Records, gone.records...)
	if known.classic.state == stateEmpty {
		return consumer.New(m.Group), known.classic, nil
	}
	g, err := consumer.Upgrade(t, m.Group, known.classic.upgrading())
	return g, known.classic, err
}

// upgrading tells of a classic group what a consumer group takes over.
func (g *classicGroup) upgrading() *consumer.Upgrading {
	u := &consumer.Upgrading{ProtocolType: g.protocolType, Protocol: g.protocol, Generation: g.generation}
	for _, m := range g.order {
		one := consumer.ClassicMember{
			ID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost, RebalanceTimeoutMs: m.rebalanceTimeoutMs,
			Classic: consumer.Classic{SessionTimeoutMs: m.sessionTimeoutMs},
		}
		for _, p := range m.protocols {
			one.Protocols = append(one.Protocols, consumer.ClassicProtocol{Name: p.name, Metadata: p.metadata})
		}
		u.Members, u.Assignments = append(u.Members, one), append(u.Assignments, m.assignment)
	}
	return u
}

// downgraded makes the classic group that a consumer group becomes, and changes
// nothing.
func (c *Coordinator) downgraded(d *decision, id string, of *consumer.Downgraded) *classicGroup {
	g := newClassicGroup(id, d.nowMs())
	g.state, g.protocolType, g.generation = stateStable, consumerProtocol, of.Generation
	for _, m := range of.Members {
		one := &member{
			id: m.ID, instanceID: m.InstanceID, clientID: m.ClientID, clientHost: m.ClientHost,
			rebalanceTimeoutMs: m.RebalanceTimeoutMs, sessionTimeoutMs: m.SessionTimeoutMs,
		}
		for _, p := range m.Protocols {
			one.protocols = append(one.protocols, memberProtocol{p.Name, p.Metadata})
		}
		g.add(one)
	}
	selected := g.selectProtocol()
	g.protocol = &selected
	for i, m := range g.order {
		m.assignment = c.topics.AppendAssignment(nil, of.Targets[i], m.metadata(selected))
	}
	g.readSubscriptions()
	return g
}

// wakeDowngraded begins what is volatile of a group that has become a classic one.
func (c *Coordinator) wakeDowngraded(d *decision, g *classicGroup, rebalance bool) {
	for _, m := range g.order {
		c.arm(g, m)
		c.prolong(d, m)
	}
	if rebalance {
		c.prepare(d, g)
	}
}

// answerAll answers everybody who waits in a group that is about to be another
// one.
func (c *Coordinator) answerAll(d *decision, g *classicGroup, reason protocol.ErrorCode) {
	for _, m := range g.order {
		c.answerJoin(d, g, m, failedJoin(m.id, reason))
	}
	for _, m := range g.order {
		d.answer(&m.sync, failedSync(reason))
	}
}

// describeConsumers serves a ConsumerGroupDescribe.
func (c *Coordinator) describeConsumers(d *decision, m *kmsg.ConsumerGroupDescribeRequest) kmsg.Response {
	response := m.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
	for _, id := range m.Groups {
		g, err := c.consumerGroup(id)
		if err == nil {
			response.Groups = append(response.Groups, g.Describe(c.turn(d, id)))
			continue
		}
		described := kmsg.NewConsumerGroupDescribeResponseGroup()
		described.Group, described.ErrorCode = id, code(protocol.GroupIDNotFound)
		var known *protocol.Error
		if errors.As(err, &known) {
			described.ErrorMessage = &known.Message
		}
		response.Groups = append(response.Groups, described)
	}
	return response
}

// replayConsumer takes over a record of a consumer group. Deletions of a group
// that is none are passed over: it has become another one.
func (c *Coordinator) replayConsumer(id string, key schema.Key, value schema.Value) error {
	known := c.lookup(id)
	switch {
	case value == nil && (known == nil || known.consumer == nil):
		return nil
	case c.active && known != nil && known.classic != nil:
		return nil // these records make it the classic group that it is already
	case known == nil || known.classic != nil && known.classic.written == nil:
		known = &group{id: id, consumer: consumer.New(id)}
		c.groups[id] = known
	case known.consumer == nil:
		return errors.New("a record of consumer group " + id + ", which is a classic group")
	}
	if known.consumer.Replay(key, value) {
		c.dissolve(id)
	}
	return nil
}
