package partition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ottla/protocol"
)

// TestScripts runs the stories under testdata. Node 1 is the one whose core is
// driven; the times are milliseconds since the story began.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{t: t, brokers: map[protocol.NodeID]Broker{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			out := s.run(d)
			s.check()
			return out
		})
	})
}

// story is one core under test with the world around it.
type story struct {
	t       *testing.T
	p       *Partition
	now     time.Time
	ends    Ends
	brokers map[protocol.NodeID]Broker
	alter   *AlterPartition // the last wish

	epoch         protocol.LeaderEpoch
	highWatermark protocol.Offset
}

func (s *story) lookup(id protocol.NodeID) Broker {
	if b, known := s.brokers[id]; known {
		return b
	}
	return Broker{Alive: true, Epoch: 100}
}

// check holds the invariants against the core after every command.
func (s *story) check() {
	if s.p == nil {
		return
	}
	view, hw := s.p.View(), s.p.HighWatermark()
	if hw > s.ends.End {
		s.t.Errorf("the high watermark %d is beyond the log end %d", hw, s.ends.End)
	}
	if view.LeaderEpoch == s.epoch && hw < s.highWatermark && view.Role == Leader {
		s.t.Errorf("the high watermark moved back from %d to %d in epoch %d", s.highWatermark, hw, s.epoch)
	}
	for _, id := range view.ISR {
		if !slices.Contains(view.MaximalISR, id) {
			s.t.Errorf("the ISR member %d is not in the maximal ISR %v", id, view.MaximalISR)
		}
	}
	s.epoch, s.highWatermark = view.LeaderEpoch, hw
}

