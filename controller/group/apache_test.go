package group

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
	"ottla/protocol/wire"
)

// TestApacheKafka holds the core against what Apache Kafka 4.4.0 answered and
// wrote: the transcripts under testdata/apache-4.4.0 are Kafka's. With
// OTTLA_APACHE_KAFKA they are made anew (testdata/README.md).
func TestApacheKafka(t *testing.T) {
	s := apacheSettings()
	address := os.Getenv("OTTLA_APACHE_KAFKA")
	datadriven.Walk(t, "testdata/apache-4.4.0", func(t *testing.T, path string) {
		story := &story{rig: newRig(t, s), ids: map[string]string{}, timeless: true}
		story.addTopic("t", topicsOf["t"], 8)
		story.addTopic("u", topicsOf["u"], 8)
		step := story.coreStep
		if address != "" {
			step = newApache(t, address, story).step
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			story.rig.t, story.d = t, d
			a := step()
			return story.tidy(story.show(a))
		})
	})
}

// apacheSettings are the properties of the broker that the transcripts are of.
func apacheSettings() Settings {
	s := Settings{
		MinSessionTimeout: time.Second, MaxSessionTimeout: 30 * time.Minute, InitialRebalanceDelay: 3 * time.Second,
		MaxSize: 3, OffsetMetadataBytes: 4096, OffsetsRetention: 7 * 24 * time.Hour, OffsetsCheckInterval: 10 * time.Minute,
		Consumer: settings().Consumer,
	}
	s.Consumer.MaxSize, s.Consumer.ClassicMaxSize = 3, 3
	s.Consumer.SessionTimeout.Min, s.Consumer.HeartbeatInterval.Min = 1000, 500
	return s
}

// topicsOf are the ids that the api package would fill in.
var topicsOf = map[string]protocol.TopicID{"t": {1}, "u": {2}}

// coreStep runs one command on the core.
func (s *story) coreStep() answers {
	var all answers
	switch s.d.Cmd {
	case "create", "grow", "drop", "config":
		s.administer()
		return all
	case "producer", "end":
		return s.transact()
	}
	if s.d.Cmd == "wait" {
		d, err := time.ParseDuration(s.d.CmdArgs[0].Key)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, a := range s.advance(d) {
			all.add(a)
		}
	} else {
		message := s.message()
		topics := topicsOf
		if s.topics != nil {
			topics = s.topics
		}
		withTopicIDs(message, topics)
		all = s.send(message, s.arg("client", "c"))
		identify(all.reply, topics)
		all.reply = overTheWire(all.reply)
		nameTopics(all.reply, topics)
		for _, a := range s.advance(500 * time.Millisecond) {
			all.add(a)
		}
	}
	for i := range all.answered {
		all.answered[i].reply = overTheWire(all.answered[i].reply)
	}
	s.sort(&all)
	return all
}

// add takes over what another step brought.
func (a *answers) add(b answers) {
	a.answered, a.records = append(a.answered, b.answered...), append(a.records, b.records...)
}

// overTheWire encodes and decodes a reply: a version may not carry all of it.
func overTheWire(reply kmsg.Response) kmsg.Response {
	if reply == nil {
		return nil
	}
	decoded := kmsg.ResponseForKey(reply.Key())
	decoded.SetVersion(reply.GetVersion())
	if err := decoded.ReadFrom(reply.AppendTo(nil)); err != nil {
		panic(err)
	}
	return decoded
}

