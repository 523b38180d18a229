package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// describeTransactions describes transactional ids of which this node is the
// coordinator. Topics that the requester may not see are left out.
func describeTransactions(c *call, req *kmsg.DescribeTransactionsRequest) {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	resp.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, len(req.TransactionalIDs))
	under := waitFor(len(req.TransactionalIDs), func() { c.reply(resp) })
	for i, id := range req.TransactionalIDs {
		at := &resp.TransactionStates[i]
		*at = kmsg.NewDescribeTransactionsResponseTransactionState()
		at.TransactionalID = id
		switch {
		case !c.may(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTransactionalId, id):
			at.ErrorCode = int16(protocol.TransactionalIDAuthorizationFailed)
			under.done()
		case id == "":
			at.ErrorCode = int16(protocol.InvalidRequest)
			under.done()
		default:
			c.askTransaction(id, txn.Describe{TransactionalID: id}, func(reply any, err error) {
				at.ErrorCode = int16(protocol.CodeOf(err))
				if err == nil {
					c.describeInto(at, reply.(txn.Described))
				}
				under.done()
			})
		}
	}
	under.done()
}

func (c *call) describeInto(at *kmsg.DescribeTransactionsResponseTransactionState, d txn.Described) {
	at.State, at.TimeoutMillis, at.StartTimestamp = d.State.String(), d.TimeoutMs, d.StartMs
	at.ProducerID, at.ProducerEpoch = int64(d.Producer.ID), int16(d.Producer.Epoch)
	for _, tp := range d.Partitions { // in order
		if last := len(at.Topics) - 1; last < 0 || at.Topics[last].Topic != tp.Topic {
			if !c.mayTopic(kmsg.ACLOperationDescribe, tp.Topic) {
				continue
			}
			at.Topics = append(at.Topics, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: tp.Topic})
		}
		topic := &at.Topics[len(at.Topics)-1]
		topic.Partitions = append(topic.Partitions, tp.Partition)
	}
}
