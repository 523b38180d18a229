package api

import (
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/txn"
	"ottla/protocol"
)

// listTransactions lists the transactional ids of which this node is the
// coordinator, and that the requester may describe. If one partition cannot tell
// yet, there is no list: half of one would look whole.
func listTransactions(c *call, req *kmsg.ListTransactionsRequest) {
	resp := kmsg.NewPtrListTransactionsResponse()
	for _, state := range req.StateFilters {
		if !txn.IsStateName(state) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, state)
		}
	}
	keep, err := c.keepTransactions(req)
	if err != nil {
		resp.ErrorCode = int16(protocol.CodeOf(err))
		c.reply(resp)
		return
	}
	partitions := c.Transactions.Partitions()
	listed := make([][]txn.Described, len(partitions))
	failed := make([]error, len(partitions))
	under := waitFor(len(partitions), func() {
		for i, err := range failed {
			switch code := protocol.CodeOf(err); code {
			case protocol.None, protocol.NotCoordinator: // the latter lost it just now: its ids are another's
			default:
				failed := kmsg.NewPtrListTransactionsResponse()
				failed.ErrorCode = int16(code)
				c.reply(failed)
				return
			}
			for _, d := range listed[i] {
				state := kmsg.NewListTransactionsResponseTransactionState()
				state.TransactionalID, state.ProducerID, state.TransactionState = d.TransactionalID, int64(d.Producer.ID), d.State.String()
				resp.TransactionStates = append(resp.TransactionStates, state)
			}
		}
		c.reply(resp)
	})
	for i, partition := range partitions {
		c.Transactions.Submit(c.now, partition, txn.List{Keep: keep}, func(reply any, err error) {
			c.guard(func() {
				listed[i], _ = reply.([]txn.Described)
				failed[i] = err
				under.done()
			})
		})
	}
	under.done()
}

// keepTransactions puts the filters of a request together. An id must match the
// pattern as a whole; the syntax is RE2's, as with Apache Kafka.
func (c *call) keepTransactions(req *kmsg.ListTransactionsRequest) (func(*txn.Described) bool, error) {
	var pattern *regexp.Regexp
	if c.version >= listHasPatternsFrom && deref(req.TransactionalIDPattern) != "" {
		if _, err := regexp.Compile(*req.TransactionalIDPattern); err != nil {
			return nil, protocol.Errorf(protocol.InvalidRegularExpression, "%v", err)
		}
		pattern = regexp.MustCompile(`\A(?:` + *req.TransactionalIDPattern + `)\z`)
	}
	longer := int64(-1)
	if c.version >= listHasDurationsFrom {
		longer = req.DurationFilterMillis
	}
	nowMs := c.now.UnixMilli()
	return func(d *txn.Described) bool {
		switch {
		case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, int64(d.Producer.ID)),
			len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, d.State.String()),
			longer >= 0 && nowMs-d.StartMs <= longer,
			pattern != nil && !pattern.MatchString(d.TransactionalID):
			return false
		}
		return c.may(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTransactionalId, d.TransactionalID)
	}, nil
}
