package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// initProducerID gives an idempotent producer an id that no other has. What the
// producer says of an id it had is checked for form only, as in Apache Kafka.
// Transactional ids are not served yet.
func initProducerID(c *call, req *kmsg.InitProducerIDRequest) {
	if err := checkInitProducerID(c, req); err != protocol.None {
		c.replyProducerID(protocol.NoProducerID, err)
		return
	}
	c.ProducerIDs.Next(func(id protocol.ProducerID, err error) {
		c.guard(func() { c.replyProducerID(id, protocol.CodeOf(err)) })
	})
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
	case id != nil:
		return protocol.UnsupportedVersion
	}
	return protocol.None
}

// replyProducerID answers with a new id at epoch 0, or with an error.
func (c *call) replyProducerID(id protocol.ProducerID, code protocol.ErrorCode) {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = int16(code), int64(id), 0
	if code != protocol.None {
		resp.ProducerID, resp.ProducerEpoch = int64(protocol.NoProducerID), -1
	}
	c.reply(resp)
}
