package api

import (
	"path"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/storage/log"
)

// describeLogDirs tells what lies in the log directories of this broker, and how
// much room there is. A directory that failed is told with its error only. The
// offset lag is that of a replica on its way to another directory: no log here is
// behind its own high watermark.
func describeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest) {
	if !c.mayCluster(kmsg.ACLOperationDescribe) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	var wanted map[protocol.TopicPartition]bool // nil: all
	if req.Topics != nil {
		wanted = map[protocol.TopicPartition]bool{}
	}
	for _, topic := range req.Topics {
		for _, n := range topic.Partitions {
			wanted[protocol.TopicPartition{Topic: topic.Topic, Partition: n}] = true
		}
	}
	logs := map[protocol.DirectoryID][]*log.Log{}
	for _, l := range c.Store.Logs() {
		tp := l.TopicPartition()
		if dir, ok := c.Store.DirectoryOf(tp); ok && (wanted == nil || wanted[tp]) {
			logs[dir] = append(logs[dir], l)
		}
	}
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	for _, directory := range c.Store.Directories() {
		if !c.holdsLogs(directory.Path) {
			continue
		}
		answer := kmsg.NewDescribeLogDirsResponseDir()
		answer.Dir, answer.TotalBytes, answer.UsableBytes = directory.Path, -1, -1
		if directory.Offline != nil {
			answer.ErrorCode = int16(protocol.KafkaStorageError)
		} else {
			answer.Topics = logDirTopics(logs[directory.ID])
			if total, usable, err := c.Store.Usage(directory.ID); err == nil {
				answer.TotalBytes, answer.UsableBytes = total, usable
			}
		}
		resp.Dirs = append(resp.Dirs, answer)
	}
	c.reply(resp)
}

// holdsLogs tells a directory of log.dirs from one for the metadata alone.
func (c *call) holdsLogs(directory string) bool {
	return slices.ContainsFunc(c.Config.LogDirs, func(dir string) bool { return path.Clean(dir) == path.Clean(directory) })
}

// logDirTopics sorts logs by topic and partition.
func logDirTopics(logs []*log.Log) (topics []kmsg.DescribeLogDirsResponseDirTopic) {
	slices.SortFunc(logs, func(a, b *log.Log) int {
		x, y := a.TopicPartition(), b.TopicPartition()
		if by := strings.Compare(x.Topic, y.Topic); by != 0 {
			return by
		}
		return int(x.Partition) - int(y.Partition)
	})
	for _, l := range logs {
		tp := l.TopicPartition()
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, kmsg.DescribeLogDirsResponseDirTopic{Topic: tp.Topic})
		}
		part := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		part.Partition, part.Size = tp.Partition, l.Size()
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, part)
	}
	return topics
}
