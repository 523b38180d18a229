package shard

import (
	"ottla/controller/machine"
	"ottla/protocol"
)

// Transactional is a Machine that keeps records of transactions apart until
// their marker comes, as the group coordinator does with offsets that are
// committed in a transaction. What of a log belongs to transactions is handed
// to it by these two, in the order of the log, among the calls of Apply. For
// any other machine such records are skipped, which the log says.
type Transactional interface {
	machine.Machine

	// ApplyTransactional takes consecutive records that a producer wrote in a
	// transaction: records[i] has offset base+i. They take effect at its end.
	ApplyTransactional(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64,
		id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, records []machine.Record) error

	// ApplyMarker takes the marker at offset, which ends the transaction of a
	// producer: committed or aborted.
	ApplyMarker(offset protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64,
		id protocol.ProducerID, producerEpoch protocol.ProducerEpoch, committed bool, coordinatorEpoch int32) error
}
