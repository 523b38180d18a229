package store

import (
	"ottla/protocol"
	"ottla/storage/vfs"
)

// MetaPropertiesFile is the file that says whose a directory is (MetaProperties.java).
const MetaPropertiesFile = "meta.properties"

// MetaProperties is the content of meta.properties, version 1.
type MetaProperties struct {
	ClusterID   string
	NodeID      protocol.NodeID
	DirectoryID protocol.DirectoryID // zero if the file has none, as before Kafka 3.7
}

// ReadMetaProperties reads the file in a directory. fs.ErrNotExist, wrapped, means that the directory is not
// formatted; *MetaError that the file is damaged or says what a node cannot use.
func ReadMetaProperties(fsys vfs.FS, dir string) (MetaProperties, error) { panic("being written") }

// WriteMetaProperties replaces the file durably.
func WriteMetaProperties(fsys vfs.FS, dir string, m MetaProperties) error { panic("being written") }

// MetaError says that a meta.properties cannot be used.
type MetaError struct {
	File   string
	Reason string // a sentence
}

func (e *MetaError) Error() string { return e.File + ": " + e.Reason }
