package driver

import (
	"context"

	"ottla/compat/suite"
)

// Transact produces in transactions:
// {"op":"transact","topic","transactional_id","timeout_ms","transactions":[{"records":[…],"end":"commit"}]}.
func (c *Client) Transact(ctx context.Context, o suite.TransactOptions, transactions []suite.Transaction) ([][]suite.Ack, error) {
	return call[[][]suite.Ack](ctx, c, "transact", c.args(o, "transactions", transactions))
}

// CopyInTransactions copies from topic to topic until stop is closed: {"op":"copy","group","from","to","transactional_id",…} is
// answered by {"records","commits","aborts"}; its progress is how many records are copied for good.
func (c *Client) CopyInTransactions(ctx context.Context, o suite.CopyOptions, stop <-chan struct{}) (suite.Copied, error) {
	var done suite.Copied
	err := c.process.call(ctx, "copy", c.args(o), &done, o.OnCopied, stop)
	return done, err
}
