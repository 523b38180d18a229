package txn

import (
	"ottla/protocol"
)

// Producer is a producer's id and epoch.
type Producer struct {
	ID    protocol.ProducerID
	Epoch protocol.ProducerEpoch
}

// NoProducer is what a request has that names none.
var NoProducer = Producer{protocol.NoProducerID, noEpoch}

// The levels of transaction.version, and the way of working that a client has,
// which is v1 or v2 only.
const (
	Version0 int16 = 0 // records without tagged fields
	Version1 int16 = 1 // records with tagged fields
	Version2 int16 = 2 // KIP-890: every end bumps the epoch, the broker adds partitions
)

// Refused is a reply to any request that names a transactional id: the error that
// the client gets once it is certain that no other coordinator knows better.
type Refused struct{ Err error }

// InitProducerID gives a transactional id its producer; the answer is a Producer.
// A transaction that is Ongoing is aborted first: the answer is Aborting, then
// CONCURRENT_TRANSACTIONS until that is done.
type InitProducerID struct {
	TransactionalID string
	TimeoutMs       int32
	// Expected is the producer that the client has had, if it wants to go on after
	// an error (KIP-360); else NoProducer.
	Expected Producer
	// Drawn is a producer id for this request alone, or NoProducerID. The request
	// is to be sent again with one if the answer is NeedsProducerID.
	Drawn protocol.ProducerID
}

// Aborting is the answer of an InitProducerID that has begun to abort the
// transaction of the producer before; the client is told CONCURRENT_TRANSACTIONS.
// It is not an error, for there are records to write.
type Aborting struct{}

// NeedsProducerID is the answer to a request that cannot go on without Drawn.
type NeedsProducerID struct{}

// AddPartitions makes partitions part of the producer's transaction, which it may
// begin. The answer is Done.
type AddPartitions struct {
	TransactionalID string
	Producer        Producer
	Partitions      []protocol.TopicPartition
	Version         int16 // the way of working of who asks: Version0 or Version2
}

// Verify asks whether partitions are part of the producer's transaction. The
// answer is Verified.
type Verify struct {
	TransactionalID string
	Producer        Producer
	Partitions      []protocol.TopicPartition
}

// Verified tells of each partition, in the order of the request, whether it is in
// the transaction.
type Verified []bool

// EndTxn commits or aborts the producer's transaction. The answer is the Producer
// to go on with; of Version0, NoProducer.
type EndTxn struct {
	TransactionalID string
	Producer        Producer
	Commit          bool
	Version         int16 // the way of working of the client: Version0 or Version2
	// Drawn is as with InitProducerID.
	Drawn protocol.ProducerID
}

// MarkersWritten reports that partitions have the marker of an effect
// WriteMarkers, or are gone. The answer is Done.
type MarkersWritten struct {
	TransactionalID  string
	Producer         Producer
	CoordinatorEpoch int32
	Partitions       []protocol.TopicPartition
}

// ProducerIDDrawn brings what an effect DrawProducerID asked for, or NoProducerID
// if there was none to be had. It is an event: the answer is Done, which nobody
// needs.
type ProducerIDDrawn struct{ ID protocol.ProducerID }

// Done is the answer to a request that has nothing more to tell.
type Done struct{}

// Describe asks for one transactional id; the answer is a Described, or
// TRANSACTIONAL_ID_NOT_FOUND.
type Describe struct{ TransactionalID string }

// List asks for all transactional ids; the answer is a []Described by id.
type List struct {
	// Keep, if not nil, chooses among them.
	Keep func(*Described) bool
}

// Described is a transactional id as administrators see it.
type Described struct {
	TransactionalID string
	State           State
	Producer        Producer
	TimeoutMs       int32
	StartMs         int64 // of the transaction, since 1970; -1: none was begun
	// Partitions of the transaction, in order; of one that is being ended, those
	// whose marker is still to be written.
	Partitions []protocol.TopicPartition
}

// WriteMarkers is an effect: the markers of a transaction are to be written to all
// of its partitions, each again and again until it has it or is gone, as
// MarkersWritten reports. It replaces what was asked for the same transactional id
// before.
type WriteMarkers struct {
	TransactionalID  string
	Producer         Producer
	CoordinatorEpoch int32
	Commit           bool
	Version          int16 // of the transaction: Version2 wants the epoch to be a new one
	Partitions       []protocol.TopicPartition
}

// DrawProducerID is an effect: the coordinator needs a producer id for an abort of
// its own; ProducerIDDrawn is to bring one.
type DrawProducerID struct{}
