package group

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// TestStories runs the transcripts under testdata/stories. Random parts of
// member ids are written #1, #2, … in the order in which they appear; parked
// requests are (1), (2), …; consumer metadata is written sub(topic,topic).
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{rig: newRig(t, settings()), ids: map[string]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.rig.t, s.d = t, d
			return s.tidy(s.run())
		})
	})
}

type story struct {
	*rig
	d        *datadriven.TestData
	ids      map[string]string // uuid → #n
	timeless bool              // times are not shown
	hashes   map[int64]string
	topics   map[string]protocol.TopicID // of the cluster that it runs on, if not topicIDOf

	producers map[string]*txnProducer
}

// uuids are ids that a coordinator has made, as Java prints them; words are what
// ids as Kafka prints them are looked for among.
var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	words = regexp.MustCompile(`[A-Za-z0-9_#-]+`)
)

func (s *story) tidy(text string) string {
	number := func(u string) string {
		if s.ids[u] == "" {
			s.ids[u] = "#" + strconv.Itoa(len(s.ids)+1)
		}
		return s.ids[u]
	}
	return words.ReplaceAllStringFunc(uuids.ReplaceAllStringFunc(text, number), func(word string) string {
		code := word == strings.ToUpper(word) && strings.Contains(word, "_")
		if len(word) != 22 || strings.Contains(word, "#") || code {
			return word
		}
		return number(word)
	})
}

func (s *story) arg(name, otherwise string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == name {
			value := strings.Join(a.Vals, ",")
			for u, n := range s.ids {
				switch {
				case strings.HasSuffix(value, "-"+n):
					value = strings.TrimSuffix(value, n) + u
				case value == n:
					value = u
				}
			}
			return value
		}
	}
	return otherwise
}

func (s *story) optional(name string) *string {
	if !s.d.HasArg(name) {
		return nil
	}
	value := s.arg(name, "")
	return &value
}

func (s *story) number(name string, otherwise int) int {
	n, err := strconv.Atoi(s.arg(name, strconv.Itoa(otherwise)))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) run() string {
	switch s.d.Cmd {
	case "settings":
		o := settings()
		o.MaxSize = s.number("max-size", o.MaxSize)
		o.InitialRebalanceDelay = time.Duration(s.number("initial-delay", 3000)) * time.Millisecond
		o.OffsetMetadataBytes = s.number("metadata", o.OffsetMetadataBytes)
		fresh := newRig(s.t, o)
		if limit := s.number("batch", 0); limit > 0 {
			fresh.c.options.MaxBatchBytes = func() int { return limit }
		}
		*s.rig = *fresh
		return ""
	case "wait":
		var b strings.Builder
		d, err := time.ParseDuration(s.d.CmdArgs[0].Key)
		if err != nil {
			s.t.Fatal(err)
		}
		beating := func() {}
		step := d
		if s.d.HasArg("beat") { // members send heartbeats meanwhile
			step = 10 * time.Minute
			beating = func() {
				for _, id := range strings.Split(s.arg("beat", ""), ",") {
					m := kmsg.NewPtrHeartbeatRequest()
					m.Group, m.MemberID, m.Generation = s.arg("group", "g"), s.expand(id), int32(s.number("gen", 1))
					s.send(m, "")
				}
			}
		}
		for passed := time.Duration(0); ; passed += step {
			beating()
			for _, a := range s.advance(min(step, d-passed)) {
				b.WriteString(s.show(a))
			}
			if passed+step >= d {
				break
			}
		}
		beating()
		return b.String()
	case "fail":
		text := ""
		for _, n := range s.fail() {
			text += fmt.Sprintf("(%d) is answered by the shell\n", n)
		}
		return text
	case "resize":
		s.c.options.Settings.MaxSize = s.number("max-size", 0)
		return ""
	case "create", "grow", "drop", "config":
		s.administer()
		return ""
	case "next":
		if next := s.c.NextDeadline(); !next.IsZero() {
			return next.Sub(s.now).String() + "\n"
		}
		return "never\n"
	case "topics-deleted":
		var event TopicsDeleted
		for _, a := range s.d.CmdArgs {
			topic := DeletedTopic{Name: a.Key}
			if len(a.Vals) > 0 {
				topic.ID = topicID(a.Vals[0])
			}
			event.Topics = append(event.Topics, topic)
		}
		result, err := s.c.Handle(s.turn(), event)
		return s.show(s.take(result, err, 0))
	case "record":
		return s.replay()
	}
	if s.isTransactional() {
		return s.show(s.transact())
	}
	return s.show(s.send(s.message(), s.arg("client", "c")))
}

