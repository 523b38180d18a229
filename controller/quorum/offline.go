package quorum

import (
	"fmt"
	"slices"
	"time"

	"ottla/protocol"
)

// Election is what a quorum-state says of the last one, for tools that look at directories.
type Election struct {
	Epoch         protocol.LeaderEpoch
	leader, voted protocol.NodeID
	voters        *[]stateVoter // nil: the file does not name them
}

// ParseElection reads the bytes of a quorum-state. The error says what is wrong with it.
func ParseElection(text []byte) (Election, error) {
	file, err := parseState(text)
	if err != nil {
		return Election{}, err
	}
	if file.VotedDirectory != nil {
		if _, err := protocol.ParseUUID(*file.VotedDirectory); err != nil {
			return Election{}, fmt.Errorf("votedDirectoryId: %w", err)
		}
	}
	return Election{protocol.LeaderEpoch(*file.LeaderEpoch), protocol.NodeID(*file.LeaderID), protocol.NodeID(*file.VotedID), file.CurrentVoters}, nil
}

// Observes tells whether a node does not vote, as far as its file can tell: who is not named as a voter, or follows and has voted for nobody.
func (e Election) Observes(node protocol.NodeID) bool {
	if e.voters != nil {
		return !slices.Contains(*e.voters, stateVoter{int32(node)})
	}
	return e.leader != protocol.NoNode && e.leader != node && e.voted == protocol.NoNode
}

// AssumeCommitted publishes what the log of a quorum that observes holds, without having heard whether all of it is
// committed. It is for who looks at directories and keeps nothing of it; what another node can see comes from the leader only.
func (q *Quorum) AssumeCommitted(now time.Time) error {
	if err := q.deliver(now, q.log.View().LogEndOffset); err != nil {
		return err
	}
	q.image.Store(q.loader.Image())
	return nil
}
