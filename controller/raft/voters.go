package raft

import (
	"slices"

	"ottla/protocol"
)

// ReplicaKey names a replica of the metadata log: the node, and the directory
// that holds the log (zero with static voters, KIP-853).
type ReplicaKey struct {
	ID        protocol.NodeID
	Directory protocol.DirectoryID
}

// Endpoint is where a voter listens for the quorum's requests.
type Endpoint struct {
	Name string
	Host string
	Port uint16
}

// Voter is one member of a voter set.
type Voter struct {
	ReplicaKey
	Endpoints                        []Endpoint
	MinKRaftVersion, MaxKRaftVersion int16
}

// VoterSet is the voters by ascending id. It is never changed in place.
type VoterSet []Voter

// NewVoterSet sorts voters into a set.
func NewVoterSet(voters ...Voter) VoterSet {
	set := slices.Clone(VoterSet(voters))
	slices.SortFunc(set, func(a, b Voter) int { return int(a.ID) - int(b.ID) })
	return set
}

// Has tells whether key votes. A zero directory on either side matches any, as
// with static voters.
func (s VoterSet) Has(key ReplicaKey) bool {
	for _, voter := range s {
		if voter.ID == key.ID {
			return voter.Directory == key.Directory || voter.Directory.IsZero() || key.Directory.IsZero()
		}
	}
	return false
}

// OnlyVoter tells whether key alone decides elections.
func (s VoterSet) OnlyVoter(key ReplicaKey) bool { return len(s) == 1 && s.Has(key) }

// votersAt is a voter set and the offset of the record that brought it; -1
// stands for the configuration or the snapshot that the log starts from.
type votersAt struct {
	offset protocol.Offset
	voters VoterSet
}

// voterHistory holds the voter sets that the log brought. A set is effective
// when appended, not when committed, and is undone by truncation (KIP-853).
type voterHistory []votersAt

func (h voterHistory) latest() VoterSet {
	if len(h) == 0 {
		return nil
	}
	return h[len(h)-1].voters
}

func (h *voterHistory) add(offset protocol.Offset, voters VoterSet) {
	*h = append(*h, votersAt{offset, voters})
}

func (h *voterHistory) truncate(end protocol.Offset) {
	kept := *h
	for len(kept) > 1 && kept[len(kept)-1].offset >= end {
		kept = kept[:len(kept)-1]
	}
	*h = kept
}
