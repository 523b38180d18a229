package partition

import (
	"math/rand/v2"
	"testing"
	"time"

	"ottla/protocol"
	"ottla/storage/checkpoint"
)

// history is a log as the leader epoch of each of its records.
type history []protocol.LeaderEpoch

func (h history) epochs() (list []checkpoint.EpochStart) {
	for offset, epoch := range h {
		if offset == 0 || epoch != h[offset-1] {
			list = append(list, checkpoint.EpochStart{Epoch: epoch, Start: protocol.Offset(offset)})
		}
	}
	return list
}

func (h history) end(asked protocol.LeaderEpoch) EpochEnd {
	epoch, end := checkpoint.EpochEnd(h.epochs(), asked, protocol.Offset(len(h)))
	return EpochEnd{epoch, end}
}

// asLeader is end for a leader, whose own epoch is known to have begun.
func (h history) asLeader(asked protocol.LeaderEpoch) EpochEnd {
	list := append(h.epochs(), checkpoint.EpochStart{Epoch: 98, Start: protocol.Offset(len(h))})
	epoch, end := checkpoint.EpochEnd(list, asked, protocol.Offset(len(h)))
	return EpochEnd{epoch, end}
}

// grow writes records in epochs of which is one leader: those whose number modulo two is parity.
func (h history) grow(r *rand.Rand, parity protocol.LeaderEpoch) history {
	epoch := protocol.LeaderEpoch(0)
	if n := len(h); n > 0 {
		epoch = h[n-1] + 1
	}
	for range r.IntN(4) {
		epoch += protocol.LeaderEpoch(r.IntN(3))
		epoch += (epoch + parity) % 2
		for range r.IntN(4) {
			h = append(h, epoch)
		}
		epoch++
	}
	return h
}

// TestTruncationFindsWhereLogsPart: two logs have the same up to somewhere, and then records of epochs that only one of them
// has. However the epochs lie, fetching and truncating end exactly there: nothing that both have is cut (KAFKA-6361,
// KAFKA-7897), and nothing else is left (KAFKA-10706).
func TestTruncationFindsWhereLogsPart(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 11))
		common := history(nil).grow(r, protocol.LeaderEpoch(r.IntN(2)))
		leader := append(history(nil), common...).grow(r, 0)
		follower := append(history(nil), common...).grow(r, 1)
		if n := len(common); n > 0 && r.IntN(3) == 0 {
			leader, follower = leader.goOn(r, n), follower.goOn(r, n)
		}
		want := 0
		for want < min(len(leader), len(follower)) && leader[want] == follower[want] {
			want++
		}
		p := New(Options{NodeID: 1}, 0, Ends{End: protocol.Offset(len(follower))})
		p.Follow(time.Time{}, State{Leader: 2, LeaderEpoch: 99}, Ends{End: protocol.Offset(len(follower))})
		got := follower
		for step := 0; ; step++ {
			if step > len(follower)+1 {
				t.Fatalf("seed %d: %v against %v does not end", seed, follower, leader)
			}
			if len(got) == 0 {
				break
			}
			last := got[len(got)-1]
			found := leader.asLeader(last)
			if found.Epoch == last && found.End >= protocol.Offset(len(got)) {
				break
			}
			got = got[:p.TruncationPoint(found, got.end)]
			p.Truncated(Ends{End: protocol.Offset(len(got))})
		}
		if len(got) != want {
			t.Fatalf("seed %d: %v against %v was cut to %d, not %d", seed, follower, leader, len(got), want)
		}
	}
}

// goOn takes away what came after the common part, and writes on in its last epoch: what one of them has of it the other has
// too, as far as it has it.
func (h history) goOn(r *rand.Rand, common int) history {
	h = h[:common:common]
	for range r.IntN(4) {
		h = append(h, h[common-1])
	}
	return h
}
