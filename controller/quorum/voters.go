package quorum

import (
	"slices"
	"time"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/protocol/record"
)

// controlRecord is any of the control records that this shell writes.
type controlRecord interface{ Encode() (key, value []byte) }

// leaderChange is the first batch of an epoch. Where the log does not hold
// kraft.version and the voter set itself yet, they come with it, as they do
// when this node's endpoints are no longer those in the set.
func (q *Quorum) leaderChange(now time.Time, change raft.LeaderChange) record.Batch {
	options := record.PlainOptions()
	options.Control, options.PartitionLeaderEpoch = true, change.Epoch
	builder := record.NewBuilder(options)
	add := func(control controlRecord) {
		key, value := control.Encode()
		builder.Append(now.UnixMilli(), key, value, nil)
	}
	leader := record.LeaderChange{LeaderID: change.Leader, GrantingVoters: []protocol.NodeID{change.Leader}}
	for _, voter := range change.Voters {
		leader.Voters = append(leader.Voters, voter.ID)
	}
	add(leader)
	if q.kraftVersion == 0 {
		return builder.Build(q.pool)
	}
	base := q.log.View().LogEndOffset
	voters := q.withOwnEndpoints(change.Voters)
	if q.snapshots.votersFromSnapshot {
		add(record.KRaftVersion{KRaftVersion: q.kraftVersion})
	}
	if q.snapshots.votersFromSnapshot || !slices.EqualFunc(voters, change.Voters, sameEndpoints) {
		q.core.VotersAppended(base+protocol.Offset(builder.Count()), voters)
		add(votersToRecord(voters))
	}
	q.snapshots.votersFromSnapshot = false
	return builder.Build(q.pool)
}

func sameEndpoints(a, b raft.Voter) bool { return slices.Equal(a.Endpoints, b.Endpoints) }

func (q *Quorum) withOwnEndpoints(voters raft.VoterSet) raft.VoterSet {
	own := slices.Clone(voters)
	for i := range own {
		if own[i].ID == q.options.Local.ID && len(q.options.Endpoints) > 0 {
			own[i].Endpoints = q.options.Endpoints
		}
	}
	return own
}

func votersFromRecord(control record.Voters) raft.VoterSet {
	var voters []raft.Voter
	for _, v := range control.Voters {
		voter := raft.Voter{
			ReplicaKey:      raft.ReplicaKey{ID: v.ID, Directory: v.DirectoryID},
			MinKRaftVersion: v.MinKRaftVersion, MaxKRaftVersion: v.MaxKRaftVersion,
		}
		for _, e := range v.Endpoints {
			voter.Endpoints = append(voter.Endpoints, raft.Endpoint{Name: e.Name, Host: e.Host, Port: e.Port})
		}
		voters = append(voters, voter)
	}
	return raft.NewVoterSet(voters...)
}

func votersToRecord(voters raft.VoterSet) record.Voters {
	var control record.Voters
	for _, voter := range voters {
		v := record.Voter{
			ID: voter.ID, DirectoryID: voter.Directory,
			MinKRaftVersion: voter.MinKRaftVersion, MaxKRaftVersion: voter.MaxKRaftVersion,
		}
		for _, e := range voter.Endpoints {
			v.Endpoints = append(v.Endpoints, record.VoterEndpoint{Name: e.Name, Host: e.Host, Port: e.Port})
		}
		control.Voters = append(control.Voters, v)
	}
	return control
}
