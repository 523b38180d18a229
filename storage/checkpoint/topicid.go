package checkpoint

import (
	"fmt"
	"strings"

	"ottla/protocol"
)

// ParseTopicID reads the topic id out of partition.metadata.
func ParseTopicID(data []byte) (protocol.TopicID, error) {
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

// FormatTopicID gives the bytes of partition.metadata (PartitionMetadataFile.java).
func FormatTopicID(id protocol.TopicID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", id)
}
