package suite

import "context"

// How a transaction ends.
const (
	Commit = "commit"
	Abort  = "abort"
	// Linger leaves it open until the client is told to stop; then it is to be committed. It is the last of its producer.
	Linger = "linger"
)

// Transaction is what one transaction holds, and how it ends.
type Transaction struct {
	Records []Record `json:"records"`
	End     string   `json:"end"` // Commit, Abort or Linger
}

// TransactOptions are the settings of one transactional producer. Topic is where the records go; acks are all.
type TransactOptions struct {
	ProduceOptions
	TransactionalID string `json:"transactional_id"`
	TimeoutMs       int    `json:"timeout_ms,omitempty"` // transaction.timeout.ms; 0: the client's default
	// OnOpen is told how many transactions were begun so far, when the last of them lingers and its records are acknowledged.
	OnOpen func(int) `json:"-"`
}

// Transactor is a client that produces in transactions, one after the other by one producer, which begins by asking for its id.
// The acknowledgements are those of each transaction; records of an aborted one may have been acknowledged. That a transaction
// cannot be ended as it should is an error. A nil stop is never closed.
type Transactor interface {
	Transact(ctx context.Context, opts TransactOptions, transactions []Transaction, stop <-chan struct{}) ([][]Ack, error)
}

// CopyOptions say how to copy records from one topic to another, each to the partition that it came from, as a member of a group
// that reads with read_committed. What was read, and that it was read, are of one transaction. The first record that the group has
// not committed comes first; a new group begins at the earliest.
type CopyOptions struct {
	Group           string `json:"group"`
	From            string `json:"from"`
	To              string `json:"to"`
	TransactionalID string `json:"transactional_id"`
	SessionMs       int    `json:"session_ms"`
	TimeoutMs       int    `json:"timeout_ms,omitempty"`
	// Batch is how many records a transaction holds at most, 100 by default. AbortEvery lets each transaction of that number be
	// aborted, after which its records are read again; 0 never.
	Batch      int `json:"batch,omitempty"`
	AbortEvery int `json:"abort_every,omitempty"`
	// Die ends it like a crash once so many records were copied for good, within the next transaction: its records are sent, and
	// where the library lets it, its offsets too; it is not ended, and the group is not told. 0: it lives.
	Die int `json:"die,omitempty"`
	// OnCopied is told how many records were copied by transactions that are committed.
	OnCopied func(int) `json:"-"`
}

// Copied is what a copy loop has done.
type Copied struct {
	Records int `json:"records"`
	Commits int `json:"commits"`
	Aborts  int `json:"aborts"`
}

// Copier is a client that copies in transactions until it dies or is told to stop. What it cannot go on after is an error: whoever
// runs it starts another, with the same transactional id.
type Copier interface {
	CopyInTransactions(ctx context.Context, opts CopyOptions, stop <-chan struct{}) (Copied, error)
}
