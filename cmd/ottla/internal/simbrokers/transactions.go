package simbrokers

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/seeded"
	"ottla/controller/txn"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/wire"
)

// transactionTimeout is more than a run takes: no transaction is aborted because of its age.
const transactionTimeout = 15 * time.Minute

// The kinds of coordinators, as FindCoordinator has them.
const (
	groupCoordinator = iota
	transactionCoordinator
)

// transactor writes one transaction after the other, as a client of transactions v2 (KIP-890) or v1 does (TransactionManager.java): one
// request at a time, each again until it is answered, coordinators looked up anew where they are not. It is alone with its
// transactional id, so nothing may ever fence it.
type transactor struct {
	v1         bool
	added      map[int32]bool // v1: partitions that are in the transaction; -1 is that of the group
	s          *Simulation
	random     *seeded.Random
	id         string // and that of its group
	at         [2]int // where the coordinators are, as far as it knows
	life       int    // counts its processes: one before is told nothing
	producer   txn.Producer
	sequences  map[int32]int32 // the next, of each partition in this epoch
	leaders    map[int32]int   // of partitions, as far as it knows
	number     int
	open       *transaction
	ended      []*transaction
	unanswered int // of InitProducerID, which fence who has asked again if they are served late
	committed  protocol.Offset
	done       bool
}

// versionsBefore are the last ones of transactions v1. There several transactions have one epoch, so that a request that comes late may
// be taken for one of the next (which is why there is v2).
var versionsBefore = map[protocol.APIKey]int16{
	protocol.Produce: 11, protocol.AddPartitionsToTxn: 3, protocol.AddOffsetsToTxn: 4, protocol.TxnOffsetCommit: 4, protocol.EndTxn: 4,
}

// transaction is one of them.
type transaction struct {
	number  int
	steps   []func()
	values  []string // that were sent to partitions
	offset  bool     // its number was committed to the group
	commit  bool     // what was asked for
	asked   bool     // it may have an end that the client does not know of
	outcome outcome
}

type outcome int

const (
	unknown outcome = iota
	committed
	aborted
)

func (o outcome) String() string { return [...]string{"unknown", "committed", "aborted"}[o] }

func (t *transactor) later(what string, run func()) {
	life := t.life
	t.s.After(t.random.Between(100*time.Microsecond, t.s.plan.pace), t.id+" "+what, func() {
		if t.life == life {
			run()
		}
	})
}

// ask sends a request to a broker; done gets the response, or nil.
func (t *transactor) ask(to int, req kmsg.Request, done func(kmsg.Response)) {
	life := t.life
	version := protocol.APIOf(protocol.APIKey(req.Key())).MaxVersion
	if before, known := versionsBefore[protocol.APIKey(req.Key())]; t.v1 && known {
		version = before
	}
	req.SetVersion(version)
	_, transactional := versionsBefore[protocol.APIKey(req.Key())]
	_, initializes := req.(*kmsg.InitProducerIDRequest)
	t.s.send(clientEnd, to, req, initializes || t.v1 && transactional, func(frame []byte, err error) {
		if t.life != life {
			return
		}
		if err != nil {
			done(nil)
			return
		}
		_, resp, err := wire.ReadResponse(frame, req)
		must(err)
		done(resp)
	})
}

// coordinator sends a request to a coordinator, and again until its response, of which codeOf gives the code, is no refusal.
func (t *transactor) coordinator(kind int, request func() kmsg.Request, codeOf func(kmsg.Response) int16, done func(kmsg.Response)) {
	again := func() {
		t.later("looks for a coordinator", func() {
			t.find(kind, func() { t.coordinator(kind, request, codeOf, done) })
		})
	}
	if t.at[kind] == 0 {
		again()
		return
	}
	req := request()
	t.ask(t.at[kind], req, func(resp kmsg.Response) {
		if resp == nil && t.open != nil && t.open.asked && t.random.Chance(200) {
			t.reload()
			return
		}
		if resp == nil {
			again()
			return
		}
		switch code := protocol.ErrorCode(codeOf(resp)); {
		case code == protocol.None:
			done(resp)
		case code.Retriable():
			again()
		default:
			t.fatal(kmsg.NameForKey(req.Key()), t.at[kind], code)
		}
	})
}