// replay feeds a record of another's making: key and value in hex.
func (s *story) replay() string {
	var r machine.Record
	for i, line := range strings.Fields(s.d.Input) {
		var b []byte
		if _, err := fmt.Sscanf(line, "%x", &b); err != nil {
			s.t.Fatal(err)
		}
		if i == 0 {
			r.Key = b
		} else {
			r.Value = b
		}
	}
	base, timestampMs := protocol.Offset(len(s.log)), s.now.UnixMilli()
	take := func(c *Coordinator) error { return c.Apply(base, 1, timestampMs, []machine.Record{r}) }
	for _, c := range []*Coordinator{s.c, s.replica} {
		if err := take(c); err != nil {
			return err.Error() + "\n"
		}
	}
	s.past = append(s.past, take)
	s.log = append(s.log, r)
	return durable(s.c)
}

func topicID(name string) (id protocol.TopicID) {
	copy(id[:], name)
	return id
}

// patience is a timeout that nothing depends on: where Apache Kafka has run in
// real time, a long one.
func (s *story) patience(ms int) int {
	if s.timeless {
		return 300_000
	}
	return ms
}

// message builds the request of a command.
func (s *story) message() kmsg.Request {
	group := s.arg("group", "g")
	switch s.d.Cmd {
	case "join":
		m := kmsg.NewPtrJoinGroupRequest()
		m.Version = int16(s.number("v", 9))
		m.Group, m.MemberID, m.InstanceID = group, s.arg("member", ""), s.optional("instance")
		m.SessionTimeoutMillis = int32(s.number("session", s.patience(10_000)))
		m.RebalanceTimeoutMillis = int32(s.number("rebalance", s.patience(60_000)))
		m.ProtocolType = s.arg("type", "consumer")
		for i, name := range strings.Split(s.arg("protocols", "range"), ",") {
			if name != "" {
				metadata := sub(s.arg("topics", "t"))
				if s.d.HasArg("owned") || s.d.HasArg("rack") {
					metadata = s.subscription()
				}
				if s.d.HasArg("raw") {
					metadata = []byte(s.arg("raw", ""))
				}
				if i > 0 {
					metadata = append(metadata, byte(i))
				}
				m.Protocols = append(m.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: metadata})
			}
		}
		return m
	case "sync":
		m := kmsg.NewPtrSyncGroupRequest()
		m.Version = int16(s.number("v", 5))
		m.Group, m.MemberID, m.InstanceID = group, s.arg("member", ""), s.optional("instance")
		m.Generation = int32(s.number("gen", 1))
		protocolType, name := s.arg("type", "consumer"), s.arg("protocol", "range")
		if !s.d.HasArg("anonymous") {
			m.ProtocolType, m.Protocol = &protocolType, &name
		}
		for _, line := range strings.Fields(s.d.Input) {
			id, assignment, _ := strings.Cut(line, "=")
			for u, n := range s.ids {
				if strings.HasSuffix(id, "-"+n) {
					id = strings.TrimSuffix(id, n) + u
				}
			}
			m.GroupAssignment = append(m.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: s.assignment(assignment)})
		}
		return m
	case "heartbeat":
		m := kmsg.NewPtrHeartbeatRequest()
		m.Version = 4
		m.Group, m.MemberID, m.InstanceID, m.Generation = group, s.arg("member", ""), s.optional("instance"), int32(s.number("gen", 1))
		return m
	case "leave":
		m := kmsg.NewPtrLeaveGroupRequest()
		m.Version, m.Group, m.MemberID = int16(s.number("v", 5)), group, s.arg("member", "")
		if s.d.HasArg("members") {
			for _, id := range strings.Split(s.arg("members", ""), ",") {
				m.Members = append(m.Members, kmsg.LeaveGroupRequestMember{MemberID: s.expand(id)})
			}
		} else {
			m.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID, InstanceID: s.optional("instance")}}
		}
		return m
	}
	return s.offsetMessage(group)
}

