package log

import (
	"fmt"
	"path"
	"strings"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// metadataFile is the name of the file that says which topic a directory belongs to (PartitionMetadataFile.java).
const metadataFile = "partition.metadata"

// ParsePartitionMetadata reads the topic id out of partition.metadata.
func ParsePartitionMetadata(data []byte) (protocol.TopicID, error) {
	lines := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	if len(lines) != 2 {
		return protocol.TopicID{}, fmt.Errorf("partition.metadata has %d lines, not 2", len(lines))
	}
	if version, ok := strings.CutPrefix(lines[0], "version:"); !ok || strings.TrimSpace(version) != "0" {
		return protocol.TopicID{}, fmt.Errorf("partition.metadata begins with %.40q, not with version: 0", lines[0])
	}
	text, ok := strings.CutPrefix(lines[1], "topic_id:")
	if !ok {
		return protocol.TopicID{}, fmt.Errorf("partition.metadata has %.40q where topic_id: should be", lines[1])
	}
	id, err := protocol.ParseUUID(strings.TrimSpace(text))
	if err == nil && id.IsZero() {
		err = fmt.Errorf("partition.metadata has the topic id zero")
	}
	return id, err
}

// TopicID is that of partition.metadata, or zero.
func (l *Log) TopicID() protocol.TopicID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topicID
}

// SetTopicID writes partition.metadata, durably, for a log that has none.
func (l *Log) SetTopicID(id protocol.TopicID) error {
	data := fmt.Appendf(nil, "version: 0\ntopic_id: %s", id)
	if err := vfs.WriteFileAtomic(l.env.FS, path.Join(l.dir, metadataFile), data); err != nil {
		return err
	}
	l.mu.Lock()
	l.topicID = id
	l.mu.Unlock()
	return nil
}