func (t *transactor) find(kind int, then func()) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKeys = int8(kind), []string{t.id}
	t.ask(1+t.random.Below(len(t.s.machines)), req, func(resp kmsg.Response) {
		if resp != nil {
			found := resp.(*kmsg.FindCoordinatorResponse).Coordinators[0]
			if code := protocol.ErrorCode(found.ErrorCode); code == protocol.None {
				t.at[kind] = int(found.NodeID)
			} else if !code.Retriable() {
				t.fatal("FindCoordinator", 0, code)
				return
			}
		}
		then()
	})
}

// fatal is told a code that ends a client. An InitProducerID that was given up and served later all the same may have fenced it.
func (t *transactor) fatal(what string, from int, code protocol.ErrorCode) {
	if t.unanswered > 0 {
		t.unanswered--
		t.s.Linef("%s was fenced by itself", t.id)
		t.restart()
		return
	}
	t.s.Violate("%s, alone with its id, got %s from %d for its %s of %v", t.id, code, from, what, t.producer)
}

// restart is the next process of the same application.
func (t *transactor) restart() {
	t.life++
	t.s.counts.Restarts++
	if t.open != nil {
		t.abandon()
	}
	t.later("is started", func() { t.initialize(txn.NoProducer) })
}

// reload goes on after an EndTxn that was not answered, as franz-go does: by an InitProducerID that tells the producer (KIP-360).
func (t *transactor) reload() {
	t.s.counts.Reloads++
	t.abandon()
	t.initialize(t.producer)
}

// abandon ends the open transaction with what is known of it.
func (t *transactor) abandon() {
	if !t.open.asked || !t.open.commit {
		t.open.outcome = aborted
	}
	t.end(t.open)
}

func (t *transactor) end(is *transaction) {
	t.open, t.ended = nil, append(t.ended, is)
	t.s.Linef("%s: the outcome of transaction %d is %s", t.id, is.number, is.outcome)
}

// initialize gets a producer id and epoch, after those that it has had.
func (t *transactor) initialize(expected txn.Producer) {
	t.coordinator(transactionCoordinator, func() kmsg.Request {
		t.unanswered++
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &t.id, int32(transactionTimeout.Milliseconds())
		req.ProducerID, req.ProducerEpoch = int64(expected.ID), int16(expected.Epoch)
		return req
	}, func(resp kmsg.Response) int16 {
		t.unanswered--
		return resp.(*kmsg.InitProducerIDResponse).ErrorCode
	}, func(resp kmsg.Response) {
		is := resp.(*kmsg.InitProducerIDResponse)
		t.goOn(is.ProducerID, is.ProducerEpoch)
	})
}

// goOn takes the producer of the next transaction.
func (t *transactor) goOn(id int64, epoch int16) {
	next := txn.Producer{ID: protocol.ProducerID(id), Epoch: protocol.ProducerEpoch(epoch)}
	if next.ID < t.producer.ID || next.ID == t.producer.ID && next.Epoch <= t.producer.Epoch {
		t.s.Violate("%s had %v and gets %v", t.id, t.producer, next)
	}
	t.producer, t.sequences, t.added = next, map[int32]int32{}, map[int32]bool{}
	t.later("goes on", t.begin)
}

