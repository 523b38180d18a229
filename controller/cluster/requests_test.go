package cluster

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// TestRequests holds what the controller answers against what Apache Kafka
// answers: the outputs under testdata/requests were written by Apache Kafka
// 4.4.0 (testdata/README.md tells how) and are asserted of our controller.
func TestRequests(t *testing.T) {
	datadriven.Walk(t, "testdata/requests", func(t *testing.T, path string) {
		s := &scripted{t: t, ids: map[string]protocol.TopicID{}, epochs: map[int32]int64{}}
		if address := os.Getenv("OTTLA_APACHE_KAFKA"); address != "" {
			s.ask = wireAsker(t, address)
		} else {
			f := newFixtureWith(t, map[string]int16{
				metadata.MetadataVersionFeature: 33, metadata.ELRVersionFeature: 1, "group.version": 1, "share.version": 2, "streams.version": 1, "transaction.version": 2,
			})
			f.c.options.ClusterID = "Q1bSgqqPT4yq1sGFWQ9w7w"
			f.c.options.KRaftVersion = func() int16 { return 1 }
			for _, feature := range metadata.AllFeatures() {
				f.c.options.Features[feature.Name] = Range{0, feature.Max()} // as one that serves all
			}
			s.join(f)
			s.ask = func(req kmsg.Request) kmsg.Response { return handle[kmsg.Response](f, req) }
		}
		datadriven.RunTest(t, path, s.run)
	})
}

// wireAsker asks a real controller over its listener.
func wireAsker(t *testing.T, address string) func(kmsg.Request) kmsg.Response {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("oracle"))
	return func(req kmsg.Request) kmsg.Response {
		if _, err := conn.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
			t.Fatal(err)
		}
		size := make([]byte, 4)
		if _, err := io.ReadFull(conn, size); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, binary.BigEndian.Uint32(size))
		if _, err := io.ReadFull(conn, frame); err != nil {
			t.Fatal(err)
		}
		body := frame[4:]
		if req.IsFlexible() {
			body = body[1:] // no tagged fields in the header
		}
		response := req.ResponseKind()
		if err := response.ReadFrom(body); err != nil {
			t.Fatal(err)
		}
		return response
	}
}

// scripted runs the commands of a script by one controller.
type scripted struct {
	t   *testing.T
	ask func(kmsg.Request) kmsg.Response
	ids map[string]protocol.TopicID

	epochs map[int32]int64
}

func (s *scripted) run(t *testing.T, d *datadriven.TestData) string {
	var lines []string
	switch d.Cmd {
	case "create":
		lines = s.create(d)
	case "widen":
		lines = s.widen(d)
	case "delete":
		lines = s.remove(d)
	case "broker":
		lines = s.broker(d)
	case "alter":
		lines = s.alter(d)
	case "replace":
		lines = s.replace(d)
	case "elect":
		lines = s.elect(d)
	case "reassign":
		lines = s.reassign(d)
	case "reassignments":
		lines = s.reassignments(d)
	case "features":
		lines = s.features(d)
	case "unregister":
		lines = s.unregister(d)
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	slices.Sort(lines) // Apache Kafka's order is that of a hash map
	return strings.Join(lines, "\n") + "\n"
}

// words splits a line of input: a name, then key=value.
func words(line string) (name string, settings [][2]string) {
	fields := strings.Fields(line)
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		settings = append(settings, [2]string{key, value})
	}
	if name = fields[0]; name == "''" {
		name = ""
	}
	return strings.ReplaceAll(name, "LONG", strings.Repeat("x", 250)), settings
}

