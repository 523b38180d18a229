package raft

import (
	"testing"
	"time"

	"ottla/protocol"
)

var local = ReplicaKey{ID: 1, Directory: protocol.UUID{1}}

func voter(id protocol.NodeID) Voter {
	return Voter{ReplicaKey: ReplicaKey{ID: id, Directory: protocol.UUID{byte(id)}}}
}

func TestSingleVoterElectsItselfInANewEpoch(t *testing.T) {
	for _, start := range []struct {
		name  string
		state ElectionState
		log   Log
		epoch protocol.LeaderEpoch
	}{
		{"fresh", ElectionState{Leader: protocol.NoNode}, Log{}, 1},
		{"restarted", ElectionState{Epoch: 4, Leader: 1}, Log{End: 10, Epoch: 4}, 5},
		{"quorum-state lost", ElectionState{}, Log{End: 10, Epoch: 7}, 8},
		{"log behind quorum-state", ElectionState{Epoch: 9, Leader: 1}, Log{End: 10, Epoch: 7}, 10},
	} {
		t.Run(start.name, func(t *testing.T) {
			core := New(local, NewVoterSet(voter(1)), start.state, start.log)
			effects := core.Tick(time.Time{})
			if effects.Persist == nil || effects.Persist.Epoch != start.epoch || effects.Persist.Leader != 1 {
				t.Fatalf("persist %+v, want epoch %d led by 1", effects.Persist, start.epoch)
			}
			if effects.Elected == nil || effects.Elected.Epoch != start.epoch || core.Role() != Leader {
				t.Fatalf("elected %+v in role %v", effects.Elected, core.Role())
			}
			if again := core.Tick(time.Time{}); again.Persist != nil || again.Elected != nil {
				t.Fatalf("a leader elected itself again: %+v", again)
			}
		})
	}
}

func TestNoElectionWhereThisReplicaIsNotTheOnlyVoter(t *testing.T) {
	for name, voters := range map[string]VoterSet{
		"several":         NewVoterSet(voter(1), voter(2)),
		"another":         NewVoterSet(voter(2)),
		"other directory": NewVoterSet(Voter{ReplicaKey: ReplicaKey{ID: 1, Directory: protocol.UUID{9}}}),
		"none":            nil,
	} {
		core := New(local, voters, ElectionState{}, Log{})
		if effects := core.Tick(time.Time{}); effects.Elected != nil || core.Role() != Unattached {
			t.Errorf("%s: elected itself", name)
		}
	}
}

func TestHighWatermarkFollowsDurableEndOfTheOwnEpoch(t *testing.T) {
	core := New(local, NewVoterSet(voter(1)), ElectionState{Epoch: 1, Leader: 1}, Log{End: 5, Epoch: 1})
	core.Tick(time.Time{})
	for _, step := range []struct{ end, durable, want protocol.Offset }{
		{6, 5, protocol.NoOffset}, // the leader change is not durable: nothing of the epoch is committed
		{6, 6, 6},
		{9, 6, protocol.NoOffset},
		{9, 9, 9},
	} {
		if got := core.Appended(step.end, step.durable).HighWatermark; got != step.want {
			t.Fatalf("appended %d durable %d: high watermark %d, want %d", step.end, step.durable, got, step.want)
		}
	}
}

func TestHighWatermarkNeedsAMajority(t *testing.T) {
	core := New(local, NewVoterSet(voter(1)), ElectionState{}, Log{})
	core.Tick(time.Time{})
	core.Appended(1, 1)
	core.VotersAppended(1, NewVoterSet(voter(1), voter(2), voter(3)))
	if got := core.Appended(4, 4).HighWatermark; got != protocol.NoOffset {
		t.Fatalf("one of three moved the high watermark to %d", got)
	}
	if got := core.Acknowledged(voter(4).ReplicaKey, 4).HighWatermark; got != protocol.NoOffset {
		t.Fatalf("an observer moved the high watermark to %d", got)
	}
	if got := core.Acknowledged(voter(2).ReplicaKey, 3).HighWatermark; got != 3 {
		t.Fatalf("high watermark %d, want 3", got)
	}
	if got := core.Acknowledged(voter(3).ReplicaKey, 4).HighWatermark; got != 4 {
		t.Fatalf("high watermark %d, want 4", got)
	}
}

func TestTruncationUndoesVoters(t *testing.T) {
	core := New(local, NewVoterSet(voter(1)), ElectionState{}, Log{End: 10})
	core.VotersAppended(7, NewVoterSet(voter(1), voter(2)))
	core.Truncated(7, 0)
	if !core.Voters().OnlyVoter(local) {
		t.Fatalf("voters %v after truncation", core.Voters())
	}
	core.Truncated(0, 0)
	if !core.Voters().OnlyVoter(local) {
		t.Fatal("truncation removed the voters that the log starts from")
	}
}

func TestResignedDoesNotLeadOn(t *testing.T) {
	core := New(local, NewVoterSet(voter(1)), ElectionState{}, Log{})
	core.Tick(time.Time{})
	core.Resign()
	if core.Tick(time.Time{}).Elected != nil || core.Appended(1, 1).HighWatermark != protocol.NoOffset {
		t.Fatal("a resigned leader went on")
	}
}
