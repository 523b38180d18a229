package logdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ottla/protocol"
	"ottla/storage/vfs"
)

const (
	// CleanShutdownFile is there after a clean stop and only then (CleanShutdownFileHandler.java).
	CleanShutdownFile = ".kafka_cleanshutdown"
	// BootIDFile is ours: the boot of the machine under which the directory was last in use. Apache Kafka 4.4.0
	// looks only at directories and at the files it knows in a log directory, so it says nothing about this one.
	BootIDFile = "ottla-boot-id"
	// LockFile keeps a second server out, of either kind.
	LockFile = ".lock"
)

// NoBrokerEpoch stands where no clean stop has left an epoch.
const NoBrokerEpoch protocol.BrokerEpoch = -1

type cleanShutdown struct {
	Version     int                  `json:"version"`
	BrokerEpoch protocol.BrokerEpoch `json:"brokerEpoch"`
}

// Marker is what a directory says of its last stop.
type Marker struct {
	Present     bool                 // there is a file
	Clean       bool                 // and it can be believed
	BrokerEpoch protocol.BrokerEpoch // NoBrokerEpoch unless Clean
}

// ReadMarker reads the clean-shutdown marker. One that cannot be parsed is no marker: checking the logs once
// more is cheap, believing a damaged file is not. (Before 3.7 Kafka wrote it empty; that is checked as well.)
func ReadMarker(fsys vfs.FS, dir string) (Marker, error) {
	none := Marker{BrokerEpoch: NoBrokerEpoch}
	data, err := vfs.ReadFile(fsys, path.Join(dir, CleanShutdownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	none.Present = true
	parsed := cleanShutdown{Version: -1, BrokerEpoch: NoBrokerEpoch}
	if json.Unmarshal(data, &parsed) != nil || parsed.Version != 0 {
		return none, nil
	}
	return Marker{Present: true, Clean: true, BrokerEpoch: parsed.BrokerEpoch}, nil
}

// WriteMarker notes a clean stop, durably; the last change of a directory.
func WriteMarker(fsys vfs.FS, dir string, epoch protocol.BrokerEpoch) error {
	data, err := json.Marshal(cleanShutdown{BrokerEpoch: epoch})
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fsys, path.Join(dir, CleanShutdownFile), data)
}

// RemoveDurably removes a file that may be missing, so that no crash brings it back.
func RemoveDurably(fsys vfs.FS, name string) error {
	err := fsys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", name, err)
	}
	return fsys.SyncDir(path.Dir(name))
}

// ReadBootID gives the boot id under which the directory was last in use, or "".
func ReadBootID(fsys vfs.FS, dir string) (string, error) {
	data, err := vfs.ReadFile(fsys, path.Join(dir, BootIDFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// WriteBootID says durably under which boot the directory is in use.
func WriteBootID(fsys vfs.FS, dir, id string) error {
	return vfs.WriteFileAtomic(fsys, path.Join(dir, BootIDFile), []byte(id))
}
