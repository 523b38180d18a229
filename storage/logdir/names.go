package logdir

import (
	"fmt"
	"regexp"

	"ottla/protocol"
)

// Kind is what a directory in a log directory is, by its name.
type Kind int8

// The kinds.
const (
	KindPartition Kind = iota
	KindDeleted        // renamed for deletion
	KindFuture         // the future home of a partition that moves
	KindAside          // a stray partition: not ours to touch
	KindIgnored        // belongs to someone else who is known
	KindUnknown
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

// Classify tells what a directory is. The metadata partition is ignored in every log directory: it is the
// quorum's.
func Classify(name string) (Kind, protocol.TopicPartition) {
	switch {
	case name == remoteCacheDir || name == MetadataPartition.String():
		return KindIgnored, protocol.TopicPartition{}
	case deletedName.MatchString(name):
		return KindDeleted, protocol.TopicPartition{}
	case asideName.MatchString(name):
		return KindAside, protocol.TopicPartition{}
	}
	kind := KindPartition
	if parts := futureName.FindStringSubmatch(name); parts != nil {
		kind, name = KindFuture, parts[1]
	}
	tp, err := protocol.ParseTopicPartition(name)
	valid := err == nil && topicName.MatchString(tp.Topic) && tp.Topic != "." && tp.Topic != ".." &&
		tp.Topic != protocol.ClusterMetadataTopic
	if !valid {
		return KindUnknown, protocol.TopicPartition{}
	}
	return kind, tp
}

// ValidTopic tells whether a name may be a topic's, as far as the directories care.
func ValidTopic(name string) bool { return topicName.MatchString(name) }

// MetadataPartition is the partition of the cluster's metadata.
var MetadataPartition = protocol.TopicPartition{Topic: protocol.ClusterMetadataTopic}

// maxName is the longest directory name that file systems take.
const maxName = 255

// AwayName is the name of a directory that is put away: <topic>-<partition>.<32 hex digits><suffix>. A long topic name is cut
// so that the name stays within 255 bytes (LocalLog.logDeleteDirName).
func AwayName(tp protocol.TopicPartition, random func() uint64, suffix string) string {
	tail := fmt.Sprintf("-%d.%016x%016x%s", tp.Partition, random(), random(), suffix)
	return tp.Topic[:min(len(tp.Topic), maxName-len(tail))] + tail
}