func (s *story) expand(id string) string {
	for u, n := range s.ids {
		if strings.HasSuffix(id, "-"+n) {
			return strings.TrimSuffix(id, n) + u
		}
	}
	return id
}

func (s *story) offsetMessage(group string) kmsg.Request {
	switch s.d.Cmd {
	case "ch", "cd":
		return s.consumerMessage(group)
	case "txncommit":
		return s.txnCommit(group)
	case "commit":
		m := kmsg.NewPtrOffsetCommitRequest()
		m.Version = int16(s.number("v", 10))
		m.Group, m.MemberID, m.InstanceID, m.Generation = group, s.arg("member", ""), s.optional("instance"), int32(s.number("gen", -1))
		m.RetentionTimeMillis = int64(s.number("retention", -1))
		topic := kmsg.OffsetCommitRequestTopic{Topic: s.arg("topic", "t"), TopicID: topicID(s.arg("id", ""))}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = int32(s.number("p", 0)), int64(s.number("offset", 0)), int32(s.number("epoch", -1)), s.optional("metadata")
		topic.Partitions = append(topic.Partitions, p)
		m.Topics = append(m.Topics, topic)
		return m
	case "fetch":
		m := kmsg.NewPtrOffsetFetchRequest()
		m.Version, m.RequireStable = int16(s.number("v", 10)), s.d.HasArg("stable")
		if m.Version < fetchHasGroups {
			m.Group = group
			if s.d.HasArg("topic") {
				m.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: s.arg("topic", ""), Partitions: []int32{int32(s.number("p", 0))}}}
			}
			return m
		}
		for _, id := range strings.Split(group, ",") {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.MemberID, g.MemberEpoch = id, s.optional("member"), int32(s.number("epoch", -1))
			if s.d.HasArg("topic") {
				g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: s.arg("topic", ""), TopicID: topicID(s.arg("id", "")), Partitions: []int32{int32(s.number("p", 0))}}}
			}
			m.Groups = append(m.Groups, g)
		}
		return m
	case "delete-offset":
		m := kmsg.NewPtrOffsetDeleteRequest()
		m.Group = group
		m.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: s.arg("topic", "t"), Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(s.number("p", 0))}}}}
		return m
	case "describe":
		m := kmsg.NewPtrDescribeGroupsRequest()
		m.Version, m.Groups = int16(s.number("v", 6)), []string{group}
		return m
	case "list":
		m := kmsg.NewPtrListGroupsRequest()
		m.Version = 5
		if s.d.HasArg("states") {
			m.StatesFilter = strings.Split(s.arg("states", ""), ",")
		}
		if s.d.HasArg("types") {
			m.TypesFilter = strings.Split(s.arg("types", ""), ",")
		}
		return m
	case "delete":
		m := kmsg.NewPtrDeleteGroupsRequest()
		m.Version, m.Groups = 3, strings.Split(group, ",")
		return m
	}
	s.t.Fatalf("no command %q", s.d.Cmd)
	return nil
}

// sub is a ConsumerProtocolSubscription of version 0.
func sub(topics string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	names := strings.Split(topics, ",")
	b = binary.BigEndian.AppendUint32(b, uint32(len(names)))
	for _, name := range names {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(name))), name...)
	}
	return binary.BigEndian.AppendUint32(b, 0xffffffff)
}

// show prints a step as a transcript has it.
func (s *story) show(a answers) string {
	var b strings.Builder
	for _, r := range a.records {
		key, err := schema.DecodeKey(schema.GroupLog, r.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "record %s = ", showKey(key))
		if r.Value == nil {
			b.WriteString("deleted\n")
			continue
		}
		value, version, err := schema.DecodeValue(schema.GroupLog, key.APIKey(), r.Value)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", s.showValue(value, version))
	}
	if a.parked != 0 {
		fmt.Fprintf(&b, "(%d) parked\n", a.parked)
	}
	if a.reply != nil {
		b.WriteString(s.showReply(a.reply))
	}
	for _, other := range a.answered {
		fmt.Fprintf(&b, "(%d) %s", other.number, s.showReply(other.reply))
	}
	return b.String()
}
