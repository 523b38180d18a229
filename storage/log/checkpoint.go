package log

import (
	"ottla/protocol"
	"ottla/storage/vfs"
)

// EpochStart says at which offset a leader epoch begins.
type EpochStart struct {
	Epoch protocol.LeaderEpoch
	Start protocol.Offset
}

// ReadCheckpoint reads an offset checkpoint of a log directory ("0\nN\ntopic partition offset" a line). A file
// that does not exist is an empty map; one that cannot be parsed is an error.
func ReadCheckpoint(fs vfs.FS, name string) (map[protocol.TopicPartition]protocol.Offset, error) {
	panic("todo")
}

// WriteCheckpoint replaces an offset checkpoint durably; lines are sorted by topic and partition.
func WriteCheckpoint(fs vfs.FS, name string, offsets map[protocol.TopicPartition]protocol.Offset) error {
	panic("todo")
}

// ReadEpochCheckpoint reads a leader-epoch-checkpoint ("0\nN\nepoch offset" a line).
func ReadEpochCheckpoint(fs vfs.FS, name string) ([]EpochStart, error) { panic("todo") }

// WriteEpochCheckpoint replaces a leader-epoch-checkpoint durably.
func WriteEpochCheckpoint(fs vfs.FS, name string, epochs []EpochStart) error { panic("todo") }