func (s *story) run(d *datadriven.TestData) string {
	args := arguments{d}
	s.now = time.UnixMilli(args.number("at", s.now.UnixMilli()))
	switch d.Cmd {
	case "new":
		s.ends = Ends{Start: protocol.Offset(args.number("start", 0)), End: protocol.Offset(args.number("end", 0))}
		s.ends.Durable = protocol.Offset(args.number("durable", int64(s.ends.End)))
		s.p = New(s.options(args), protocol.Offset(args.number("checkpoint", 0)), s.ends)
		return s.show(Effects{}, true)
	case "options":
		return s.show(s.p.SetOptions(s.now, s.options(args), s.lookup), true)
	case "lead", "follow":
		return s.role(d, args)
	case "append":
		return s.append(args)
	case "flush":
		s.ends.Durable = s.ends.End
		return s.show(s.p.Flushed(s.now, s.ends.Durable, s.lookup), true)
	case "fetch":
		effects, err := s.p.FollowerFetched(s.now, FollowerFetch{
			Replica: protocol.NodeID(args.number("from", 2)), BrokerEpoch: protocol.BrokerEpoch(args.number("broker-epoch", 100)),
			LeaderEpoch: protocol.LeaderEpoch(args.number("leader-epoch", int64(s.p.LeaderEpoch()))),
			Offset:      protocol.Offset(args.number("offset", 0)), LogStart: protocol.Offset(args.number("start", 0)), LeaderEnd: s.ends.End,
		}, s.lookup)
		if err != nil {
			return err.Error() + "\n"
		}
		return s.show(effects, true)
	case "tick":
		return s.show(s.p.Tick(s.now), true)
	case "answer":
		return s.answer(args)
	case "broker":
		s.brokers[protocol.NodeID(args.number("id", 2))] = Broker{
			Alive: !d.HasArg("fenced"), ShuttingDown: d.HasArg("stopping"), Epoch: protocol.BrokerEpoch(args.number("epoch", 100)),
		}
		return ""
	case "progress":
		done, err := s.p.Progress(protocol.LeaderEpoch(args.number("epoch", int64(s.p.LeaderEpoch()))), protocol.Offset(args.number("offset", 0)))
		return fmt.Sprintf("done=%v %s\n", done, outcome(err))
	case "read":
		return outcome(s.p.View().CheckRead(protocol.LeaderEpoch(args.number("epoch", -1)), !d.HasArg("anywhere"))) + "\n"
	case "replica":
		return outcome(s.p.View().CheckFollower(protocol.NodeID(args.number("id", 2)), protocol.LeaderEpoch(args.number("epoch", -1)))) + "\n"
	case "latest":
		return outcome(s.p.View().CheckLatest(s.p.HighWatermark())) + "\n"
	case "replicated":
		s.ends.End = protocol.Offset(args.number("end", int64(s.ends.End)))
		s.ends.Start = protocol.Offset(args.number("start", int64(s.ends.Start)))
		effects, ok := s.p.Replicated(protocol.LeaderEpoch(args.number("epoch", int64(s.p.LeaderEpoch()))), s.ends, protocol.Offset(args.number("leader-hw", 0)))
		return s.show(effects, ok)
	case "truncate":
		s.ends.End = protocol.Offset(args.number("end", 0))
		s.ends.Start = protocol.Offset(args.number("start", int64(s.ends.Start)))
		return s.show(s.p.Truncated(s.ends), true)
	case "diverging":
		return s.diverging(args)
	case "log-start":
		s.ends.Start = protocol.Offset(args.number("offset", 0))
		return s.show(s.p.LogStartMoved(s.ends.Start), true)
	case "low-watermark":
		return fmt.Sprintf("%d\n", s.p.LowWatermark(s.lookup))
	case "fail":
		return s.show(s.p.Fail(), true)
	case "followers":
		var b strings.Builder
		for _, f := range s.p.Followers() {
			caughtUp := int64(-1)
			if !f.LastCaughtUp.IsZero() {
				caughtUp = f.LastCaughtUp.UnixMilli()
			}
			fmt.Fprintf(&b, "%d: log %d..%d caught up at %d\n", f.ID, f.LogStart, f.LogEnd, caughtUp)
		}
		return b.String()
	}
	s.t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func (s *story) options(args arguments) Options {
	return Options{
		NodeID: 1, LagTimeMax: time.Duration(args.number("lag", 30000)) * time.Millisecond,
		MinInSyncReplicas: int(args.number("min-isr", 1)), FlushBeforeAck: args.d.HasArg("flush-before-ack"),
	}
}

func (s *story) role(d *datadriven.TestData, args arguments) string {
	state := State{
		LeaderEpoch: protocol.LeaderEpoch(args.number("epoch", 0)), PartitionEpoch: int32(args.number("partition-epoch", 0)),
		ISR: args.nodes("isr"), Replicas: args.nodes("replicas"),
	}
	if d.Cmd == "lead" {
		state.Leader = 1
		effects, ok := s.p.Lead(s.now, state, s.ends, s.lookup)
		return s.show(effects, ok)
	}
	state.Leader = protocol.NodeID(args.number("leader", -1))
	effects, ok := s.p.Follow(s.now, state, s.ends)
	return s.show(effects, ok)
}

// diverging asks where a follower's log is to be cut. own=(1:4,3:9) says which epochs the follower has, and their ends.
func (s *story) diverging(args arguments) string {
	own := func(asked protocol.LeaderEpoch) EpochEnd {
		found := EpochEnd{protocol.NoLeaderEpoch, protocol.NoOffset}
		text, _ := args.text("own")
		for _, pair := range strings.Split(text, ",") {
			var e EpochEnd
			if _, err := fmt.Sscanf(pair, "%d:%d", &e.Epoch, &e.End); err == nil && e.Epoch <= asked {
				found = e
			}
		}
		return found
	}
	leader := EpochEnd{protocol.LeaderEpoch(args.number("epoch", -1)), protocol.Offset(args.number("end", -1))}
	return fmt.Sprintf("%d\n", s.p.TruncationPoint(leader, own))
}

func (s *story) append(args arguments) string {
	epoch, err := s.p.CanAppend(args.d.HasArg("all"))
	if err != nil {
		return err.Error() + "\n"
	}
	s.ends.End += protocol.Offset(args.number("count", 1))
	if !args.d.HasArg("flush-before-ack") && !args.d.HasArg("not-durable") {
		s.ends.Durable = s.ends.End
	}
	effects, ok := s.p.Appended(s.now, protocol.LeaderEpoch(args.number("epoch", int64(epoch))), s.ends, s.lookup)
	return s.show(effects, ok)
}

func (s *story) answer(args arguments) string {
	result := AlterResult{
		Error: protocol.ErrorCode(args.number("error", 0)), LeaderEpoch: protocol.LeaderEpoch(args.number("epoch", int64(s.p.LeaderEpoch()))),
		PartitionEpoch: int32(args.number("partition-epoch", int64(s.p.View().PartitionEpoch)+1)), ISR: args.nodes("isr"),
	}
	if result.ISR == nil && result.Error == 0 {
		for _, member := range s.alter.ISR {
			result.ISR = append(result.ISR, member.ID)
		}
	}
	return s.show(s.p.ISRAltered(s.now, s.alter, result, s.lookup), true)
}

// show prints what the shell would have to do, and where the core stands.
func (s *story) show(effects Effects, ok bool) string {
	var b strings.Builder
	if !ok {
		b.WriteString("ignored\n")
	}
	if effects.Alter != nil {
		s.alter = effects.Alter
		fmt.Fprintf(&b, "alter: epoch %d partition epoch %d isr", effects.Alter.LeaderEpoch, effects.Alter.PartitionEpoch)
		for _, member := range effects.Alter.ISR {
			fmt.Fprintf(&b, " %d@%d", member.ID, member.BrokerEpoch)
		}
		b.WriteString("\n")
	}
	moved := ""
	if effects.HighWatermark {
		moved = "*"
	}
	view := s.p.View()
	fmt.Fprintf(&b, "%s epoch=%d.%d log=%d..%d hw=%d%s", view.Role, view.LeaderEpoch, view.PartitionEpoch, s.ends.Start, s.ends.End, s.p.HighWatermark(), moved)
	if view.Role == Leader {
		fmt.Fprintf(&b, " epoch-start=%d isr=%v", view.EpochStart, view.ISR)
		if !slices.Equal(view.ISR, view.MaximalISR) {
			fmt.Fprintf(&b, " maximal=%v", view.MaximalISR)
		}
	}
	b.WriteString("\n")
	return b.String()
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// arguments reads a command's key=value pairs.
type arguments struct{ d *datadriven.TestData }

func (a arguments) text(key string) (string, bool) {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return strings.Join(arg.Vals, ","), true
		}
	}
	return "", false
}

func (a arguments) number(key string, otherwise int64) int64 {
	text, given := a.text(key)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.d.Fatalf(nil, "%s=%s is no number", key, text)
	}
	return n
}

func (a arguments) nodes(key string) []protocol.NodeID {
	text, given := a.text(key)
	if !given {
		return nil
	}
	var nodes []protocol.NodeID
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '(' || r == ')' }) {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			panic(err)
		}
		nodes = append(nodes, protocol.NodeID(n))
	}
	return nodes
}