// sort removes what is the order of a hash table in Kafka.
func (s *story) sort(a *answers) {
	s.tidy(s.show(*a)) // numbers ids that are new
	slices.SortFunc(a.answered, func(x, y answered) int { return cmp.Compare(x.number, y.number) })
	replies := []kmsg.Response{a.reply}
	for _, other := range a.answered {
		replies = append(replies, other.reply)
	}
	for _, reply := range replies {
		switch r := reply.(type) {
		case *kmsg.JoinGroupResponse:
			slices.SortFunc(r.Members, func(x, y kmsg.JoinGroupResponseMember) int { return s.compare(x.MemberID, y.MemberID) })
		case *kmsg.DescribeGroupsResponse:
			for _, g := range r.Groups {
				slices.SortFunc(g.Members, func(x, y kmsg.DescribeGroupsResponseGroupMember) int { return s.compare(x.MemberID, y.MemberID) })
			}
		case *kmsg.ListGroupsResponse:
			slices.SortFunc(r.Groups, func(x, y kmsg.ListGroupsResponseGroup) int { return cmp.Compare(x.Group, y.Group) })
		case *kmsg.OffsetFetchResponse:
			for _, g := range r.Groups {
				for _, t := range g.Topics {
					slices.SortFunc(t.Partitions, func(x, y kmsg.OffsetFetchResponseGroupTopicPartition) int {
						return cmp.Compare(x.Partition, y.Partition)
					})
				}
				slices.SortFunc(g.Topics, func(x, y kmsg.OffsetFetchResponseGroupTopic) int { return cmp.Compare(x.Topic, y.Topic) })
			}
			slices.SortFunc(r.Topics, func(x, y kmsg.OffsetFetchResponseTopic) int { return cmp.Compare(x.Topic, y.Topic) })
			for _, t := range r.Topics {
				slices.SortFunc(t.Partitions, func(x, y kmsg.OffsetFetchResponseTopicPartition) int { return cmp.Compare(x.Partition, y.Partition) })
			}
		case *kmsg.ConsumerGroupDescribeResponse:
			for _, g := range r.Groups {
				slices.SortFunc(g.Members, func(x, y kmsg.ConsumerGroupDescribeResponseGroupMember) int {
					return s.compare(x.MemberID, y.MemberID)
				})
			}
		case *kmsg.DeleteGroupsResponse:
			slices.SortFunc(r.Groups, func(x, y kmsg.DeleteGroupsResponseGroup) int { return cmp.Compare(x.Group, y.Group) })
		}
	}
	for i, r := range a.records {
		value, version, err := schema.DecodeValue(schema.GroupLog, 2, r.Value)
		if m, ok := value.(*schema.GroupMetadataValue); err == nil && ok && binary.BigEndian.Uint16(r.Key) == 2 {
			slices.SortFunc(m.Members, func(x, y schema.GroupMetadataMemberMetadata) int { return s.compare(x.MemberID, y.MemberID) })
			a.records[i].Value = schema.AppendValue(nil, m, version)
		}
	}
	s.sortRecords(a.records)
	slices.SortStableFunc(a.records, func(x, y machine.Record) int {
		if binary.BigEndian.Uint16(x.Key) != 1 || binary.BigEndian.Uint16(y.Key) != 1 {
			return 0
		}
		return bytes.Compare(x.Key, y.Key)
	})
}

func withTopicIDs(message kmsg.Request, ids map[string]protocol.TopicID) {
	switch m := message.(type) {
	case *kmsg.OffsetCommitRequest:
		for i := range m.Topics {
			m.Topics[i].TopicID = ids[m.Topics[i].Topic]
		}
	case *kmsg.TxnOffsetCommitRequest:
		for i := range m.Topics {
			m.Topics[i].TopicID = ids[m.Topics[i].Topic]
		}
	case *kmsg.OffsetFetchRequest:
		for _, g := range m.Groups {
			for i := range g.Topics {
				g.Topics[i].TopicID = ids[g.Topics[i].Topic]
			}
		}
	}
}

// identify fills in the ids of all topics of a group, as the api package does.
func identify(reply kmsg.Response, topics map[string]protocol.TopicID) {
	if r, ok := reply.(*kmsg.OffsetFetchResponse); ok {
		for _, g := range r.Groups {
			for i, t := range g.Topics {
				g.Topics[i].TopicID = topics[t.Topic]
			}
		}
	}
}

// apache speaks to a broker of Apache Kafka instead of the core.
type apache struct {
	t       *testing.T
	story   *story
	address string
	topics  map[string]protocol.TopicID
	next    int64 // offset of __consumer_offsets-0
	parked  int
	groups  map[string]bool            // of this story
	waiting map[int]chan kmsg.Response // by number
}

