package history

import "fmt"

// Outcome is what a client knows of its operation.
type Outcome int8

// The outcomes.
const (
	OK      Outcome = iota // certainly took effect
	Fail                   // certainly took none: refused or aborted
	Unknown                // took effect or not, or will
)

func (o Outcome) String() string { return [...]string{"ok", "fail", "unknown"}[o] }

// Record is a value of a partition: sent, or read.
type Record struct {
	Partition int32
	Offset    int64 // NoOffset: nobody said
	Value     int64 // unique among all that are sent
}

// NoOffset is an offset that nobody knows.
const NoOffset = -1

// Kind says which fields of an operation count.
type Kind int8

// The kinds of operations.
const (
	Work   Kind = iota // Sends and Reads: a transaction, or a plain send or poll
	Assign             // the process's place in its partitions was set anew
	Fence              // Producer is what a new instance got: everything older is fenced from End on
	Commit             // Mark: a group's offset was committed
	Fetch              // Mark: a group's committed offset was looked up
	Bound              // Bounds: the ends of a partition, as a server said them
	Own                // Mark: in generation Epoch of the group the process owns the partition
	Final              // Reads: a partition read from its start to its end by a reader of committed data
)

// Producer names who writes: one transactional id or producer, and its epoch. A new
// instance of a producer has a higher epoch, whatever the protocol calls it.
type Producer struct {
	ID    int32 // 0: none
	Epoch int32
}

// Mark is what an operation says of a group.
type Mark struct {
	Group     int32
	Epoch     int32 // generation
	Partition int32
	Offset    int64
}

// Bounds are the ends of a partition at a moment.
type Bounds struct {
	Partition     int32
	Incarnation   int32 // of the server: within one nothing goes back
	LastStable    int64
	HighWatermark int64
}

// Op is one operation of one process. A process has one operation at a time.
type Op struct {
	Kind       Kind
	Process    int32
	Begin, End int64 // nanoseconds of one clock
	Outcome    Outcome

	// Transactional: all Sends stand and fall together.
	Transactional bool
	// Committed: Reads were those of a reader of committed data.
	Committed bool
	// Rebalanced: the partitions were assigned anew within the operation.
	Rebalanced bool
	Producer   Producer
	Sends      []Record // in the order in which they were sent
	Reads      []Record // in the order in which they came
	Mark       Mark
	Bounds     Bounds
}

// Class is a kind of anomaly.
type Class string

// The anomalies.
const (
	InconsistentOffset  Class = "inconsistent-offset"   // one offset, two values
	Duplicate           Class = "duplicate"             // one value, two offsets
	LostWrite           Class = "lost-write"            // committed, before something that was read, and never read
	Unseen              Class = "unseen"                // committed, and not in the final reads
	AbortedRead         Class = "aborted-read"          // G1a: read as committed, and was aborted
	NobodyWrote         Class = "nobody-wrote"          // read, and never sent, or sent elsewhere
	PrecommittedRead    Class = "precommitted-read"     // a transaction reads as committed what it wrote itself
	PollSkip            Class = "poll-skip"             // between two polls something was passed over
	NonmonotonicPoll    Class = "nonmonotonic-poll"     // a poll begins at or before where the last one ended
	IntPollSkip         Class = "int-poll-skip"         // within one operation
	IntNonmonotonicPoll Class = "int-nonmonotonic-poll" // within one operation
	IntNonmonotonicSend Class = "int-nonmonotonic-send" // two sends of one operation landed in reverse
	NonmonotonicSend    Class = "nonmonotonic-send"     // two operations of one producer landed in reverse
	TornTransaction     Class = "torn-transaction"      // a part of a transaction is visible and a part is not
	OffsetRegress       Class = "offset-regress"        // a committed offset went back
	StuckLastStable     Class = "stuck-last-stable"     // held by a transaction for longer than one may last
	BoundRegress        Class = "bound-regress"         // a high watermark or last stable offset went back
	Zombie              Class = "zombie"                // a fenced producer was acknowledged
	TwoOwners           Class = "two-owners"            // two members with one partition in one generation
	Vanished            Class = "vanished"              // read as committed, and gone from the final read
	Circular            Class = "circular-information"  // G1c: committed reads in a circle
)

// Anomaly is one thing that must not be.
type Anomaly struct {
	Class Class
	Text  string
	Op    int // the operation that shows it, -1 if none does
}

func (a Anomaly) String() string { return fmt.Sprintf("%s: %s", a.Class, a.Text) }

// Options say what the history was made under.
type Options struct {
	// Repeats: producers are not idempotent, so that duplicates and reversed sends are allowed.
	Repeats bool
	// StuckAfter is for how long, in nanoseconds, the last stable offset may stand still below the high watermark;
	// 0: not looked at.
	StuckAfter int64
	// Most bounds how many anomalies of one class are told; 0: 10. All are counted.
	Most int
}

// Report is what Check found.
type Report struct {
	Operations int
	Committed  int // transactions
	Aborted    int
	Unknown    int // whose outcome nobody told the client
	Sent       int // records of operations that were OK
	Read       int
	Counts     map[Class]int
	Anomalies  []Anomaly
	Allowed    Allowed
}

// Found tells how many anomalies there are.
func (r *Report) Found() int {
	total := 0
	for _, n := range r.Counts { // only summed
		total += n
	}
	return total
}

func (r *Report) String() string {
	text := fmt.Sprintf("%d operations; transactions: %d committed, %d aborted, %d unknown; %d records sent, %d read; %d anomalies; allowed: %d circles of writes, %d of reads and writes, a lag of %d ms",
		r.Operations, r.Committed, r.Aborted, r.Unknown, r.Sent, r.Read, r.Found(), r.Allowed.WriteCycles, r.Allowed.ReadWriteCycles, r.Allowed.WorstLag/1e6)
	for _, a := range r.Anomalies {
		text += "\n  " + a.String()
	}
	return text
}
