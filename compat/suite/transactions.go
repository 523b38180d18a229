package suite

import "context"

// How a transaction ends.
const (
	Commit = "commit"
	Abort  = "abort"
)

// Transaction is what one transaction holds, and how it ends.
type Transaction struct {
	Records []Record `json:"records"`
	End     string   `json:"end"` // Commit or Abort
}

// TransactOptions are the settings of one transactional producer. Topic is where the records go; acks are all.
type TransactOptions struct {
	ProduceOptions
	TransactionalID string `json:"transactional_id"`
	TimeoutMs       int    `json:"timeout_ms,omitempty"` // transaction.timeout.ms; 0: the client's default
}

// Transactor is a client that produces in transactions, one after the other by one producer, which begins by asking for its id.
// The acknowledgements are those of each transaction; records of an aborted one may have been acknowledged.
type Transactor interface {
	Transact(ctx context.Context, opts TransactOptions, transactions []Transaction) ([][]Ack, error)
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
	// OnCopied is told how many records were copied by transactions that are committed.
	OnCopied func(int) `json:"-"`
}

// Copied is what a copy loop has done.
type Copied struct {
	Records int `json:"records"`
	Commits int `json:"commits"`
	Aborts  int `json:"aborts"`
}

// Copier is a client that copies in transactions until told to stop.
type Copier interface {
	CopyInTransactions(ctx context.Context, opts CopyOptions, stop <-chan struct{}) (Copied, error)
}