func (t *transactor) begin() {
	switch {
	case t.s.ending:
		t.readOffset()
		return
	case t.random.Chance(30):
		t.restart()
		return
	}
	t.number++
	is := &transaction{number: t.number, commit: t.random.Chance(800)}
	for n := range int32(t.s.plan.partitions) {
		for range t.random.Below(3) {
			is.steps = append(is.steps, func() { t.add(n, func() { t.write(n, t.value(n)) }) })
		}
	}
	if t.random.Chance(400) {
		is.offset = true
		is.steps = append(is.steps, func() { t.add(-1, t.commitOffset) })
	}
	if len(is.steps) == 0 && t.v1 {
		t.later("has nothing to do", t.begin)
		return
	}
	if len(is.steps) == 0 {
		is.commit = false // there is nothing to commit, which is an error
	}
	seeded.Shuffle(t.random, is.steps)
	t.open = is
	t.step()
}

// step does what is next in the transaction, or ends it.
func (t *transactor) step() {
	is := t.open
	switch {
	case t.random.Chance(10):
		t.restart()
	case len(is.steps) > 0:
		run := is.steps[0]
		is.steps = is.steps[1:]
		run()
	default:
		t.endTxn()
	}
}

// mayGiveUp ends a transaction of which something was not answered, now and then; else it is tried again.
func (t *transactor) mayGiveUp(again func()) {
	giveUp := t.random.Chance(50)
	if giveUp && t.v1 {
		t.restart() // its sequence numbers are in doubt
		return
	}
	if giveUp {
		t.open.steps, t.open.commit = nil, false
		t.later("gives up", t.step)
		return
	}
	t.later("tries again", again)
}

// add makes a partition part of the transaction, or that of the group for -1: of v2 the broker does that.
func (t *transactor) add(n int32, then func()) {
	if !t.v1 || t.added[n] {
		then()
		return
	}
	t.coordinator(transactionCoordinator, func() kmsg.Request {
		id, epoch := int64(t.producer.ID), int16(t.producer.Epoch)
		if n < 0 {
			req := kmsg.NewPtrAddOffsetsToTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, id, epoch, t.id
			return req
		}
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, id, epoch
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topicName, Partitions: []int32{n}}}
		return req
	}, func(resp kmsg.Response) int16 {
		if added, ok := resp.(*kmsg.AddPartitionsToTxnResponse); ok {
			return added.Topics[0].Partitions[0].ErrorCode
		}
		return resp.(*kmsg.AddOffsetsToTxnResponse).ErrorCode
	}, func(kmsg.Response) {
		t.added[n] = true
		then()
	})
}

func (t *transactor) value(n int32) string {
	return fmt.Sprintf("%s/%d/%d/%d", t.id, t.number, n, len(t.open.values))
}

// write writes one record to a partition.
func (t *transactor) write(n int32, value string) {
	image := t.s.controllers.truth.loader.Image()
	topic, state := image.Topic(topicName), image.Partition(protocol.TopicPartition{Topic: topicName, Partition: n})
	if topic == nil || state == nil {
		t.mayGiveUp(func() { t.write(n, value) })
		return
	}
	to, known := t.leaders[n] // it may be another by now, but never one before it: metadata has leader epochs (KIP-320)
	if !known && state.Leader < 1 {
		t.mayGiveUp(func() { t.write(n, value) })
		return
	}
	if !known {
		to = int(state.Leader)
		t.leaders[n] = to
	}
	if !slices.Contains(t.open.values, value) {
		t.open.values = append(t.open.values, value)
	}
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = t.producer.ID, t.producer.Epoch, t.sequences[n], true
	req := produceRequest(topic.ID, n, o, t.s.Now, value)
	req.TransactionID = &t.id
	t.ask(to, req, func(resp kmsg.Response) {
		code := protocol.RequestTimedOut
		if resp != nil {
			code = protocol.ErrorCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
		}
		switch {
		case code == protocol.None:
			t.sequences[n]++
			t.later("goes on", t.step)
		case code.Retriable():
			delete(t.leaders, n)
			t.mayGiveUp(func() { t.write(n, value) })
		default:
			t.fatal("Produce to "+fmt.Sprint(n), to, code)
		}
	})
}

