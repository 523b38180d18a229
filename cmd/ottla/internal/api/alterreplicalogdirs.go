package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// alterReplicaLogDirs begins to move replicas of this broker between its log
// directories (KIP-113), and answers when the moves have begun. Of a partition that
// is named twice the last directory counts, as in Apache Kafka.
func alterReplicaLogDirs(c *call, req *kmsg.AlterReplicaLogDirsRequest) {
	allowed := c.mayCluster(kmsg.ACLOperationAlter)
	c.reply(answerMoves(req, func(tp protocol.TopicPartition, dir string) error {
		if !allowed {
			return protocol.ClusterAuthorizationFailed.Err()
		}
		return c.Replicas.Move(c.now, tp, dir)
	}))
}

// answerMoves asks outcome for each partition of a request, once, in order.
func answerMoves(req *kmsg.AlterReplicaLogDirsRequest, outcome func(tp protocol.TopicPartition, dir string) error) *kmsg.AlterReplicaLogDirsResponse {
	var order []protocol.TopicPartition
	wanted := map[protocol.TopicPartition]string{}
	for i := range req.Dirs {
		dir := &req.Dirs[i]
		for j := range dir.Topics {
			for _, n := range dir.Topics[j].Partitions {
				tp := protocol.TopicPartition{Topic: dir.Topics[j].Topic, Partition: n}
				if _, twice := wanted[tp]; !twice {
					order = append(order, tp)
				}
				wanted[tp] = dir.Dir
			}
		}
	}
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	at := map[string]int{}
	for _, tp := range order {
		place, known := at[tp.Topic]
		if !known {
			place = len(resp.Topics)
			at[tp.Topic] = place
			topic := kmsg.NewAlterReplicaLogDirsResponseTopic()
			topic.Topic = tp.Topic
			resp.Topics = append(resp.Topics, topic)
		}
		part := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
		part.Partition, part.ErrorCode = tp.Partition, int16(protocol.CodeOf(outcome(tp, wanted[tp])))
		resp.Topics[place].Partitions = append(resp.Topics[place].Partitions, part)
	}
	return resp
}
