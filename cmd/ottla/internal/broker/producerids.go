package broker

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// maxIDWaiters bounds the requests that wait for a block.
const maxIDWaiters = 10_000

// ProducerIDs gives out producer ids that no other broker gives out: the
// controller allocates them in blocks (KIP-730).
type ProducerIDs struct {
	nodeID protocol.NodeID
	epoch  func() protocol.BrokerEpoch
	send   Send

	mu        sync.Mutex
	next, end int64 // the rest of the current block
	waiting   bool  // a request for a block is on its way
	waiters   []func(protocol.ProducerID, error)
}

// NewProducerIDs starts without a block. epoch is that of the registration.
func NewProducerIDs(nodeID protocol.NodeID, epoch func() protocol.BrokerEpoch, send Send) *ProducerIDs {
	return &ProducerIDs{nodeID: nodeID, epoch: epoch, send: send}
}

// Next calls done with an id of its own, at once or when the controller has
// answered. The error is COORDINATOR_LOAD_IN_PROGRESS, which clients retry.
func (p *ProducerIDs) Next(done func(protocol.ProducerID, error)) {
	p.mu.Lock()
	if p.next < p.end {
		id := p.next
		p.next++
		p.mu.Unlock()
		done(protocol.ProducerID(id), nil)
		return
	}
	if len(p.waiters) >= maxIDWaiters {
		p.mu.Unlock()
		done(protocol.NoProducerID, errNoBlock())
		return
	}
	p.waiters = append(p.waiters, done)
	ask := !p.waiting
	p.waiting = true
	p.mu.Unlock()
	if ask {
		p.ask()
	}
}

func errNoBlock() error {
	return protocol.Errorf(protocol.CoordinatorLoadInProgress, "no producer ids could be had from the controller yet")
}

func (p *ProducerIDs) ask() {
	req := kmsg.NewPtrAllocateProducerIDsRequest()
	req.BrokerID, req.BrokerEpoch = int32(p.nodeID), int64(p.epoch())
	p.send(req, p.receive)
}

// receive serves as many waiters as the block has ids and asks again for the
// rest. After a failure all of them are told to come again.
func (p *ProducerIDs) receive(response kmsg.Response, err error) {
	block, ok := response.(*kmsg.AllocateProducerIDsResponse)
	failed := err != nil || !ok || block.ErrorCode != 0
	p.mu.Lock()
	waiters := p.waiters
	if !failed {
		p.next, p.end = block.ProducerIDStart, block.ProducerIDStart+int64(block.ProducerIDLen)
		waiters = waiters[:min(len(waiters), int(block.ProducerIDLen))]
	}
	first := p.next
	if !failed {
		p.next += int64(len(waiters))
	}
	p.waiters = append([]func(protocol.ProducerID, error){}, p.waiters[len(waiters):]...)
	again := len(p.waiters) > 0
	p.waiting = again
	p.mu.Unlock()
	for i, done := range waiters {
		if failed {
			done(protocol.NoProducerID, errNoBlock())
		} else {
			done(protocol.ProducerID(first+int64(i)), nil)
		}
	}
	if again {
		p.ask()
	}
}
