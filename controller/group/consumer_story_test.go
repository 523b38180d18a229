package group

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/consumer"
	"ottla/controller/machine"
	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// What stories say of consumer groups: ch is a ConsumerGroupHeartbeat, cd a
// ConsumerGroupDescribe; create, grow and drop are about a topic, config about
// settings of a group. Hashes of topics are #h1, #h2, … as they appear.

// change applies records to the cluster that the coordinator sees.
func (r *rig) change(records ...schema.MetadataRecord) {
	delta, at := metadata.NewDelta(r.image), r.image.Provenance()
	for _, record := range records {
		at.Offset++
		if err := delta.Replay(at.Offset, 1, record); err != nil {
			r.t.Fatal(err)
		}
	}
	r.image = delta.Build(at)
}

// addTopic makes a topic, or gives one more partitions.
func (r *rig) addTopic(name string, id protocol.TopicID, partitions int32) {
	var records []schema.MetadataRecord
	begin := int32(0)
	if known := r.image.Topic(name); known != nil {
		begin = int32(known.PartitionCount())
	} else {
		topic := schema.NewTopicRecord()
		topic.Name, topic.TopicID = name, id
		records = append(records, topic)
	}
	for n := begin; n < partitions; n++ {
		partition := schema.NewPartitionRecord()
		partition.TopicID, partition.PartitionID, partition.Replicas, partition.ISR, partition.Leader = id, n, []protocol.NodeID{1}, []protocol.NodeID{1}, 1
		records = append(records, partition)
	}
	r.change(records...)
}

func (r *rig) removeTopic(name string) {
	gone := schema.NewRemoveTopicRecord()
	gone.TopicID = r.image.Topic(name).ID
	r.change(gone)
}

func (r *rig) configure(group, key, value string) {
	record := schema.NewConfigRecord()
	record.ResourceType, record.ResourceName, record.Name, record.Value = metadata.GroupConfig, group, key, &value
	r.change(record)
}

// topicIDOf makes an id for a topic of a name.
func topicIDOf(name string) protocol.TopicID {
	if id, known := topicsOf[name]; known {
		return id
	}
	return topicID(name)
}

// administer runs a command about the cluster.
func (s *story) administer() {
	name := s.arg("topic", "")
	switch s.d.Cmd {
	case "create", "grow":
		s.addTopic(name, topicIDOf(name), int32(s.number("partitions", 1)))
	case "drop":
		s.removeTopic(name)
	case "config":
		for _, a := range s.d.CmdArgs {
			if a.Key != "group" {
				s.configure(s.arg("group", "g"), a.Key, a.Vals[0])
			}
		}
	}
}

// list gives the words of an argument; nil if it is not there, empty if it is "none".
func (s *story) list(name string) []string {
	switch text := s.arg(name, ""); {
	case !s.d.HasArg(name):
		return nil
	case text == "none":
		return []string{}
	default:
		return strings.Split(text, ",")
	}
}

// partitions reads t-0,t-1,u-3.
func (s *story) partitions(words []string) map[string][]int32 {
	all := map[string][]int32{}
	for _, word := range words {
		at := strings.LastIndex(word, "-")
		n, err := strconv.Atoi(word[at+1:])
		if err != nil {
			s.t.Fatal(err)
		}
		all[word[:at]] = append(all[word[:at]], int32(n))
	}
	return all
}

func (s *story) consumerMessage(group string) kmsg.Request {
	if s.d.Cmd == "cd" {
		m := kmsg.NewPtrConsumerGroupDescribeRequest()
		m.Version, m.Groups = int16(s.number("v", 1)), strings.Split(group, ",")
		return m
	}
	m := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	m.Version = int16(s.number("v", 1))
	m.Group, m.MemberID, m.MemberEpoch = group, s.arg("member", ""), int32(s.number("epoch", 0))
	m.InstanceID, m.RackID, m.ServerAssignor, m.SubscribedTopicRegex = s.optional("instance"), s.optional("rack"), s.optional("assignor"), s.optional("regex")
	m.SubscribedTopicNames = s.list("topics")
	owned := s.list("owned")
	if m.RebalanceTimeoutMillis = -1; m.MemberEpoch == 0 {
		m.RebalanceTimeoutMillis = 300_000
		if owned == nil {
			owned = []string{}
		}
	}
	m.RebalanceTimeoutMillis = int32(s.number("rebalance", int(m.RebalanceTimeoutMillis)))
	if owned != nil && s.arg("owned", "") != "null" {
		m.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		topics := s.partitions(owned)
		for _, topic := range slices.Sorted(maps.Keys(topics)) {
			one := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			one.TopicID, one.Partitions = s.named(topic), topics[topic]
			m.Topics = append(m.Topics, one)
		}
	}
	return m
}

