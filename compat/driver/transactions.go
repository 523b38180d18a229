package driver

import (
	"context"

	"ottla/compat/suite"
)

// Transact produces in transactions:
// {"op":"transact","topic","transactional_id","timeout_ms","transactions":[{"records":[…],"end":"commit"}]}; its progress is how many
// were begun, when the last one lingers.
func (c *Client) Transact(ctx context.Context, o suite.TransactOptions, transactions []suite.Transaction, stop <-chan struct{}) ([][]suite.Ack, error) {
	var acks [][]suite.Ack
	err := c.process.call(ctx, "transact", c.args(o, "transactions", transactions), &acks, o.OnOpen, stop)
	return acks, err
}

// CopyInTransactions copies from topic to topic until stop is closed: {"op":"copy","group","from","to","transactional_id",…} is
// answered by {"records","commits","aborts"}; its progress is how many records are copied for good.
func (c *Client) CopyInTransactions(ctx context.Context, o suite.CopyOptions, stop <-chan struct{}) (suite.Copied, error) {
	var done suite.Copied
	err := c.process.call(ctx, "copy", c.args(o), &done, o.OnCopied, stop)
	return done, err
}

// StartProgram starts any other program that takes the drivers' commands; its standard error goes to a file in dir.
func StartProgram(name, dir string, argv ...string) (*Process, error) {
	return start(name, dir, argv...)
}
