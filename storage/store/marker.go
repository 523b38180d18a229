package store

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
	// cleanShutdownFile is there after a clean stop and only then (CleanShutdownFileHandler.java).
	cleanShutdownFile = ".kafka_cleanshutdown"
	// bootIDFile is ours: the boot of the machine under which the directory was last in use. Apache Kafka 4.4.0
	// looks only at directories and at the files it knows in a log directory, so it says nothing about this one.
	bootIDFile = "ottla-boot-id"
	// lockFile keeps a second server out, of either kind.
	lockFile = ".lock"
)

// noBrokerEpoch stands where no clean stop has left an epoch.
const noBrokerEpoch protocol.BrokerEpoch = -1

type cleanShutdown struct {
	Version     int                  `json:"version"`
	BrokerEpoch protocol.BrokerEpoch `json:"brokerEpoch"`
}

// marker is what a directory says of its last stop.
type marker struct {
	present     bool // there is a file
	clean       bool // and it can be believed
	brokerEpoch protocol.BrokerEpoch
}

// readMarker reads the clean-shutdown marker. One that cannot be parsed is no marker: checking the logs once
// more is cheap, believing a damaged file is not. (Before 3.7 Kafka wrote it empty; that is checked as well.)
func readMarker(fsys vfs.FS, dir string) (marker, error) {
	none := marker{brokerEpoch: noBrokerEpoch}
	data, err := vfs.ReadFile(fsys, path.Join(dir, cleanShutdownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	none.present = true
	parsed := cleanShutdown{Version: -1, BrokerEpoch: noBrokerEpoch}
	if json.Unmarshal(data, &parsed) != nil || parsed.Version != 0 {
		return none, nil
	}
	return marker{present: true, clean: true, brokerEpoch: parsed.BrokerEpoch}, nil
}

func writeMarker(fsys vfs.FS, dir string, epoch protocol.BrokerEpoch) error {
	data, err := json.Marshal(cleanShutdown{BrokerEpoch: epoch})
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fsys, path.Join(dir, cleanShutdownFile), data)
}

// removeDurably removes a file that may be missing, so that no crash brings it back.
func removeDurably(fsys vfs.FS, name string) error {
	err := fsys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", name, err)
	}
	return fsys.SyncDir(path.Dir(name))
}

// readBootID gives the boot id under which the directory was last in use, or "".
func readBootID(fsys vfs.FS, dir string) (string, error) {
	data, err := vfs.ReadFile(fsys, path.Join(dir, bootIDFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

func writeBootID(fsys vfs.FS, dir, id string) error {
	return vfs.WriteFileAtomic(fsys, path.Join(dir, bootIDFile), []byte(id))
}