// named gives the id of a topic.
func (s *story) named(topic string) protocol.TopicID {
	if id, known := s.topics[topic]; known {
		return id
	}
	return topicIDOf(topic)
}

// nameOf is the name of a topic by its id.
func (s *story) nameOf(id protocol.TopicID) string {
	for name, known := range s.topics {
		if known == id {
			return name
		}
	}
	for name, known := range topicsOf {
		if known == id {
			return name
		}
	}
	return strings.TrimRight(string(id[:]), "\x00")
}

// subscription is a ConsumerProtocolSubscription of version 3.
func (s *story) subscription() []byte {
	m := kmsg.ConsumerMemberMetadata{Version: 3, Generation: -1, Rack: s.optional("rack"), Topics: strings.Split(s.arg("topics", "t"), ",")}
	topics := s.partitions(s.list("owned"))
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: topic, Partitions: topics[topic]})
	}
	return m.AppendTo(nil)
}

func showConsumerKey(key schema.Key) string {
	switch key := key.(type) {
	case *schema.ConsumerGroupMetadataKey:
		return "epoch " + key.GroupID
	case *schema.ConsumerGroupPartitionMetadataKey:
		return "topics " + key.GroupID
	case *schema.ConsumerGroupMemberMetadataKey:
		return fmt.Sprintf("member %s/%q", key.GroupID, key.MemberID)
	case *schema.ConsumerGroupTargetAssignmentMetadataKey:
		return "target " + key.GroupID
	case *schema.ConsumerGroupTargetAssignmentMemberKey:
		return fmt.Sprintf("target %s/%q", key.GroupID, key.MemberID)
	case *schema.ConsumerGroupCurrentMemberAssignmentKey:
		return fmt.Sprintf("current %s/%q", key.GroupID, key.MemberID)
	case *schema.ConsumerGroupRegularExpressionKey:
		return fmt.Sprintf("regex %s/%q", key.GroupID, key.RegularExpression)
	}
	return key.RecordName()
}

func (s *story) showConsumerValue(value schema.Value) string {
	switch v := value.(type) {
	case *schema.ConsumerGroupMetadataValue:
		return fmt.Sprintf("%d for %s", v.Epoch, s.showHash(v.MetadataHash))
	case *schema.ConsumerGroupMemberMetadataValue:
		text := fmt.Sprintf("%s rack %s (%s %s %d) topics %v regex %q assignor %s", instance(v.InstanceID), or(v.RackID),
			v.ClientID, v.ClientHost, v.RebalanceTimeoutMs, v.SubscribedTopicNames, or(v.SubscribedTopicRegex), or(v.ServerAssignor))
		if c := v.ClassicMemberMetadata; c != nil {
			text += fmt.Sprintf(" classic %d", c.SessionTimeoutMs)
			for _, p := range c.SupportedProtocols {
				text += fmt.Sprintf(" %s %q", p.Name, p.Metadata)
			}
		}
		return text
	case *schema.ConsumerGroupTargetAssignmentMetadataValue:
		if v.AssignmentTimestamp == 0 {
			return fmt.Sprintf("%d, the next at once", v.AssignmentEpoch)
		}
		return fmt.Sprintf("%d since %s", v.AssignmentEpoch, s.showTime(v.AssignmentTimestamp))
	case *schema.ConsumerGroupTargetAssignmentMemberValue:
		var all []string
		for _, t := range v.TopicPartitions {
			all = append(all, s.showPartitions(t.TopicID, t.Partitions, nil))
		}
		return sorted(all)
	case *schema.ConsumerGroupCurrentMemberAssignmentValue:
		text := fmt.Sprintf("%d (before %d) state %d", v.MemberEpoch, v.PreviousMemberEpoch, v.State)
		for _, topics := range [][]schema.ConsumerGroupCurrentMemberAssignmentTopicPartitions{v.AssignedPartitions, v.PartitionsPendingRevocation} {
			var all []string
			for _, t := range topics {
				all = append(all, s.showPartitions(t.TopicID, t.Partitions, t.AssignmentEpochs))
			}
			text += " " + sorted(all)
		}
		return text
	case *schema.ConsumerGroupRegularExpressionValue:
		return fmt.Sprintf("%v since %s", v.Topics, s.showTime(v.Timestamp))
	}
	return value.RecordName()
}

func (s *story) showHash(hash int64) string {
	if hash == 0 {
		return "no topics"
	}
	if s.hashes == nil {
		s.hashes = map[int64]string{}
	}
	if s.hashes[hash] == "" {
		s.hashes[hash] = fmt.Sprint("#h", len(s.hashes)+1)
	}
	return s.hashes[hash]
}

