package quorum

import (
	"fmt"
	"time"

	"ottla/protocol"
)

// ParseElection reads the bytes of a quorum-state, for tools that look at directories, and gives the epoch of the last
// election. The error says what is wrong with it.
func ParseElection(text []byte) (protocol.LeaderEpoch, error) {
	file, err := parseState(text)
	if err != nil {
		return protocol.NoLeaderEpoch, err
	}
	if file.VotedDirectory != nil {
		if _, err := protocol.ParseUUID(*file.VotedDirectory); err != nil {
			return protocol.NoLeaderEpoch, fmt.Errorf("votedDirectoryId: %w", err)
		}
	}
	return protocol.LeaderEpoch(*file.LeaderEpoch), nil
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
