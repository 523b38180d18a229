package quorum

import (
	"bytes"
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
	ClusterID      *string       `json:"clusterId,omitempty"`
	LeaderID       *int32        `json:"leaderId"`
	LeaderEpoch    *int32        `json:"leaderEpoch"`
	VotedID        *int32        `json:"votedId"`
	VotedDirectory *string       `json:"votedDirectoryId,omitempty"`
	AppliedOffset  *int64        `json:"appliedOffset,omitempty"`
	CurrentVoters  *[]stateVoter `json:"currentVoters,omitempty"` // of version 0; empty where none are known
	DataVersion    *int16        `json:"data_version"`
}

type stateVoter struct {
	VoterID int32 `json:"voterId"`
}

// readState reads the file of the metadata partition's directory dir. Without
// the file (known is false) nothing was ever decided, or it was lost. A file that
// does not read is a *DamagedError: to guess could mean to vote twice in one
// epoch.
func readState(fsys vfs.FS, dir string) (state raft.ElectionState, known bool, err error) {
	state = raft.ElectionState{Leader: protocol.NoNode, Voted: raft.ReplicaKey{ID: protocol.NoNode}}
	name := path.Join(dir, stateFile)
	text, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	file, err := parseState(text)
	if err != nil {
		return state, false, &DamagedError{File: name, Reason: err.Error()}
	}
	state.Epoch, state.Leader = protocol.LeaderEpoch(*file.LeaderEpoch), protocol.NodeID(*file.LeaderID)
	state.Voted.ID = protocol.NodeID(*file.VotedID)
	if file.VotedDirectory != nil {
		if state.Voted.Directory, err = protocol.ParseUUID(*file.VotedDirectory); err != nil {
			return state, false, &DamagedError{File: name, Reason: fmt.Sprintf("votedDirectoryId: %v", err)}
		}
	}
	return state, true, nil
}

// parseState demands what each version must have, and nothing else: there is no
// checksum, and a field that is not found must not be taken for zero.
func parseState(text []byte) (stateJSON, error) {
	var file stateJSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return file, err
	}
	if rest := bytes.TrimSpace(text[decoder.InputOffset():]); len(rest) > 0 {
		return file, fmt.Errorf("%d bytes follow the last field", len(rest))
	}
	switch {
	case file.DataVersion == nil || *file.DataVersion < 0 || *file.DataVersion > 1:
		return file, errors.New("data_version is neither 0 nor 1")
	case file.LeaderID == nil || file.LeaderEpoch == nil || file.VotedID == nil:
		return file, errors.New("leaderId, leaderEpoch or votedId is missing")
	case *file.LeaderEpoch < 0 || *file.LeaderID < -1 || *file.VotedID < -1:
		return file, errors.New("it has a negative epoch or id")
	case *file.DataVersion == 0 && (file.ClusterID == nil || file.AppliedOffset == nil || file.VotedDirectory != nil):
		return file, errors.New("the fields are not those of data_version 0")
	case *file.DataVersion == 1 && (file.ClusterID != nil || file.AppliedOffset != nil || file.CurrentVoters != nil || file.VotedDirectory == nil):
		return file, errors.New("the fields are not those of data_version 1")
	}
	return file, nil
}

// writeState makes the state durable before it returns.
func writeState(fsys vfs.FS, dir string, state raft.ElectionState, kraftVersion int16, voters raft.VoterSet) error {
	version := min(kraftVersion, 1)
	file := stateJSON{
		LeaderID: (*int32)(&state.Leader), LeaderEpoch: (*int32)(&state.Epoch), VotedID: (*int32)(&state.Voted.ID), DataVersion: &version,
	}
	if version == 0 {
		file.ClusterID, file.AppliedOffset = new(string), new(int64)
		file.CurrentVoters = &[]stateVoter{}
		for _, voter := range voters {
			*file.CurrentVoters = append(*file.CurrentVoters, stateVoter{int32(voter.ID)})
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