func sorted(all []string) string {
	slices.Sort(all)
	return "[" + strings.Join(all, " ") + "]"
}

// showPartitions prints partitions as t-0,1@2: number 1 since epoch 2.
func (s *story) showPartitions(topic protocol.TopicID, partitions, epochs []int32) string {
	all := make([]string, len(partitions))
	for i, partition := range partitions {
		all[i] = fmt.Sprint(partition)
		if epochs != nil {
			all[i] += fmt.Sprint("@", epochs[i])
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return s.nameOf(topic) + "-" + strings.Join(all, ",")
}

func (s *story) showBeat(r *kmsg.ConsumerGroupHeartbeatResponse) string {
	if r.ErrorCode != 0 {
		return fmt.Sprintf("ch v%d: %s %s\n", r.Version, showCode(r.ErrorCode), or(r.ErrorMessage))
	}
	text := fmt.Sprintf("ch v%d: member %q epoch %d every %dms", r.Version, or(r.MemberID), r.MemberEpoch, r.HeartbeatIntervalMillis)
	if r.Assignment != nil {
		var all []string
		for _, t := range r.Assignment.Topics {
			all = append(all, s.showPartitions(t.TopicID, t.Partitions, nil))
		}
		text += " has " + sorted(all)
	}
	return text + "\n"
}

func showConsumers(r *kmsg.ConsumerGroupDescribeResponse) string {
	var b strings.Builder
	partitions := func(of kmsg.Assignment) string {
		var all []string
		for _, t := range of.TopicPartitions {
			slices.Sort(t.Partitions)
			all = append(all, t.Topic+"-"+strings.ReplaceAll(strings.Trim(fmt.Sprint(t.Partitions), "[]"), " ", ","))
		}
		return sorted(all)
	}
	for _, g := range r.Groups {
		if g.ErrorCode != 0 {
			fmt.Fprintf(&b, "%s: %s %s\n", g.Group, showCode(g.ErrorCode), or(g.ErrorMessage))
			continue
		}
		fmt.Fprintf(&b, "%s %s epoch %d target %d by %s\n", g.Group, g.State, g.Epoch, g.AssignmentEpoch, g.AssignorName)
		for _, m := range g.Members {
			topics := slices.Sorted(slices.Values(m.SubscribedTopics))
			fmt.Fprintf(&b, "  %q %s rack %s (%s %s) epoch %d type %d topics %v regex %q has %s target %s\n", m.MemberID, instance(m.InstanceID), or(m.RackID),
				m.ClientID, m.ClientHost, m.MemberEpoch, m.MemberType, topics, or(m.SubscribedTopicRegex), partitions(m.Assignment), partitions(m.TargetAssignment))
		}
	}
	return b.String()
}

// sortRecords sorts records of one kind that follow each other: in Kafka their
// order is that of a hash table.
func (s *story) sortRecords(records []machine.Record) {
	kind := func(r machine.Record) uint16 { return binary.BigEndian.Uint16(r.Key) }
	for begin := 0; begin < len(records); {
		end := begin + 1
		for end < len(records) && kind(records[end]) == kind(records[begin]) {
			end++
		}
		if kind(records[begin]) > 2 {
			slices.SortStableFunc(records[begin:end], func(a, b machine.Record) int { return s.compare(string(a.Key), string(b.Key)) })
		}
		begin = end
	}
}

// compare compares texts by the numbers of the ids in them, which are random.
func (s *story) compare(a, b string) int { return strings.Compare(s.canonical(a), s.canonical(b)) }

func (s *story) canonical(text string) string {
	for id, number := range s.ids {
		text = strings.ReplaceAll(text, id, number)
	}
	return text
}

// recordGroup names the group that a record is of, whatever its kind.
func recordGroup(key schema.Key) string {
	switch key := key.(type) {
	case *schema.OffsetCommitKey:
		return key.Group
	case *schema.GroupMetadataKey:
		return key.Group
	}
	id, _ := consumer.KeyGroup(key)
	return id
}

// assignment is a ConsumerProtocolAssignment if it is written [t-0,t-1] or, with
// user data, [t-0]data; else it is the text itself.
func (s *story) assignment(text string) []byte {
	inside, data, embedded := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !embedded {
		return []byte(text)
	}
	var m kmsg.ConsumerMemberAssignment
	if topics := s.partitions(strings.FieldsFunc(inside, func(r rune) bool { return r == ',' })); len(topics) > 0 {
		for _, topic := range slices.Sorted(maps.Keys(topics)) {
			m.Topics = append(m.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: topic, Partitions: topics[topic]})
		}
	}
	if data != "" {
		m.UserData = []byte(data)
	}
	return m.AppendTo(nil)
}