// commitOffset commits the number of the transaction to the group.
func (t *transactor) commitOffset() {
	t.coordinator(groupCoordinator, func() kmsg.Request {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.Group, req.Generation = t.id, t.id, -1
		req.ProducerID, req.ProducerEpoch = int64(t.producer.ID), int16(t.producer.Epoch)
		topic, p := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewTxnOffsetCommitRequestTopicPartition()
		topic.Topic = topicName
		if known := t.s.controllers.truth.loader.Image().Topic(topicName); known != nil {
			topic.TopicID = known.ID
		}
		p.Offset = int64(t.number)
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		return req
	}, func(resp kmsg.Response) int16 {
		return resp.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	}, func(kmsg.Response) { t.later("goes on", t.step) })
}

func (t *transactor) endTxn() {
	is := t.open
	t.coordinator(transactionCoordinator, func() kmsg.Request {
		is.asked = true
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.id, int64(t.producer.ID), int16(t.producer.Epoch), is.commit
		return req
	}, func(resp kmsg.Response) int16 {
		return resp.(*kmsg.EndTxnResponse).ErrorCode
	}, func(resp kmsg.Response) {
		if is.outcome = aborted; is.commit {
			is.outcome = committed
		}
		t.end(is)
		t.s.counts.Transactions++
		if t.v1 { // the epoch stays, and the sequence numbers go on
			t.added = map[int32]bool{}
			t.later("goes on", t.begin)
			return
		}
		end := resp.(*kmsg.EndTxnResponse)
		t.goOn(end.ProducerID, end.ProducerEpoch)
	})
}

// readOffset reads what the group has committed in the end.
func (t *transactor) readOffset() {
	t.coordinator(groupCoordinator, func() kmsg.Request {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.RequireStable = true
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group = t.id
		if known := t.s.controllers.truth.loader.Image().Topic(topicName); known != nil {
			topic := kmsg.NewOffsetFetchRequestGroupTopic()
			topic.TopicID, topic.Partitions = known.ID, []int32{0}
			group.Topics = append(group.Topics, topic)
		}
		req.Groups = append(req.Groups, group)
		return req
	}, func(resp kmsg.Response) int16 {
		is := resp.(*kmsg.OffsetFetchResponse).Groups[0]
		if is.ErrorCode == 0 && len(is.Topics) > 0 {
			return is.Topics[0].Partitions[0].ErrorCode
		}
		return is.ErrorCode
	}, func(resp kmsg.Response) {
		t.committed, t.done = protocol.NoOffset, true
		if topics := resp.(*kmsg.OffsetFetchResponse).Groups[0].Topics; len(topics) > 0 {
			t.committed = protocol.Offset(topics[0].Partitions[0].Offset)
		}
	})
}

// judge holds what can be read in the end against the outcomes that were told: of each transaction all or nothing.
func (t *transactor) judge(visible map[string]int) {
	may := []protocol.Offset{protocol.NoOffset}
	for _, is := range t.ended {
		seen := 0
		for _, value := range is.values {
			if seen += visible[value]; visible[value] > 1 {
				t.s.Violate("%s is there %d times", value, visible[value])
			}
		}
		if seen != 0 && seen != len(is.values) || seen == 0 && len(is.values) > 0 && is.outcome == committed || seen > 0 && is.outcome == aborted {
			t.s.Violate("%s: %d of %d values of transaction %d are visible, its outcome is %s", t.id, seen, len(is.values), is.number, is.outcome)
		}
		switch number := protocol.Offset(is.number); {
		case !is.offset || is.outcome == aborted:
		case is.outcome == committed || seen > 0:
			may = []protocol.Offset{number}
		case len(is.values) == 0:
			may = append(may, number)
		}
	}
	if !slices.Contains(may, t.committed) {
		t.s.Violate("the offset %d is committed in group %s, but it should be one of %v", t.committed, t.id, may)
	}
}