func number(t *testing.T, text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// replicas reads "0:1,2;1:3": partitions with their brokers.
func (s *scripted) replicas(text string) (partitions []int32, brokers [][]int32) {
	for _, one := range strings.Split(text, ";") {
		partition, list, _ := strings.Cut(one, ":")
		partitions = append(partitions, number(s.t, partition))
		var ids []int32
		for _, id := range strings.Split(list, ",") {
			if id != "" {
				ids = append(ids, number(s.t, id))
			}
		}
		brokers = append(brokers, ids)
	}
	return partitions, brokers
}

func (s *scripted) create(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 7, 10000, d.HasArg("validate-only")
	for _, line := range strings.Split(d.Input, "\n") {
		topic := kmsg.NewCreateTopicsRequestTopic()
		var settings [][2]string
		topic.Topic, settings = words(line)
		topic.NumPartitions, topic.ReplicationFactor = -1, -1
		for _, setting := range settings {
			switch setting[0] {
			case "partitions":
				topic.NumPartitions = number(s.t, setting[1])
			case "factor":
				topic.ReplicationFactor = int16(number(s.t, setting[1]))
			case "assign":
				partitions, brokers := s.replicas(setting[1])
				for i := range partitions {
					topic.ReplicaAssignment = append(topic.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partitions[i], Replicas: brokers[i]})
				}
			default:
				config := kmsg.CreateTopicsRequestTopicConfig{Name: setting[0], Value: &setting[1]}
				if setting[1] == "null" {
					config.Value = nil
				}
				topic.Configs = append(topic.Configs, config)
			}
		}
		req.Topics = append(req.Topics, topic)
	}
	for _, topic := range s.ask(req).(*kmsg.CreateTopicsResponse).Topics {
		answer := fmt.Sprintf("%q: %v", topic.Topic, protocol.ErrorCode(topic.ErrorCode))
		if topic.ErrorMessage != nil {
			answer += fmt.Sprintf(" %q", *topic.ErrorMessage)
		}
		answer += fmt.Sprintf(" partitions=%d factor=%d id=%v configs=%d", topic.NumPartitions, topic.ReplicationFactor, topic.TopicID != [16]byte{}, len(topic.Configs))
		if topic.TopicID != [16]byte{} {
			s.ids[topic.Topic] = topic.TopicID
		}
		lines = append(lines, answer)
		for _, config := range topic.Configs {
			if config.Source == int8(kmsg.ConfigSourceDynamicTopicConfig) {
				lines = append(lines, fmt.Sprintf("%q: set %s=%s", topic.Topic, config.Name, *config.Value))
			}
		}
	}
	return lines
}

func (s *scripted) widen(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 3, 10000, d.HasArg("validate-only")
	for _, line := range strings.Split(d.Input, "\n") {
		topic := kmsg.NewCreatePartitionsRequestTopic()
		var settings [][2]string
		topic.Topic, settings = words(line)
		for _, setting := range settings {
			switch setting[0] {
			case "count":
				topic.Count = number(s.t, setting[1])
			case "assign":
				_, brokers := s.replicas(setting[1])
				for i := range brokers {
					topic.Assignment = append(topic.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: brokers[i]})
				}
			}
		}
		req.Topics = append(req.Topics, topic)
	}
	for _, topic := range s.ask(req).(*kmsg.CreatePartitionsResponse).Topics {
		lines = append(lines, fmt.Sprintf("%q: %v %s", topic.Topic, protocol.ErrorCode(topic.ErrorCode), quoted(topic.ErrorMessage)))
	}
	return lines
}

func quoted(text *string) string {
	if text == nil {
		return "null"
	}
	return strconv.Quote(*text)
}

// remove takes lines of "name", "id=NAME" (the id of a topic made before),
// "id=unknown", "neither" and "both=NAME".
func (s *scripted) remove(d *datadriven.TestData) (lines []string) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis = 6, 10000
	if d.HasArg("v5") {
		req.Version = 5
	}
	for _, line := range strings.Split(d.Input, "\n") {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		switch key, value, _ := strings.Cut(line, "="); {
		case line == "neither":
		case line == "id=unknown":
			topic.TopicID = [16]byte{1, 2, 3}
		case key == "id":
			topic.TopicID = s.ids[value]
		case key == "both":
			topic.Topic, topic.TopicID = &value, s.ids[value]
		case req.Version < 6:
			req.TopicNames = append(req.TopicNames, line)
			continue
		default:
			topic.Topic = &line
		}
		req.Topics = append(req.Topics, topic)
	}
	for _, topic := range s.ask(req).(*kmsg.DeleteTopicsResponse).Topics {
		lines = append(lines, fmt.Sprintf("%s id=%v: %v %s", quoted(topic.Topic), req.Version >= 6 && topic.TopicID != [16]byte{}, protocol.ErrorCode(topic.ErrorCode), quoted(topic.ErrorMessage)))
	}
	return lines
}

