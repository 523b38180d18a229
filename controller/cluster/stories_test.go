package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// TestStories tells what brokers do and what the controller writes for it.
//
//	cluster [elr] [level=N]         a new cluster
//	start ID [clean] [dirs=N]       a new process of the broker registers; clean: the earlier one stopped in order
//	beat ID [behind] [fence] [stop] [offline=N] [cordon=N]   a heartbeat
//	wait SECONDS                    time passes, and the controller does what is due
//	create NAME 0:1,2;1:2,3 [k=v]   a topic with these replicas
//	isr NAME N LEADER 1,2           the ISR as if a leader had reported it (written as a record)
//	reassign NAME N 1,2             the partition is to have these replicas
//	assign ID NAME N DIR            the broker tells where its replica lies
//	controller                      another controller takes over
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{t: t, epochs: map[int32]int64{}, incarnation: 1}
		datadriven.RunTest(t, path, s.run)
	})
}

type story struct {
	t           *testing.T
	f           *fixture
	epochs      map[int32]int64
	incarnation byte
	told        int // records of the log that were printed
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	var answer string
	words := []string{}
	flags := map[string][]string{}
	for _, arg := range d.CmdArgs {
		if flags[arg.Key] = arg.Vals; len(arg.Vals) == 0 {
			words = append(words, arg.Key)
		}
	}
	switch d.Cmd {
	case "cluster":
		levels := map[string]int16{metadata.MetadataVersionFeature: int16(metadata.MaxMetadataVersion)}
		if text, ok := flags["level"]; ok {
			levels[metadata.MetadataVersionFeature] = int16(number(t, text[0]))
		}
		if _, ok := flags["elr"]; ok {
			levels[metadata.ELRVersionFeature] = 1
		}
		s.f, s.told = newFixtureWith(t, levels), 0
		s.f.c.options.NodeID = 99 // brokers are on other machines
	case "start":
		answer = s.start(number(t, words[0]), flags)
	case "beat":
		answer = s.beat(number(t, words[0]), flags)
	case "wait":
		s.wait(int(number(t, words[0])))
	case "create":
		answer = s.create(words[0], d.CmdArgs[1:])
	case "isr":
		s.isr(words)
	case "reassign":
		answer = s.reassign(words)
	case "assign":
		answer = s.assign(words)
	case "controller":
		s.f.c.Resign()
		result, err := s.f.c.Activate(s.f.turn(), 2)
		if err != nil {
			t.Fatal(err)
		}
		s.f.apply(result)
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return answer + s.records()
}

func dir(n int32) [16]byte { return [16]byte{0xd0, byte(n)} }

func (s *story) start(id int32, flags map[string][]string) string {
	s.incarnation++
	req := registration(id, s.incarnation)
	req.PreviousBrokerEpoch = -1
	if _, clean := flags["clean"]; clean {
		req.PreviousBrokerEpoch = s.epochs[id]
	}
	req.LogDirs = [][16]byte{dir(10 * id)}
	if count, ok := flags["dirs"]; ok {
		for i := int32(1); i < number(s.t, count[0]); i++ {
			req.LogDirs = append(req.LogDirs, dir(10*id+i))
		}
	}
	req.Features = append(req.Features, kmsg.BrokerRegistrationRequestFeature{Name: metadata.ELRVersionFeature, MaxSupportedVersion: 1})
	answer := handle[*kmsg.BrokerRegistrationResponse](s.f, req)
	if answer.ErrorCode != 0 {
		return fmt.Sprintf("refused: %v\n", protocol.ErrorCode(answer.ErrorCode))
	}
	s.epochs[id] = answer.BrokerEpoch
	return ""
}

func (s *story) beat(id int32, flags map[string][]string) string {
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset = id, s.epochs[id], int64(s.f.next)-1
	if _, behind := flags["behind"]; behind {
		req.CurrentMetadataOffset = 0
	}
	_, req.WantFence = flags["fence"]
	_, req.WantShutdown = flags["stop"]
	for _, n := range flags["offline"] {
		req.OfflineLogDirs = append(req.OfflineLogDirs, dir(number(s.t, n)))
	}
	for _, n := range flags["cordon"] {
		req.CordonedLogDirs = append(req.CordonedLogDirs, dir(number(s.t, n)))
	}
	answer := handle[*kmsg.BrokerHeartbeatResponse](s.f, req)
	if answer.ErrorCode != 0 {
		return fmt.Sprintf("refused: %v\n", protocol.ErrorCode(answer.ErrorCode))
	}
	state := "unfenced"
	if answer.IsFenced {
		state = "fenced"
	}
	if answer.ShouldShutdown {
		state += ", may stop"
	}
	return state + "\n"
}

func (s *story) wait(seconds int) { s.f.pass(time.Duration(seconds) * time.Second) }

func (s *story) create(name string, args []datadriven.CmdArg) string {
	req := createTopic(name, -1, -1)
	topic := &req.Topics[0]
	for _, arg := range args {
		if len(arg.Vals) > 0 {
			topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: arg.Key, Value: &arg.Vals[0]})
			continue
		}
		for _, one := range strings.Split(arg.Key, ";") {
			partition, list, _ := strings.Cut(one, ":")
			assignment := kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: number(s.t, partition)}
			for _, id := range strings.Split(list, ",") {
				assignment.Replicas = append(assignment.Replicas, number(s.t, id))
			}
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment)
		}
	}
	if answer := s.f.create(req); answer.ErrorCode != 0 {
		return fmt.Sprintf("refused: %v %s\n", protocol.ErrorCode(answer.ErrorCode), *answer.ErrorMessage)
	}
	return ""
}

