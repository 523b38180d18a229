package api

import (
	"sync/atomic"

	"ottla/controller/txn"
	"ottla/protocol"
)

// askTransaction gives a request to the coordinator of a transactional id. done is
// called once, guarded.
func (c *call) askTransaction(id string, request any, done func(reply any, err error)) {
	c.Transactions.Submit(c.now, c.TransactionPartition(id), request, func(reply any, err error) {
		if refused, ok := reply.(txn.Refused); ok {
			reply, err = nil, refused.Err
		}
		c.guard(func() { done(reply, err) })
	})
}

// askProducer is askTransaction for requests that may need a new producer id: with
// makes one with the id that was drawn for it. Most need none, and none is drawn.
func (c *call) askProducer(id string, with func(drawn protocol.ProducerID) any, done func(reply any, err error)) {
	c.askTransaction(id, with(protocol.NoProducerID), func(reply any, err error) {
		if _, needed := reply.(txn.NeedsProducerID); err != nil || !needed {
			done(reply, err)
			return
		}
		c.ProducerIDs.Next(func(drawn protocol.ProducerID, err error) {
			c.guard(func() {
				if err != nil {
					done(nil, err)
					return
				}
				c.askTransaction(id, with(drawn), done)
			})
		})
	})
}

// fencedCode is the code of an error for versions before PRODUCER_FENCED was made
// out of INVALID_PRODUCER_EPOCH (KIP-588).
func (c *call) fencedCode(err error, knownFrom int16) int16 {
	code := protocol.CodeOf(err)
	if code == protocol.ProducerFenced && c.version < knownFrom {
		code = protocol.InvalidProducerEpoch
	}
	return int16(code)
}

// The first versions that know PRODUCER_FENCED.
const (
	initKnowsFencedFrom  = 4
	addKnowsFencedFrom   = 2
	endKnowsFencedFrom   = 2
	firstWithEpochBump   = 5 // of EndTxn: clients of transactions v2
	firstBetweenBrokers  = 4 // of AddPartitionsToTxn
	listHasDurationsFrom = 1 // of ListTransactions
	listHasPatternsFrom  = 2
)

// parts counts what a request waits for; the last one answers.
type parts struct {
	left   atomic.Int32
	answer func()
}

// waitFor makes parts of n, and one for whoever starts them.
func waitFor(n int, answer func()) *parts {
	p := &parts{answer: answer}
	p.left.Store(int32(n) + 1)
	return p
}

func (p *parts) done() {
	if p.left.Add(-1) == 0 {
		p.answer()
	}
}
