package log

import (
	"path"

	"ottla/protocol"
	"ottla/storage/checkpoint"
	"ottla/storage/vfs"
)

// MetadataFile is the name of the file that says which topic a directory belongs to (PartitionMetadataFile.java).
const MetadataFile = "partition.metadata"

// TopicID is that of partition.metadata, or zero.
func (l *Log) TopicID() protocol.TopicID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topicID
}

// SetTopicID writes partition.metadata, durably, for a log that has none.
func (l *Log) SetTopicID(id protocol.TopicID) error {
	data := checkpoint.FormatTopicID(id)
	if err := vfs.WriteFileAtomic(l.env.FS, path.Join(l.dir, MetadataFile), data); err != nil {
		return err
	}
	l.mu.Lock()
	l.topicID = id
	l.mu.Unlock()
	return nil
}

// writeTopicID writes partition.metadata in a new directory, which the caller syncs.
func (l *Log) writeTopicID(id protocol.TopicID) error {
	l.topicID = id
	return vfs.ReplaceFile(l.env.FS, path.Join(l.dir, MetadataFile), checkpoint.FormatTopicID(id))
}
