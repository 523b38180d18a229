package machine

import (
	"time"

	"ottla/protocol"
)

// Record is one record of the machine's log. A nil Key or Value is null.
type Record struct {
	Key, Value []byte
}

// Result is what a machine decides.
type Result struct {
	Records []Record // appended as one atomic unit, unless Divisible; none: nothing durable changes
	Reply   any      // held until Records are committed; Parked: nobody is answered yet
	Effects []any    // for the shell, held likewise; each shell names the kinds it knows
	// Divisible says that Records may be many and need not be atomic: the shell
	// may append them as several units, and any prefix of them is a state that
	// the machine can go on from.
	Divisible bool
	// Transaction, if not nil, says that Records are written in a producer's
	// transaction. They are applied when the log has taken them (see
	// shard.Transactional), so the machine must not have changed anything for them;
	// if the log refuses the producer, its error is the answer. There are records,
	// a reply and no effects.
	Transaction *Transaction
}

// Transaction is a producer's, on the partition of the machine's log.
type Transaction struct {
	ProducerID    protocol.ProducerID
	ProducerEpoch protocol.ProducerEpoch
	Guard         uint64 // of the verification that went before (log.Guard); 0: none
	Version       int8   // how the client works: 2, or less
}

// Token names a parked request within one machine.
type Token uint64

// Parked is the Reply of a request that is answered later, by a Respond.
type Parked struct{ Token Token }

// Respond is an effect: the answer to the request that was parked as Token.
type Respond struct {
	Token Token
	Reply any
}

// Turn is when and where a decision is made.
type Turn struct {
	Now  time.Time
	Next protocol.Offset // what the first record of the Result would get
}

// Machine is a replicated state machine. See the package comment for the order
// of calls; one caller at a time.
type Machine interface {
	// Restore forgets everything and takes over a snapshot that covers every
	// offset below end. No records and end 0 is the empty state.
	Restore(end protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []Record) error

	// Apply changes the durable state by consecutive records: records[i] has
	// offset base+i.
	Apply(base protocol.Offset, epoch protocol.LeaderEpoch, timestampMs int64, records []Record) error

	// Committed says that every offset below end is committed.
	Committed(end protocol.Offset)

	// Activate makes this machine the only writer, in epoch: it builds its
	// volatile state anew. The result is handled like that of Handle.
	Activate(turn Turn, epoch protocol.LeaderEpoch) (Result, error)

	// Resign ends that: Handle and Tick are not called until the next Activate.
	Resign()

	// Handle decides one request. An error (as a rule a *protocol.Error) is the
	// answer to a request that was not understood; it changes nothing.
	Handle(turn Turn, request any) (Result, error)

	// Tick does what time demands. NextDeadline tells when, zero for never.
	Tick(turn Turn) (Result, error)
	NextDeadline() time.Time
}
