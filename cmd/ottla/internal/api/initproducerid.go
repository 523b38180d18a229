package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// initProducerID gives an idempotent producer an id that no other has, or a
// transactional id its producer, which fences the one before. What an idempotent
// producer says of an id it had is checked for form only, as in Apache Kafka.
func initProducerID(c *call, req *kmsg.InitProducerIDRequest) {
	switch err := checkInitProducerID(c, req); {
	case err != protocol.None:
		c.replyProducer(txn.NoProducer, err.Err())
	case req.TransactionalID == nil:
		c.ProducerIDs.Next(func(id protocol.ProducerID, err error) {
			c.guard(func() { c.replyProducer(txn.Producer{ID: id}, err) })
		})
	default:
		id := *req.TransactionalID
		c.askProducer(id, func(drawn protocol.ProducerID) any {
			return txn.InitProducerID{
				TransactionalID: id, TimeoutMs: req.TransactionTimeoutMillis, Drawn: drawn,
				Expected: producerOf(req.ProducerID, req.ProducerEpoch),
			}
		}, func(reply any, err error) {
			if _, aborting := reply.(txn.Aborting); aborting {
				err = protocol.ConcurrentTransactions.Err()
			}
			producer, _ := reply.(txn.Producer)
			c.replyProducer(producer, err)
		})
	}
}

func producerOf(id int64, epoch int16) txn.Producer {
	return txn.Producer{ID: protocol.ProducerID(id), Epoch: protocol.ProducerEpoch(epoch)}
}

func checkInitProducerID(c *call, req *kmsg.InitProducerIDRequest) protocol.ErrorCode {
	id := req.TransactionalID
	switch {
	case id != nil && !c.mayTransact(id):
		return protocol.TransactionalIDAuthorizationFailed
	case id == nil && !c.mayCluster(kmsg.ACLOperationIdempotentWrite) && !c.mayAny(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic):
		return protocol.ClusterAuthorizationFailed
	case (req.ProducerID == int64(protocol.NoProducerID)) != (req.ProducerEpoch == -1):
		return protocol.InvalidRequest
	case id != nil && *id == "":
		return protocol.InvalidRequest
	case id != nil && c.Transactions == nil:
		return protocol.UnsupportedVersion
	}
	return protocol.None
}

// replyProducer answers with a producer's id and epoch, or with an error.
func (c *call) replyProducer(producer txn.Producer, err error) {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = c.fencedCode(err, initKnowsFencedFrom), int64(producer.ID), int16(producer.Epoch)
	if err != nil {
		resp.ProducerID, resp.ProducerEpoch = int64(protocol.NoProducerID), -1
	}
	c.reply(resp)
}
