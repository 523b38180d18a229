package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/machine"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// groupMetadataVersion is that of the value that Apache Kafka 4.4.0 writes, whatever
// the metadata.version is.
const groupMetadataVersion = 3

// decision gathers what one call of Handle or Tick decides.
type decision struct {
	now     time.Time
	records []machine.Record
	answers []machine.Respond
	parked  machine.Token // the request that is being handled; 0: it is not parked

	transaction *machine.Transaction // in which the records are written; nil: in none
}

// nowMs is the time as records have it.
func (d *decision) nowMs() int64 { return d.now.UnixMilli() }

// write appends a record. A nil value is a tombstone.
func (d *decision) write(key schema.Key, value schema.Value, version int16) {
	r := machine.Record{Key: schema.AppendKey(nil, key)}
	if value != nil {
		r.Value = schema.AppendValue(nil, value, version)
	}
	d.records = append(d.records, r)
}

// recordOverhead is more than what a record's header, lengths and deltas take.
const recordOverhead = 32

func sizeOf(records []machine.Record) (bytes int) {
	for _, r := range records {
		bytes += len(r.Key) + len(r.Value) + recordOverhead
	}
	return bytes
}

// tooLarge tells that the records would not fit into one batch of the log.
func (c *Coordinator) tooLarge(records []machine.Record) bool {
	return c.options.MaxBatchBytes != nil && sizeOf(records) > c.options.MaxBatchBytes()
}

// waiting is a parked request: where its answer goes and in which version. The
// zero value is none.
type waiting struct {
	token   machine.Token
	version int16
}

// park parks the request that is being handled.
func (c *Coordinator) park(d *decision, version int16) waiting {
	c.tokens++
	d.parked = c.tokens
	return waiting{c.tokens, version}
}

// answer answers a parked request, if there is one, and tells so.
func (d *decision) answer(w *waiting, response kmsg.Response) bool {
	if w.token == 0 {
		return false
	}
	response.SetVersion(w.version)
	d.answers = append(d.answers, machine.Respond{Token: w.token, Reply: response})
	*w = waiting{}
	return true
}

// result puts everything into the form of the contract. A request that was
// parked and answered in the same decision gets its answer as the reply.
func (d *decision) result(reply kmsg.Response) machine.Result {
	result := machine.Result{Records: d.records, Transaction: d.transaction}
	switch at := slices.IndexFunc(d.answers, func(r machine.Respond) bool { return r.Token == d.parked }); {
	case reply != nil:
		result.Reply = reply
	case d.parked != 0 && at >= 0:
		result.Reply = d.answers[at].Reply
		d.answers = slices.Delete(d.answers, at, at+1)
	case d.parked != 0:
		result.Reply = machine.Parked{Token: d.parked}
	}
	for _, a := range d.answers {
		result.Effects = append(result.Effects, a)
	}
	return result
}

func milliseconds(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// code gives an error of a decision as messages have it.
func code(c protocol.ErrorCode) int16 { return int16(c) }