// broker takes lines of what a broker asks: "register ID key=value…", "beat ID",
// "producer-ids ID" and "assign ID", with epoch=N or that of the registration.
func (s *scripted) broker(d *datadriven.TestData) (lines []string) {
	for _, line := range strings.Split(d.Input, "\n") {
		what, settings := words(line)
		id := number(s.t, settings[0][0])
		epoch := s.epochs[id]
		for _, setting := range settings {
			if setting[0] == "epoch" {
				epoch = int64(number(s.t, setting[1]))
			}
		}
		var code int16
		extra := ""
		switch what {
		case "register":
			answer := s.ask(s.registration(id, settings)).(*kmsg.BrokerRegistrationResponse)
			if code = answer.ErrorCode; code == 0 {
				s.epochs[id] = answer.BrokerEpoch
			}
			extra = fmt.Sprintf(" epoch=%v", answer.BrokerEpoch >= 0)
		case "beat":
			req := kmsg.NewPtrBrokerHeartbeatRequest()
			req.Version, req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset, req.WantFence = 2, id, epoch, epoch-1, true
			answer := s.ask(req).(*kmsg.BrokerHeartbeatResponse)
			code = answer.ErrorCode
			extra = fmt.Sprintf(" caughtUp=%v fenced=%v stop=%v", answer.IsCaughtUp, answer.IsFenced, answer.ShouldShutdown)
		case "producer-ids":
			req := kmsg.NewPtrAllocateProducerIDsRequest()
			req.BrokerID, req.BrokerEpoch = id, epoch
			answer := s.ask(req).(*kmsg.AllocateProducerIDsResponse)
			code = answer.ErrorCode
			extra = fmt.Sprintf(" start=%d count=%d", answer.ProducerIDStart, answer.ProducerIDLen)
		case "assign":
			req := kmsg.NewPtrAssignReplicasToDirsRequest()
			req.BrokerID, req.BrokerEpoch = id, epoch
			for name, topic := range map[string][16]byte{"a": s.ids["a"], "unknown": {9}} {
				req.Directories = append(req.Directories, kmsg.AssignReplicasToDirsRequestDirectory{ID: [16]byte{name[0]}, Topics: []kmsg.AssignReplicasToDirsRequestDirectoryTopic{{
					TopicID: topic, Partitions: []kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{{Partition: 0}, {Partition: 77}},
				}}})
			}
			answer := s.ask(req).(*kmsg.AssignReplicasToDirsResponse)
			code = answer.ErrorCode
			for _, dir := range answer.Directories {
				for _, partition := range dir.Topics[0].Partitions {
					lines = append(lines, fmt.Sprintf("%s: %c-%d %v", line, dir.ID[0], partition.Partition, protocol.ErrorCode(partition.ErrorCode)))
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %v%s", line, protocol.ErrorCode(code), extra))
	}
	return lines
}

func (s *scripted) registration(id int32, settings [][2]string) *kmsg.BrokerRegistrationRequest {
	req := registration(id, byte(id))
	req.ClusterID, req.PreviousBrokerEpoch = "Q1bSgqqPT4yq1sGFWQ9w7w", -1
	listener := kmsg.NewBrokerRegistrationRequestListener()
	listener.Name, listener.Host, listener.Port = "PLAINTEXT", "localhost", 9092
	req.Listeners = append(req.Listeners, listener)
	req.Features = nil
	ranges := map[string][2]int16{"metadata.version": {7, 33}}
	for _, feature := range metadata.AllFeatures() {
		ranges[feature.Name] = [2]int16{0, feature.Max()}
	}
	for _, setting := range settings[1:] {
		switch key, value := setting[0], setting[1]; key {
		case "cluster":
			req.ClusterID = value
		case "incarnation":
			req.IncarnationID = [16]byte{byte(number(s.t, value))}
		case "dirs":
			req.LogDirs = nil
			for _, n := range strings.Split(value, ",") {
				if n != "" {
					req.LogDirs = append(req.LogDirs, [16]byte{15: byte(number(s.t, n))})
				}
			}
		case "no":
			delete(ranges, value)
		case "zk":
			req.IsMigratingZkBroker = true
		default:
			low, high, _ := strings.Cut(value, "-")
			ranges[key] = [2]int16{int16(number(s.t, low)), int16(number(s.t, high))}
		}
	}
	for _, name := range sortedNames(ranges) {
		req.Features = append(req.Features, kmsg.BrokerRegistrationRequestFeature{Name: name, MinSupportedVersion: ranges[name][0], MaxSupportedVersion: ranges[name][1]})
	}
	return req
}

// join makes broker 1 a live one.
func (s *scripted) join(f *fixture) {
	answer := handle[*kmsg.BrokerRegistrationResponse](f, s.registration(1, [][2]string{{"1", ""}}))
	if answer.ErrorCode != 0 {
		s.t.Fatal(protocol.ErrorCode(answer.ErrorCode))
	}
	f.beat(1, answer.BrokerEpoch, false)
	f.c.options.NodeID = 99 // only the broker of another process can be a rival
}
