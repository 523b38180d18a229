package logdir

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"ottla/protocol"
	"ottla/storage/props"
	"ottla/storage/vfs"
)

// MetaPropertiesFile is the file that says whose a directory is (MetaProperties.java).
const MetaPropertiesFile = "meta.properties"

// The keys of meta.properties, version 1.
const (
	keyVersion     = "version"
	keyClusterID   = "cluster.id"
	keyNodeID      = "node.id"
	keyDirectoryID = "directory.id"

	metaVersion = "1"
)

// reservedDirectoryIDs is how many of the lowest ids Kafka keeps for itself (DirectoryId.java).
const reservedDirectoryIDs = 100

// MetaProperties is the content of meta.properties, version 1.
type MetaProperties struct {
	ClusterID   string
	NodeID      protocol.NodeID
	DirectoryID protocol.DirectoryID // zero if the file has none, as before Kafka 3.7
}

// MetaError says that a meta.properties cannot be used.
type MetaError struct {
	File   string
	Reason string // a sentence
}

func (e *MetaError) Error() string { return e.File + ": " + e.Reason }

// ReadMetaProperties reads the file in a directory. fs.ErrNotExist, wrapped, means that the directory is not
// formatted; *MetaError that the file is damaged or says what a node cannot use.
func ReadMetaProperties(fsys vfs.FS, dir string) (MetaProperties, error) {
	file := path.Join(dir, MetaPropertiesFile)
	text, err := vfs.ReadFile(fsys, file)
	if err != nil {
		return MetaProperties{}, err
	}
	m, err := ParseMetaProperties(text)
	if err != nil {
		return MetaProperties{}, &MetaError{file, err.Error()}
	}
	return m, nil
}

// ParseMetaProperties reads the bytes of the file; errors are sentences.
func ParseMetaProperties(text []byte) (m MetaProperties, err error) {
	p, err := props.Parse(text)
	if err != nil {
		return m, fmt.Errorf("the file is damaged: %w", err)
	}
	switch version, ok := p.Get(keyVersion); {
	case !ok:
		return m, errors.New("the file is damaged: it has no version")
	case version == "0":
		return m, errors.New("the directory is of a broker that used ZooKeeper (version 0), which cannot be opened")
	case version != metaVersion:
		return m, fmt.Errorf("the version is %q, not %s", version, metaVersion)
	}
	if m.ClusterID, _ = p.Get(keyClusterID); m.ClusterID == "" {
		return m, errors.New("the file is damaged: it has no cluster.id")
	}
	text0, _ := p.Get(keyNodeID)
	node, err := strconv.ParseInt(text0, 10, 32)
	if err != nil || node < 0 {
		return m, fmt.Errorf("the file is damaged: node.id is %q, not a number from 0 on", text0)
	}
	m.NodeID = protocol.NodeID(node)
	if id, ok := p.Get(keyDirectoryID); ok {
		if m.DirectoryID, err = protocol.ParseUUID(id); err != nil {
			return m, fmt.Errorf("the file is damaged: directory.id: %w", err)
		}
		if reserved(m.DirectoryID) {
			return m, fmt.Errorf("the file is damaged: directory.id %s is reserved", id)
		}
	}
	return m, nil
}

// reserved tells the ids that name no directory: unassigned, lost, migrating and those kept for the future.
func reserved(id protocol.DirectoryID) bool {
	last := len(id) - 1
	for _, b := range id[:last] {
		if b != 0 {
			return false
		}
	}
	return id[last] < reservedDirectoryIDs
}

// WriteMetaProperties replaces the file durably.
func WriteMetaProperties(fsys vfs.FS, dir string, m MetaProperties) error {
	return vfs.WriteFileAtomic(fsys, path.Join(dir, MetaPropertiesFile), m.text())
}

// PrepareMetaProperties leaves the file durable beside its name; vfs.PutInPlace makes it count.
func PrepareMetaProperties(fsys vfs.FS, dir string, m MetaProperties) error {
	return vfs.WriteTemp(fsys, path.Join(dir, MetaPropertiesFile), m.text())
}

func (m MetaProperties) text() []byte {
	var p props.Properties
	p.Set(keyVersion, metaVersion)
	p.Set(keyClusterID, m.ClusterID)
	p.Set(keyNodeID, strconv.Itoa(int(m.NodeID)))
	if !m.DirectoryID.IsZero() {
		p.Set(keyDirectoryID, m.DirectoryID.String())
	}
	return p.Append(nil)
}
