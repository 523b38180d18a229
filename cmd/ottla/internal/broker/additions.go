package broker

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
)

// AdditionsOptions is what Additions needs.
type AdditionsOptions struct {
	Image  func() *metadata.Image
	SendTo SendTo
	// PartitionFor is the partition of __transaction_state that holds an id.
	PartitionFor func(transactionalID string) int32
	// RetryPause is how long is waited before an addition that came while the
	// transaction before was being ended is tried again, and RetryMost for how long
	// that is done (add.partitions.to.txn.retry.backoff.ms, ….max.ms).
	RetryPause, RetryMost time.Duration
	Wake                  func()
	Logger                *slog.Logger
}

// Additions asks the transaction coordinators about partitions to which producers
// write (KIP-890): are they part of the producer's transaction, or, for those who
// leave it to the broker, let them be. It is the broker's part of the requests
// between brokers; it keeps nothing of what it learns.
type Additions struct {
	options AdditionsOptions
	failed  atomic.Int64 // partitions that are not part of the transaction, or of which nobody could say

	mu      sync.Mutex
	refused []*addition // that came while the transaction before was being ended; the next Tick sees to them
	waiting []*addition // to be tried again, by due
}

// Addition is what a producer writes to.
type Addition struct {
	TransactionalID string
	ProducerID      protocol.ProducerID
	Epoch           protocol.ProducerEpoch
	Partitions      []protocol.TopicPartition
	// Add says that the partitions are to be made part of the transaction: the
	// producer works the second way. Else it is only asked whether they are.
	Add bool
	// Abortable says that the producer knows TRANSACTION_ABORTABLE.
	Abortable bool
}

// addition is one under way.
type addition struct {
	Addition
	begun time.Time
	due   time.Time
	codes []protocol.ErrorCode // of the last try
	done  func(codes []protocol.ErrorCode)
}

// NewAdditions makes Additions that has nothing under way.
func NewAdditions(options AdditionsOptions) *Additions { return &Additions{options: options} }

// Ask asks. done is called once, from anywhere, with the code of each partition in
// their order: NONE if it is part of the transaction now.
func (a *Additions) Ask(now time.Time, ask Addition, done func(codes []protocol.ErrorCode)) {
	a.send(&addition{Addition: ask, begun: now, done: done})
}

// coordinator is the partition that holds an id, as it stands in an Image.
func (a *Additions) coordinator(image *metadata.Image, id string) *metadata.Partition {
	return image.Partition(protocol.TopicPartition{Topic: protocol.TransactionStateTopic, Partition: a.options.PartitionFor(id)})
}

// send asks the coordinator of the id. Who is known by the time of the answer not to be it any more may have known less than the producer:
// a refusal is asked about again.
func (a *Additions) send(ask *addition) {
	image := a.options.Image()
	at := a.coordinator(image, ask.TransactionalID)
	if at == nil || image.Broker(at.Leader) == nil || image.Broker(at.Leader).Fenced {
		codes := ask.all(protocol.CoordinatorNotAvailable)
		a.fail(codes)
		ask.done(codes)
		return
	}
	a.options.SendTo(at.Leader, ask.message(), func(response kmsg.Response, err error) {
		codes := ask.codesOf(response, err)
		if err != nil {
			a.options.Logger.Warn("the transaction coordinator was not reached", "transactionalId", ask.TransactionalID, "broker", int32(at.Leader), "error", err)
		}
		refused := slices.ContainsFunc(codes, func(code protocol.ErrorCode) bool { return code != protocol.None })
		if by := a.coordinator(a.options.Image(), ask.TransactionalID); refused && by != nil && by.LeaderEpoch > at.LeaderEpoch {
			a.send(ask)
			return
		}
		if ask.Add && slices.Contains(codes, protocol.ConcurrentTransactions) {
			a.refuse(ask, codes)
			return
		}
		a.fail(codes)
		ask.done(codes)
	})
}

