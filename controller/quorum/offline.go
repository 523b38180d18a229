package quorum

import (
	"fmt"

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
