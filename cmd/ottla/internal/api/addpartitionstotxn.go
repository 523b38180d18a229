package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/controller/txn"
	"ottla/protocol"
)

// addPartitionsToTxn makes partitions part of a producer's transaction. Producers
// of transactions v1 send it themselves; the later versions come from brokers,
// which add or verify what producers write to (KIP-890), for several at once.
func addPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest) {
	if c.version >= firstBetweenBrokers {
		if !c.mayCluster(kmsg.ACLOperationClusterAction) {
			resp := kmsg.NewPtrAddPartitionsToTxnResponse()
			resp.ErrorCode = int16(protocol.ClusterAuthorizationFailed)
			c.reply(resp)
			return
		}
		c.addForBroker(req)
		return
	}
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch = req.TransactionalID, req.ProducerID, req.ProducerEpoch
	for _, topic := range req.Topics {
		one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic(topic))
	}
	c.addToOne(&one, func(result kmsg.AddPartitionsToTxnResponseTransaction) {
		resp := kmsg.NewPtrAddPartitionsToTxnResponse()
		for _, topic := range result.Topics {
			of := kmsg.AddPartitionsToTxnResponseTopic{Topic: topic.Topic}
			for _, p := range topic.Partitions {
				of.Partitions = append(of.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			resp.Topics = append(resp.Topics, of)
		}
		c.reply(resp)
	})
}

// addForBroker serves several transactions at once.
func (c *call) addForBroker(req *kmsg.AddPartitionsToTxnRequest) {
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	resp.Transactions = make([]kmsg.AddPartitionsToTxnResponseTransaction, len(req.Transactions))
	under := waitFor(len(req.Transactions), func() { c.reply(resp) })
	for i := range req.Transactions {
		c.addToOne(&req.Transactions[i], func(result kmsg.AddPartitionsToTxnResponseTransaction) {
			resp.Transactions[i] = result
			under.done()
		})
	}
	under.done()
}

// addToOne adds to one transaction, or verifies what is in it. One partition that
// cannot be added keeps the others from being added.
func (c *call) addToOne(one *kmsg.AddPartitionsToTxnRequestTransaction, done func(kmsg.AddPartitionsToTxnResponseTransaction)) {
	all := func(code protocol.ErrorCode) {
		done(addResult(one, func(protocol.TopicPartition) protocol.ErrorCode { return code }))
	}
	if c.version < firstBetweenBrokers && !c.mayTransact(&one.TransactionalID) {
		all(protocol.TransactionalIDAuthorizationFailed)
		return
	}
	image := c.Image()
	var partitions []protocol.TopicPartition
	codes, bad := map[protocol.TopicPartition]protocol.ErrorCode{}, false
	for _, topic := range one.Topics {
		for _, n := range topic.Partitions {
			tp := protocol.TopicPartition{Topic: topic.Topic, Partition: n}
			partitions = append(partitions, tp)
			codes[tp] = c.checkAdd(image, tp)
			bad = bad || codes[tp] != protocol.None
		}
	}
	switch {
	case bad:
		done(addResult(one, func(tp protocol.TopicPartition) protocol.ErrorCode {
			if codes[tp] == protocol.None {
				return protocol.OperationNotAttempted
			}
			return codes[tp]
		}))
	case one.TransactionalID == "":
		all(protocol.InvalidRequest)
	case one.VerifyOnly:
		c.verifyOne(one, partitions, done)
	default:
		request := txn.AddPartitions{
			TransactionalID: one.TransactionalID, Producer: producerOf(one.ProducerID, one.ProducerEpoch), Partitions: partitions, Version: txn.Version0,
		}
		if c.version >= firstBetweenBrokers {
			request.Version = txn.Version2
		}
		c.askTransaction(one.TransactionalID, request, func(_ any, err error) {
			all(protocol.ErrorCode(c.fencedCode(err, addKnowsFencedFrom)))
		})
	}
}

func (c *call) verifyOne(one *kmsg.AddPartitionsToTxnRequestTransaction, partitions []protocol.TopicPartition, done func(kmsg.AddPartitionsToTxnResponseTransaction)) {
	request := txn.Verify{TransactionalID: one.TransactionalID, Producer: producerOf(one.ProducerID, one.ProducerEpoch), Partitions: partitions}
	c.askTransaction(one.TransactionalID, request, func(reply any, err error) {
		verified := map[protocol.TopicPartition]bool{}
		if err == nil {
			for i, in := range reply.(txn.Verified) {
				verified[partitions[i]] = in
			}
		}
		done(addResult(one, func(tp protocol.TopicPartition) protocol.ErrorCode {
			if err == nil && !verified[tp] {
				return protocol.TransactionAbortable
			}
			return protocol.CodeOf(err)
		}))
	})
}

// checkAdd tells why a partition cannot be part of a transaction. To Kafka's own
// topics only brokers add.
func (c *call) checkAdd(image *metadata.Image, tp protocol.TopicPartition) protocol.ErrorCode {
	switch fromClient := c.version < firstBetweenBrokers; {
	case fromClient && (protocol.IsInternalTopic(tp.Topic) || !c.mayTopic(kmsg.ACLOperationWrite, tp.Topic)):
		return protocol.TopicAuthorizationFailed
	case image.Partition(tp) == nil:
		return protocol.UnknownTopicOrPartition
	}
	return protocol.None
}

func addResult(one *kmsg.AddPartitionsToTxnRequestTransaction, code func(protocol.TopicPartition) protocol.ErrorCode) kmsg.AddPartitionsToTxnResponseTransaction {
	result := kmsg.NewAddPartitionsToTxnResponseTransaction()
	result.TransactionalID = one.TransactionalID
	for _, topic := range one.Topics {
		of := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: topic.Topic}
		for _, n := range topic.Partitions {
			of.Partitions = append(of.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{
				Partition: n, ErrorCode: int16(code(protocol.TopicPartition{Topic: topic.Topic, Partition: n})),
			})
		}
		result.Topics = append(result.Topics, of)
	}
	return result
}
