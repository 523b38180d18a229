package store

import (
	"regexp"

	"ottla/protocol"
)

// nameKind is what a directory in a log directory is, by its name.
type nameKind int8

const (
	namePartition nameKind = iota
	nameDeleted            // renamed for deletion
	nameFuture             // the future home of a partition that moves
	nameAside              // a stray partition: not ours to touch
	nameIgnored            // belongs to someone else who is known
	nameUnknown
)

// remoteCacheDir is where Apache Kafka keeps indexes of remote segments.
const remoteCacheDir = "remote-log-index-cache"

var (
	// Kafka's own patterns (LogFileUtils, UnifiedLog): a topic, a partition, a unique id of hex digits.
	deletedName = regexp.MustCompile(`^\S+-\d+\.[0-9a-f]{32}-delete$`)
	asideName   = regexp.MustCompile(`^\S+-\d+\.[0-9a-f]{32}-stray$`)
	futureName  = regexp.MustCompile(`^(\S+-\d+)\.[0-9a-f]{32}-future$`)
	topicName   = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)
)

// classify tells what a directory is. The metadata partition is ignored in every log directory: it is the
// quorum's.
func classify(name string) (nameKind, protocol.TopicPartition) {
	switch {
	case name == remoteCacheDir || name == metadataPartition.String():
		return nameIgnored, protocol.TopicPartition{}
	case deletedName.MatchString(name):
		return nameDeleted, protocol.TopicPartition{}
	case asideName.MatchString(name):
		return nameAside, protocol.TopicPartition{}
	}
	kind := namePartition
	if parts := futureName.FindStringSubmatch(name); parts != nil {
		kind, name = nameFuture, parts[1]
	}
	tp, err := protocol.ParseTopicPartition(name)
	valid := err == nil && topicName.MatchString(tp.Topic) && tp.Topic != "." && tp.Topic != ".." &&
		tp.Topic != protocol.ClusterMetadataTopic
	if !valid {
		return nameUnknown, protocol.TopicPartition{}
	}
	return kind, tp
}

var metadataPartition = protocol.TopicPartition{Topic: protocol.ClusterMetadataTopic}
