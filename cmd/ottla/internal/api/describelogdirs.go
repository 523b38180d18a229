package api

import (
	"path"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// describeLogDirs tells what lies in the log directories of this broker, and how
// much room there is. A directory that failed is told with its error only. The
// offset lag is that of a replica on its way to another directory, told beside the
// one that it is to replace: no log here is behind its own high watermark.
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
	logs := map[protocol.DirectoryID][]dirLog{}
	for _, l := range c.Store.Logs() {
		tp := l.TopicPartition()
		if dir, ok := c.Store.DirectoryOf(tp); ok && (wanted == nil || wanted[tp]) {
			logs[dir] = append(logs[dir], dirLog{partition: tp, sizeBytes: l.Size()})
		}
	}
	for _, future := range c.Store.Futures() {
		if tp := future.Partition; wanted == nil || wanted[tp] {
			one := dirLog{partition: tp, sizeBytes: future.Log.Size(), offsetLag: -1, future: true}
			if present := c.Store.Log(tp); present != nil {
				one.offsetLag = int64(present.View().LogEndOffset - future.Log.View().LogEndOffset)
			}
			logs[future.Directory] = append(logs[future.Directory], one)
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

// dirLog is one log of a directory.
type dirLog struct {
	partition protocol.TopicPartition
	sizeBytes int64
	offsetLag int64
	future    bool
}

// logDirTopics sorts logs by topic and partition.
func logDirTopics(logs []dirLog) (topics []kmsg.DescribeLogDirsResponseDirTopic) {
	slices.SortFunc(logs, func(a, b dirLog) int {
		return a.partition.Compare(b.partition)
	})
	for _, l := range logs {
		if n := len(topics); n == 0 || topics[n-1].Topic != l.partition.Topic {
			topics = append(topics, kmsg.DescribeLogDirsResponseDirTopic{Topic: l.partition.Topic})
		}
		part := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		part.Partition, part.Size, part.OffsetLag, part.IsFuture = l.partition.Partition, l.sizeBytes, l.offsetLag, l.future
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, part)
	}
	return topics
}