// isr writes what an AlterPartition of the leader would.
func (s *story) isr(words []string) {
	topic := s.f.c.Image().Topic(words[0])
	n := number(s.t, words[1])
	p := s.f.c.proposer()(topic, n, topic.Partition(n), nobody())
	p.next.isr = nil
	for _, id := range strings.Split(words[2], ",") {
		p.next.isr = append(p.next.isr, protocol.NodeID(number(s.t, id)))
	}
	if record := p.build(); record != nil {
		s.f.apply(s.f.c.result(nil, record))
	}
}

func (s *story) reassign(words []string) string {
	req, topic := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewAlterPartitionAssignmentsRequestTopic()
	partition := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	partition.Partition = number(s.t, words[1])
	for _, id := range strings.Split(words[2], ",") {
		partition.Replicas = append(partition.Replicas, number(s.t, id))
	}
	topic.Topic, topic.Partitions = words[0], append(topic.Partitions, partition)
	req.Version, req.Topics = 1, append(req.Topics, topic)
	answer := handle[*kmsg.AlterPartitionAssignmentsResponse](s.f, req)
	return fmt.Sprintf("%v\n", protocol.ErrorCode(answer.Topics[0].Partitions[0].ErrorCode))
}

func (s *story) assign(words []string) string {
	id := number(s.t, words[0])
	req := kmsg.NewPtrAssignReplicasToDirsRequest()
	req.BrokerID, req.BrokerEpoch = id, s.epochs[id]
	req.Directories = []kmsg.AssignReplicasToDirsRequestDirectory{{ID: dir(number(s.t, words[3])), Topics: []kmsg.AssignReplicasToDirsRequestDirectoryTopic{{
		TopicID:    s.f.c.Image().Topic(words[1]).ID,
		Partitions: []kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{{Partition: number(s.t, words[2])}},
	}}}}
	answer := handle[*kmsg.AssignReplicasToDirsResponse](s.f, req)
	return fmt.Sprintf("%v\n", protocol.ErrorCode(answer.Directories[0].Topics[0].Partitions[0].ErrorCode))
}

// records prints what was written since the last command.
func (s *story) records() string {
	var out strings.Builder
	for _, r := range s.f.log[s.told:] {
		var read struct {
			Type string
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(payload(s.t, r)), &read); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s", strings.ToLower(strings.TrimSuffix(read.Type, "_RECORD")))
		if id, ok := read.Data["topicId"].(string); ok {
			s.nameTopic(&out, id, read.Data)
		}
		for _, key := range sortedNames(read.Data) {
			if slices.Contains([]string{"topicId", "partitionId", "incarnationId", "features", "endPoints", "brokerEpoch", "isMigratingZkBroker", "name", "rack"}, key) {
				continue
			}
			value, err := json.Marshal(read.Data[key])
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&out, " %s=%s", key, s.shorten(string(value)))
		}
		if name, ok := read.Data["name"].(string); ok && read.Data["topicId"] == nil {
			fmt.Fprintf(&out, " %s", name)
		}
		out.WriteString("\n")
	}
	s.told = len(s.f.log)
	if out.Len() == 0 {
		return "nothing is written\n"
	}
	return out.String()
}

func (s *story) nameTopic(out *strings.Builder, id string, data map[string]any) {
	name := id
	if parsed, err := protocol.ParseUUID(id); err == nil {
		if topic := s.f.c.Image().TopicByID(parsed); topic != nil {
			name = topic.Name
		}
	}
	fmt.Fprintf(out, " %s", name)
	if n, ok := data["partitionId"].(float64); ok {
		fmt.Fprintf(out, "-%s", strconv.Itoa(int(n)))
	}
}

// shorten writes directories by their numbers.
func (s *story) shorten(text string) string {
	for n := int32(10); n < 60; n++ {
		text = strings.ReplaceAll(text, protocol.UUID(dir(n)).String(), fmt.Sprint("dir", n))
	}
	text = strings.ReplaceAll(text, protocol.DirectoryUnassigned.String(), "unassigned")
	return strings.ReplaceAll(text, `"`, "")
}
