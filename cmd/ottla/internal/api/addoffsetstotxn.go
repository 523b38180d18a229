package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// addOffsetsToTxn makes the partition of __consumer_offsets that holds a group part
// of a producer's transaction, whose offsets it will commit.
func addOffsetsToTxn(c *call, req *kmsg.AddOffsetsToTxnRequest) {
	answer := func(err error) {
		resp := kmsg.NewPtrAddOffsetsToTxnResponse()
		resp.ErrorCode = c.fencedCode(err, addKnowsFencedFrom)
		c.reply(resp)
	}
	switch {
	case !c.mayTransact(&req.TransactionalID):
		answer(protocol.TransactionalIDAuthorizationFailed.Err())
	case !c.mayGroup(kmsg.ACLOperationRead, req.Group):
		answer(protocol.GroupAuthorizationFailed.Err())
	case req.TransactionalID == "":
		answer(protocol.InvalidRequest.Err())
	default:
		partition := protocol.TopicPartition{Topic: protocol.ConsumerOffsetsTopic, Partition: c.groupPartition(req.Group)}
		c.askTransaction(req.TransactionalID, txn.AddPartitions{
			TransactionalID: req.TransactionalID, Producer: producerOf(req.ProducerID, req.ProducerEpoch),
			Partitions: []protocol.TopicPartition{partition}, Version: txn.Version0,
		}, func(_ any, err error) { answer(err) })
	}
}
