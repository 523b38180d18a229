package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ottla/controller/raft"
	"ottla/protocol"
	"ottla/storage/vfs"
)

const stateFile = "quorum-state"

// stateJSON is the file quorum-state: version 0 where the voters are static
// (kraft.version 0), version 1 since KIP-853. The order of the fields is
// Kafka's.
type stateJSON struct {
	ClusterID      *string      `json:"clusterId,omitempty"`
	LeaderID       int32        `json:"leaderId"`
	LeaderEpoch    int32        `json:"leaderEpoch"`
	VotedID        int32        `json:"votedId"`
	VotedDirectory *string      `json:"votedDirectoryId,omitempty"`
	AppliedOffset  *int64       `json:"appliedOffset,omitempty"`
	CurrentVoters  []stateVoter `json:"currentVoters,omitempty"`
	DataVersion    *int16       `json:"data_version"`
}

type stateVoter struct {
	VoterID int32 `json:"voterId"`
}

// readState reads the file of the metadata partition's directory dir. Without
// the file nothing was ever decided: epoch 0. A file that does not read is an
// error: to guess could mean to vote twice in one epoch.
func readState(fsys vfs.FS, dir string) (raft.ElectionState, error) {
	none := raft.ElectionState{Leader: protocol.NoNode, Voted: raft.ReplicaKey{ID: protocol.NoNode}}
	name := path.Join(dir, stateFile)
	text, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var file stateJSON
	if err := json.Unmarshal(text, &file); err != nil {
		return none, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if file.DataVersion == nil || *file.DataVersion < 0 || *file.DataVersion > 1 {
		return none, fmt.Errorf("%s is damaged or of a later version: data_version is neither 0 nor 1", name)
	}
	if file.LeaderEpoch < 0 || file.LeaderID < -1 || file.VotedID < -1 {
		return none, fmt.Errorf("%s is damaged: it has a negative epoch or id", name)
	}
	state := raft.ElectionState{
		Epoch: protocol.LeaderEpoch(file.LeaderEpoch), Leader: protocol.NodeID(file.LeaderID),
		Voted: raft.ReplicaKey{ID: protocol.NodeID(file.VotedID)},
	}
	if file.VotedDirectory != nil {
		if state.Voted.Directory, err = protocol.ParseUUID(*file.VotedDirectory); err != nil {
			return none, fmt.Errorf("%s is damaged: votedDirectoryId: %w", name, err)
		}
	}
	return state, nil
}

// writeState makes the state durable before it returns.
func writeState(fsys vfs.FS, dir string, state raft.ElectionState, kraftVersion int16, voters raft.VoterSet) error {
	version := min(kraftVersion, 1)
	file := stateJSON{
		LeaderID: int32(state.Leader), LeaderEpoch: int32(state.Epoch), VotedID: int32(state.Voted.ID), DataVersion: &version,
	}
	if version == 0 {
		file.ClusterID, file.AppliedOffset = new(string), new(int64)
		for _, voter := range voters {
			file.CurrentVoters = append(file.CurrentVoters, stateVoter{int32(voter.ID)})
		}
	} else {
		directory := state.Voted.Directory.String()
		file.VotedDirectory = &directory
	}
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fsys, path.Join(dir, stateFile), text)
}
