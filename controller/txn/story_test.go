package txn

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// TestStories runs the transcripts under testdata/stories. Producer ids are
// written P1, P2, … in the order in which they appear.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{rig: newRig(t, settings()), held: true, name: "x"}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.rig.t, s.d = t, d
			return s.run()
		})
	})
}

type story struct {
	*rig
	d    *datadriven.TestData
	ids  []protocol.ProducerID // P1, P2, …
	held bool                  // markers are written when the story says so
	name string                // the transactional id where none is named
}

func (s *story) arg(name, otherwise string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

func (s *story) number(name string, otherwise int) int {
	n, err := strconv.Atoi(s.arg(name, strconv.Itoa(otherwise)))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// pid reads a producer id, P1 or a number; and shows one.
func (s *story) pid(name string) protocol.ProducerID {
	text := s.arg(name, "-1")
	if n, ok := strings.CutPrefix(text, "P"); ok {
		at, err := strconv.Atoi(n)
		if err != nil || at > len(s.ids) {
			s.t.Fatalf("%s=%s", name, text)
		}
		return s.ids[at-1]
	}
	return protocol.ProducerID(s.number(name, -1))
}

func (s *story) showID(id protocol.ProducerID) string {
	if id == protocol.NoProducerID {
		return "-"
	}
	at := slices.Index(s.ids, id)
	if at < 0 {
		s.ids = append(s.ids, id)
		at = len(s.ids) - 1
	}
	return "P" + strconv.Itoa(at+1)
}

func (s *story) showProducer(p Producer) string { return fmt.Sprintf("%s/%d", s.showID(p.ID), p.Epoch) }

func (s *story) producer() Producer {
	return Producer{s.pid("pid"), protocol.ProducerEpoch(s.number("epoch", -1))}
}

func (s *story) partitions() (partitions []protocol.TopicPartition) {
	for _, name := range strings.Split(s.arg("p", ""), ",") {
		if name == "" {
			continue
		}
		tp, err := protocol.ParseTopicPartition(name)
		if err != nil {
			s.t.Fatal(err)
		}
		partitions = append(partitions, tp)
	}
	return partitions
}

// The first versions of requests whose senders work the second way.
const (
	addsV2From = 4
	endsV2From = 5
)

func wayOf(version, v2From int) int16 {
	if version >= v2From {
		return Version2
	}
	return Version0
}

// request reads a command that is a request.
func (s *story) request() any {
	id := s.arg("id", s.name)
	switch s.d.Cmd {
	case "init":
		return InitProducerID{TransactionalID: id, TimeoutMs: int32(s.number("timeout", 60_000)), Expected: s.producer(), Drawn: protocol.NoProducerID}
	case "add":
		return AddPartitions{TransactionalID: id, Producer: s.producer(), Partitions: s.partitions(), Version: wayOf(s.number("v", 5), addsV2From)}
	case "offsets":
		partition := protocol.TopicPartition{Topic: protocol.ConsumerOffsetsTopic}
		return AddPartitions{TransactionalID: id, Producer: s.producer(), Partitions: []protocol.TopicPartition{partition}}
	case "verify":
		return Verify{TransactionalID: id, Producer: s.producer(), Partitions: s.partitions()}
	case "end":
		return EndTxn{
			TransactionalID: id, Producer: s.producer(), Commit: s.d.HasArg("commit"),
			Version: wayOf(s.number("v", 5), endsV2From), Drawn: protocol.NoProducerID,
		}
	case "describe":
		return Describe{id}
	case "list":
		return List{s.keep()}
	}
	s.t.Fatalf("no command is %s", s.d.Cmd)
	return nil
}

func (s *story) keep() func(*Described) bool {
	pattern := regexp.MustCompile(`\A(?:` + s.arg("pattern", ".*") + `)\z`)
	return func(d *Described) bool {
		return pattern.MatchString(d.TransactionalID) &&
			(!s.d.HasArg("state") || slices.Contains(strings.Split(s.arg("state", ""), ","), d.State.String())) &&
			(!s.d.HasArg("pid") || s.pid("pid") == d.Producer.ID)
	}
}

func (s *story) run() string {
	switch s.d.Cmd {
	case "settings":
		o := settings()
		o.MaxTimeout = time.Duration(s.number("max-timeout", int(o.MaxTimeout.Milliseconds()))) * time.Millisecond
		fresh := newRig(s.t, o)
		if limit := s.number("batch", 0); limit > 0 {
			fresh.c.options.MaxBatchBytes = func() int { return limit }
		}
		*s.rig = *fresh
		return ""
	case "version":
		s.version = int16(s.number("to", 2))
		return ""
	case "wait":
		d, err := time.ParseDuration(s.d.CmdArgs[0].Key)
		if err != nil {
			s.t.Fatal(err)
		}
		return s.show(s.advance(d, nil)...)
	case "next":
		return s.c.NextDeadline().Sub(s.now).String() + "\n"
	case "fail":
		return s.show(s.fail())
	case "markers":
		id := s.arg("id", s.name)
		if s.d.HasArg("epoch") {
			return s.show(s.send(MarkersWritten{
				TransactionalID: id, Producer: s.producer(), CoordinatorEpoch: int32(s.number("coordinator", int(s.leader))), Partitions: s.partitions(),
			}))
		}
		return s.show(s.report(id, s.partitions()...))
	case "draw":
		s.wanted = false
		s.drawn++
		return s.show(s.send(ProducerIDDrawn{s.drawn}))
	}
	return s.show(s.sendAll()...)
}

// sendAll sends a request, as often as it says, and shows the last answer.
func (s *story) sendAll() []answer {
	request := s.request()
	s.hurried = true
	for range s.number("times", 1) - 1 {
		s.send(request)
	}
	s.hurried = false
	all := []answer{s.send(request)}
	if !s.held {
		all = append(all, s.reportAll()...)
	}
	return all
}

// show prints what steps brought: records, then effects, then the reply.
func (s *story) show(all ...answer) string {
	var b strings.Builder
	for _, a := range all {
		for _, r := range a.records {
			b.WriteString(s.showRecord(r))
		}
	}
	for _, a := range all {
		for _, effect := range a.effects {
			if s.held {
				b.WriteString(s.showEffect(effect))
			}
		}
	}
	for _, a := range all {
		b.WriteString(s.showReply(a))
	}
	return b.String()
}

func (s *story) showRecord(r machine.Record) string {
	key, err := schema.DecodeKey(schema.TransactionLog, r.Key)
	if err != nil || !bytes.Equal(schema.AppendKey(nil, key), r.Key) {
		s.t.Fatalf("key %x: %v", r.Key, err)
	}
	id := key.(*schema.TransactionLogKey).TransactionalID
	if r.Value == nil {
		return fmt.Sprintf("record %s: gone\n", id)
	}
	decoded, version, err := schema.DecodeValue(schema.TransactionLog, key.APIKey(), r.Value)
	if err != nil || !bytes.Equal(schema.AppendValue(nil, decoded, version), r.Value) {
		s.t.Fatalf("value %x: %v", r.Value, err)
	}
	value := decoded.(*schema.TransactionLogValue)
	m, err := metadataOf(value)
	if err != nil {
		s.t.Fatal(err)
	}
	partitions := "-"
	if value.TransactionPartitions != nil {
		partitions = fmt.Sprint(m.partitions)
	}
	started := ""
	if m.startMs != -1 {
		started = " begun"
	}
	return fmt.Sprintf("record %s: v%d %s %s previous %s next %s timeout %d client %d %s%s\n", id, version, m.state,
		s.showProducer(m.producer), s.showID(m.previousID), s.showID(m.nextID), m.timeoutMs, m.clientVersion, partitions, started)
}

func (s *story) showEffect(effect any) string {
	switch e := effect.(type) {
	case WriteMarkers:
		return fmt.Sprintf("markers of %s: %s commit=%t coordinator %d v%d %v\n", e.TransactionalID, s.showProducer(e.Producer), e.Commit, e.CoordinatorEpoch, e.Version, e.Partitions)
	case DrawProducerID:
		return "a producer id is wanted\n"
	}
	return fmt.Sprintf("%T\n", effect)
}

func (s *story) showReply(a answer) string {
	if a.err != nil {
		return protocol.CodeOf(a.err).String() + "\n"
	}
	switch reply := a.reply.(type) {
	case Aborting:
		return protocol.ConcurrentTransactions.String() + "\n"
	case Producer:
		return s.showProducer(reply) + "\n"
	case Verified:
		return fmt.Sprintln([]bool(reply))
	case Described:
		return s.showDescribed(reply)
	case []Described:
		var b strings.Builder
		for _, d := range reply {
			fmt.Fprintf(&b, "%s %s %s\n", d.TransactionalID, s.showID(d.Producer.ID), d.State)
		}
		return b.String()
	case Done:
		if s.d.Cmd == "add" || s.d.Cmd == "offsets" {
			return "NONE\n"
		}
	}
	return ""
}

func (s *story) showDescribed(d Described) string {
	started := ""
	if d.StartMs != -1 {
		started = " begun"
	}
	return fmt.Sprintf("%s %s %s timeout %d %v%s\n", d.TransactionalID, d.State, s.showProducer(d.Producer), d.TimeoutMs, d.Partitions, started)
}
