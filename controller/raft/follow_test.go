package raft

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ottla/protocol"
)

// TestFollowing runs the stories under testdata: node 1 follows the quorum of nodes
// 11, 12 and 13. Times are milliseconds since the story began; the fetch timeout is
// 2000, the pause after a failure 20.
func TestFollowing(t *testing.T) {
	datadriven.Walk(t, "testdata/follow", func(t *testing.T, path string) {
		var s follower
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

// follower is a core under test, and what it has sent last.
type follower struct {
	t    *testing.T
	core *Core
	now  time.Time
	sent *Fetch
}

func (s *follower) number(d *datadriven.TestData, key string, otherwise int64) int64 {
	if !d.HasArg(key) {
		return otherwise
	}
	var n int64
	d.ScanArgs(s.t, key, &n)
	return n
}

func (s *follower) pair(d *datadriven.TestData, key string) (a, b int64, ok bool) {
	if !d.HasArg(key) {
		return 0, 0, false
	}
	d.ScanArgs(s.t, key, &a, &b)
	return a, b, true
}

func (s *follower) run(d *datadriven.TestData) string {
	s.now = s.now.Add(time.Duration(s.number(d, "after", 0)) * time.Millisecond)
	effects := nothing()
	switch d.Cmd {
	case "new":
		s.begin(d)
	case "tick":
		effects = s.core.Tick(s.now)
	case "answer":
		effects = s.core.Answered(s.now, s.sent, s.answer(d))
	case "fail":
		s.core.Failed(s.now, s.sent)
	case "replicated":
		effects = s.core.Replicated(protocol.Offset(s.number(d, "end", 0)), protocol.LeaderEpoch(s.number(d, "epoch", 0)))
	case "truncated":
		s.core.Truncated(protocol.Offset(s.number(d, "end", 0)), protocol.LeaderEpoch(s.number(d, "epoch", 0)))
	case "voters":
		s.core.VotersAppended(protocol.Offset(s.number(d, "offset", 0)), quorumOf(11, 12, 13))
	case "installed":
		effects = s.core.Installed(SnapshotID{protocol.Offset(s.number(d, "end", 0)), protocol.LeaderEpoch(s.number(d, "epoch", 0))}, quorumOf(11, 12, 13))
	case "damaged":
		s.core.DownloadFailed(s.now)
	default:
		d.Fatalf(s.t, "no such command")
	}
	if effects.Fetch != nil {
		s.sent = effects.Fetch
	}
	return s.tell(effects)
}

func quorumOf(ids ...protocol.NodeID) VoterSet {
	var voters []Voter
	for _, id := range ids {
		v := voter(id)
		v.Endpoints = []Endpoint{{Name: "CONTROLLER", Host: "voter", Port: uint16(id)}}
		voters = append(voters, v)
	}
	return NewVoterSet(voters...)
}

func (s *follower) begin(d *datadriven.TestData) {
	s.now = time.Unix(0, 0).Add(time.Hour)
	var voters VoterSet
	if d.HasArg("voters") {
		voters = quorumOf(11, 12, 13)
	}
	state := ElectionState{
		Epoch: protocol.LeaderEpoch(s.number(d, "epoch", 0)), Leader: protocol.NodeID(s.number(d, "leader", -1)), Voted: ReplicaKey{ID: protocol.NoNode},
	}
	log := Log{End: protocol.Offset(s.number(d, "end", 0)), Epoch: protocol.LeaderEpoch(s.number(d, "last", 0))}
	s.core = New(ReplicaKey{ID: 1, Directory: protocol.UUID{1}}, voters, state, log)
	s.core.Follow(s.now, FollowSettings{
		Bootstrap: []Address{{-2, "bootstrap", 2}, {-3, "bootstrap", 3}}, Listener: "CONTROLLER",
		FetchTimeout: 2 * time.Second, RetryBackoff: 20 * time.Millisecond, Random: func() uint64 { return 0 },
	})
}

func (s *follower) answer(d *datadriven.TestData) Answer {
	answer := Answer{
		Leader: protocol.NodeID(s.number(d, "leader", -1)), Epoch: protocol.LeaderEpoch(s.number(d, "epoch", -1)),
		HighWatermark: protocol.Offset(s.number(d, "hw", -1)),
	}
	if d.HasArg("error") {
		var name string
		d.ScanArgs(s.t, "error", &name)
		for code := protocol.UnknownServerError; code < 140; code++ {
			if code.String() == name {
				answer.Error = code
			}
		}
		if answer.Error == protocol.None {
			d.Fatalf(s.t, "no error %s", name)
		}
	}
	if d.HasArg("at") {
		answer.LeaderAt = &Endpoint{Host: "told", Port: uint16(s.number(d, "at", 0))}
	}
	if epoch, end, ok := s.pair(d, "diverging"); ok {
		answer.Diverging = &EpochEnd{protocol.LeaderEpoch(epoch), protocol.Offset(end)}
		epoch, end, _ = s.pair(d, "local")
		answer.LocalEnd = EpochEnd{protocol.LeaderEpoch(epoch), protocol.Offset(end)}
	}
	if end, epoch, ok := s.pair(d, "snapshot"); ok {
		answer.Snapshot = &SnapshotID{protocol.Offset(end), protocol.LeaderEpoch(epoch)}
	}
	answer.Position, answer.Bytes = s.number(d, "position", 0), s.number(d, "bytes", 0)
	answer.Size = s.number(d, "size", 0)
	return answer
}

// tell prints the effects, and then the core.
func (s *follower) tell(e Effects) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	if e.Persist != nil {
		line("persist epoch %d leader %d", e.Persist.Epoch, e.Persist.Leader)
	}
	if e.Refused != nil {
		line("refused: %v", e.Refused)
	}
	if e.Truncate != nil {
		line("truncate to %d", *e.Truncate)
	}
	if e.Append {
		line("append the records")
	}
	if e.Download != nil {
		line("download snapshot %d of epoch %d", e.Download.End, e.Download.Epoch)
	}
	if e.Chunk {
		line("take the chunk")
	}
	if e.Install != nil {
		line("install snapshot %d of epoch %d", e.Install.End, e.Install.Epoch)
	}
	if f := e.Fetch; f != nil && f.Snapshot != nil {
		line("fetch snapshot %d of epoch %d from byte %d of %s", f.Snapshot.End, f.Snapshot.Epoch, f.Position, f.To)
	} else if f != nil {
		line("fetch from %s: epoch %d, offset %d after epoch %d, high watermark %d", f.To, f.Epoch, f.Offset, f.LastEpoch, f.HighWatermark)
	}
	if e.HighWatermark != protocol.NoOffset {
		line("high watermark %d", e.HighWatermark)
	}
	c := s.core
	leader := "nobody"
	if at := c.LeaderAddress(); at != nil {
		leader = at.String()
	}
	caught := ""
	if c.CaughtUp() {
		caught = ", caught up"
	}
	line("%s of epoch %d, led by %s; log to %d, committed to %d%s", c.Role(), c.Epoch(), leader, c.logEnd, c.HighWatermark(), caught)
	return out.String()
}