func newApache(t *testing.T, address string, s *story) *apache {
	a := &apache{t: t, story: s, address: address, topics: map[string]protocol.TopicID{}, groups: map[string]bool{}, waiting: map[int]chan kmsg.Response{}}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 10_000
	for _, name := range []string{"t", "u"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 8, 1
		create.Topics = append(create.Topics, topic)
	}
	<-a.request(create, "oracle")
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorKeys = 4, []string{"g"}
	for (<-a.request(find, "oracle")).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode != 0 {
		pass(200 * time.Millisecond)
	}
	warm := kmsg.NewPtrHeartbeatRequest()
	<-a.request(warm, "oracle")
	a.learnTopics("t", "u")
	a.records()
	s.topics = a.topics
	return a
}

// administer runs a command about the cluster, and waits until the broker knows.
func (a *apache) administer() {
	s := a.story
	name := s.arg("topic", "")
	var message kmsg.Request
	switch s.d.Cmd {
	case "create":
		create := kmsg.NewPtrCreateTopicsRequest()
		create.Version, create.TimeoutMillis = 7, 10_000
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(s.number("partitions", 1)), 1
		create.Topics = append(create.Topics, topic)
		message = create
	case "grow":
		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Version, grow.TimeoutMillis = 3, 10_000
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, int32(s.number("partitions", 1))
		grow.Topics = append(grow.Topics, topic)
		message = grow
	case "drop":
		drop := kmsg.NewPtrDeleteTopicsRequest()
		drop.Version, drop.TimeoutMillis, drop.TopicNames = 5, 10_000, []string{name}
		message = drop
	case "config":
		alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
		alter.Version = 1
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, s.arg("group", "g")
		for _, arg := range s.d.CmdArgs {
			if arg.Key != "group" {
				one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
				one.Name, one.Value = arg.Key, &arg.Vals[0]
				resource.Configs = append(resource.Configs, one)
			}
		}
		alter.Resources = append(alter.Resources, resource)
		message = alter
	}
	a.t.Logf("%+v", <-a.request(message, "oracle"))
	pass(time.Second)
	a.records() // offsets of a topic that is gone
	if s.d.Cmd == "create" {
		a.learnTopics(name)
	}
}

// learnTopics asks for the ids of topics.
func (a *apache) learnTopics(names ...string) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	for _, name := range names {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = kmsg.StringPtr(name)
		metadata.Topics = append(metadata.Topics, asked)
	}
	for _, topic := range (<-a.request(metadata, "oracle")).(*kmsg.MetadataResponse).Topics {
		a.topics[*topic.Topic] = topic.TopicID
	}
}

// pass lets real time go by: Apache Kafka has no other clock.
func pass(d time.Duration) { <-time.After(d) }

// request sends a message on a connection of its own.
func (a *apache) request(message kmsg.Request, client string) chan kmsg.Response {
	reply := make(chan kmsg.Response, 1)
	conn, err := net.Dial("tcp", a.address)
	if err != nil {
		a.t.Fatal(err)
	}
	header := wire.RequestHeader{Key: protocol.APIKey(message.Key()), Version: message.GetVersion(), CorrelationID: 7, ClientID: &client}
	if _, err := conn.Write(wire.AppendRequest(nil, header, message)); err != nil {
		a.t.Fatal(err)
	}
	go func() {
		defer conn.Close()
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		_, response, err := wire.ReadResponse(frame, message)
		if err != nil {
			panic(err)
		}
		reply <- response
	}()
	return reply
}