// fail counts what cannot be written to.
func (a *Additions) fail(codes []protocol.ErrorCode) {
	for _, code := range codes {
		if code != protocol.None {
			a.failed.Add(1)
		}
	}
}

// Failed counts the partitions that were asked about and that must not be written to (VerificationFailureRate of Apache
// Kafka's AddPartitionsToTxnManager).
func (a *Additions) Failed() int64 { return a.failed.Load() }

// refuse has the next Tick, which knows the time, see to an addition that came
// too early.
func (a *Additions) refuse(ask *addition, codes []protocol.ErrorCode) {
	ask.codes = codes
	a.mu.Lock()
	a.refused = append(a.refused, ask)
	a.mu.Unlock()
	a.options.Wake()
}

// NextDeadline is when Tick has something to do; zero: never.
func (a *Additions) NextDeadline(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(a.refused) > 0:
		return now
	case len(a.waiting) > 0:
		return a.waiting[0].due
	}
	return time.Time{}
}

// Tick tries again, or gives up.
func (a *Additions) Tick(now time.Time) {
	var late, again []*addition
	a.mu.Lock()
	for _, ask := range a.refused {
		ask.due = now.Add(a.options.RetryPause)
		if ask.due.Sub(ask.begun) > a.options.RetryMost {
			late = append(late, ask)
			continue
		}
		a.waiting = append(a.waiting, ask) // each is due later than those before
	}
	a.refused = nil
	for len(a.waiting) > 0 && !a.waiting[0].due.After(now) {
		again = append(again, a.waiting[0])
		a.waiting = a.waiting[1:]
	}
	a.mu.Unlock()
	for _, ask := range late {
		a.fail(ask.codes)
		ask.done(ask.codes)
	}
	for _, ask := range again {
		a.send(ask)
	}
}

func (ask *addition) message() kmsg.Request {
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = ask.TransactionalID, int64(ask.ProducerID), int16(ask.Epoch), !ask.Add
	at := map[string]int{}
	for _, tp := range ask.Partitions {
		n, known := at[tp.Topic]
		if !known {
			n = len(one.Topics)
			at[tp.Topic] = n
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: tp.Topic})
		}
		one.Topics[n].Partitions = append(one.Topics[n].Partitions, tp.Partition)
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Transactions = append(req.Transactions, one)
	return req
}

func (ask *addition) all(code protocol.ErrorCode) []protocol.ErrorCode {
	codes := make([]protocol.ErrorCode, len(ask.Partitions))
	for i := range codes {
		codes[i] = code
	}
	return codes
}

// codesOf reads a response, in the words of the producer's version.
func (ask *addition) codesOf(response kmsg.Response, err error) []protocol.ErrorCode {
	answer, ok := response.(*kmsg.AddPartitionsToTxnResponse)
	switch {
	case err != nil || !ok:
		return ask.all(protocol.NetworkException)
	case protocol.ErrorCode(answer.ErrorCode) == protocol.ClusterAuthorizationFailed:
		return ask.all(protocol.InvalidTxnState)
	case answer.ErrorCode != 0:
		return ask.all(protocol.ErrorCode(answer.ErrorCode))
	}
	found := map[protocol.TopicPartition]protocol.ErrorCode{}
	for _, one := range answer.Transactions {
		for _, topic := range one.Topics {
			for _, p := range topic.Partitions {
				found[protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = protocol.ErrorCode(p.ErrorCode)
			}
		}
	}
	codes := ask.all(protocol.NetworkException)
	for i, tp := range ask.Partitions {
		switch code, answered := found[tp]; {
		case !answered:
		case code == protocol.ProducerFenced:
			codes[i] = protocol.InvalidProducerEpoch
		case code == protocol.TransactionAbortable && !ask.Abortable:
			codes[i] = protocol.InvalidTxnState
		default:
			codes[i] = code
		}
	}
	return codes
}
