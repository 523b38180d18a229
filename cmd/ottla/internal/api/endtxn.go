package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// endTxn commits or aborts a producer's transaction. The answer comes when the
// outcome is decided for good; the markers follow.
func endTxn(c *call, req *kmsg.EndTxnRequest) {
	switch {
	case !c.mayTransact(&req.TransactionalID):
		c.replyEnd(txn.NoProducer, protocol.TransactionalIDAuthorizationFailed.Err())
	case req.TransactionalID == "":
		c.replyEnd(txn.NoProducer, protocol.InvalidRequest.Err())
	default:
		version := txn.Version0
		if c.version >= firstWithEpochBump {
			version = txn.Version2
		}
		c.askProducer(req.TransactionalID, func(drawn protocol.ProducerID) any {
			return txn.EndTxn{
				TransactionalID: req.TransactionalID, Producer: producerOf(req.ProducerID, req.ProducerEpoch),
				Commit: req.Commit, Version: version, Drawn: drawn,
			}
		}, func(reply any, err error) {
			producer, ok := reply.(txn.Producer)
			if !ok {
				producer = txn.NoProducer
			}
			c.replyEnd(producer, err)
		})
	}
}

func (c *call) replyEnd(producer txn.Producer, err error) {
	resp := kmsg.NewPtrEndTxnResponse()
	resp.ErrorCode = c.fencedCode(err, endKnowsFencedFrom)
	resp.ProducerID, resp.ProducerEpoch = int64(producer.ID), int16(producer.Epoch)
	c.reply(resp)
}