// records are what was written to __consumer_offsets since the last time.
func (a *apache) records() (records []machine.Record) {
	for {
		fetch := kmsg.NewPtrFetchRequest()
		fetch.Version, fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes = 11, 0, 0, 1<<20
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = protocol.ConsumerOffsetsTopic
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.FetchOffset, partition.PartitionMaxBytes = a.next, 1<<20
		topic.Partitions = append(topic.Partitions, partition)
		fetch.Topics = append(fetch.Topics, topic)
		response := (<-a.request(fetch, "oracle")).(*kmsg.FetchResponse)
		rest := response.Topics[0].Partitions[0].RecordBatches
		if len(rest) == 0 {
			return records
		}
		for len(rest) > 0 {
			batch, tail, err := record.Next(rest)
			if err != nil {
				a.t.Fatal(err)
			}
			if batch.IsControl() {
				a.next, rest = int64(batch.NextOffset()), tail
				continue
			}
			for r, err := range record.Records(batch, nil, 1<<20) {
				if err != nil {
					a.t.Fatal(err)
				}
				if int64(r.Offset) >= a.next {
					records = append(records, machine.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
				}
			}
			a.next, rest = int64(batch.NextOffset()), tail
		}
	}
}

// checkBytes wants our codec to write what Kafka wrote. It tells which group the
// record is of.
func (a *apache) checkBytes(r machine.Record) (group string) {
	key, err := schema.DecodeKey(schema.GroupLog, r.Key)
	if err != nil || !bytes.Equal(schema.AppendKey(nil, key), r.Key) {
		a.t.Fatalf("key %x: %v", r.Key, err)
	}
	group = recordGroup(key)
	if r.Value == nil {
		return group
	}
	value, version, err := schema.DecodeValue(schema.GroupLog, key.APIKey(), r.Value)
	if err != nil || !bytes.Equal(schema.AppendValue(nil, value, version), r.Value) {
		a.t.Fatalf("value %x: %v", r.Value, err)
	}
	return group
}

// step runs one command on the broker.
func (a *apache) step() answers {
	var all answers
	switch a.story.d.Cmd {
	case "create", "grow", "drop", "config":
		a.administer()
		return all
	case "producer", "end":
		a.transact()
		pass(250 * time.Millisecond)
		return all
	}
	if a.story.d.Cmd == "wait" {
		d, err := time.ParseDuration(a.story.d.CmdArgs[0].Key)
		if err != nil {
			a.t.Fatal(err)
		}
		pass(d)
	} else {
		message := a.story.message()
		withTopicIDs(message, a.topics)
		if m, ok := message.(*kmsg.TxnOffsetCommitRequest); ok {
			a.beforeTxnCommit(m)
		}
		reply := a.request(message, a.story.arg("client", "c"))
		patience := 400 * time.Millisecond
		if cmd := a.story.d.Cmd; cmd != "join" && cmd != "sync" {
			patience = 5 * time.Second // nothing else is ever parked
		}
		select {
		case all.reply = <-reply:
		case <-time.After(patience):
			a.parked++
			a.waiting[a.parked], all.parked = reply, a.parked
		}
	}
	pass(250 * time.Millisecond)
	for number, reply := range a.waiting {
		select {
		case r := <-reply:
			all.answered = append(all.answered, answered{number, r})
			delete(a.waiting, number)
		default:
		}
	}
	for _, group := range strings.Split(a.story.arg("group", "g"), ",") {
		a.groups[group] = true
	}
	for _, r := range a.records() {
		if a.groups[a.checkBytes(r)] {
			all.records = append(all.records, r)
		}
	}
	nameTopics(all.reply, a.topics)
	if r, ok := all.reply.(*kmsg.ListGroupsResponse); ok {
		r.Groups = slices.DeleteFunc(r.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return !a.groups[g.Group] })
	}
	a.story.sort(&all)
	return all
}

// nameTopics fills in the names that new versions leave out.
func nameTopics(reply kmsg.Response, topics map[string]protocol.TopicID) {
	name := func(have string, id protocol.TopicID) string {
		for topic, of := range topics {
			if have == "" && of == id {
				return topic
			}
		}
		return have
	}
	switch r := reply.(type) {
	case *kmsg.TxnOffsetCommitResponse:
		for i := range r.Topics {
			r.Topics[i].Topic = name(r.Topics[i].Topic, r.Topics[i].TopicID)
		}
	case *kmsg.OffsetCommitResponse:
		for i := range r.Topics {
			r.Topics[i].Topic = name(r.Topics[i].Topic, r.Topics[i].TopicID)
		}
	case *kmsg.OffsetFetchResponse:
		for _, g := range r.Groups {
			for i := range g.Topics {
				g.Topics[i].Topic = name(g.Topics[i].Topic, g.Topics[i].TopicID)
			}
		}
	}
}
