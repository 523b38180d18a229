package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/compat/history"
	"ottla/protocol"

	"ottla/cmd/ottla/internal/seeded"
)

// transactor is one transactional id, and its instances: one after the other, but an
// earlier one may go on when it is thought dead.
type transactor struct {
	s          *Simulation
	host       *host
	n          int32
	plan       transactorPlan
	random     *seeded.Random
	generation int32       // of the newest instance
	lostInit   time.Time   // when an InitProducerId was last sent whose answer did not come: it fences whenever it arrives
	instances  []*instance // that have not ended
	diedEnding bool        // the last one did while it waited for the end of its transaction
}

// instance is one life of a transactional producer.
type instance struct {
	*transactor
	name       string
	generation int32
	conn       *conn
	producerID protocol.ProducerID
	epoch      protocol.ProducerEpoch
	sequences  map[int32]int32
	zombie     bool // another one has been started
	ended      bool

	op          *history.Op // under way; nil: between transactions
	transaction int         // counts
	ending      bool        // its end was asked for
	doubtful    bool        // and that may have taken effect
	added       bool        // the coordinator knows of the transaction
	touched     time.Time   // the coordinator has changed what it knows of the id at that time or later
	position    protocol.Offset
	next        protocol.Offset // the position once the transaction is committed
}

func newTransactor(s *Simulation, h *host, n int) *transactor {
	return &transactor{s: s, host: h, n: int32(n) + 1, plan: s.plan.transactions.transactors[n], random: s.random.Fork()}
}

func (t *transactor) start() {
	t.s.After(t.random.Between(0, 3*time.Second), "a transactor begins", t.begin)
}

func (t *transactor) id() string { return fmt.Sprintf("tx-%d", t.n) }

// idle tells whether a transaction is under way, or something is left to be copied.
func (t *transactor) idle() string {
	for _, i := range t.instances {
		if i.op != nil {
			return i.name + " has a transaction under way"
		}
	}
	if !t.plan.copies {
		return ""
	}
	part := t.s.txPart(t.s.plan.transactions.source, t.plan.n)
	if part == nil {
		return "there is nothing to copy from yet"
	}
	for _, i := range t.instances {
		if !i.zombie && i.position >= part.seen.end {
			return ""
		}
	}
	return fmt.Sprintf("transactor %d has not copied all of %s, which is %+v", t.n, part, part.seen)
}

// begin starts an instance.
func (t *transactor) begin() {
	if t.s.phase != working && !t.plan.copies || t.s.phase == reading {
		return
	}
	for _, i := range t.instances {
		i.zombie = true
	}
	t.generation++
	i := &instance{
		transactor: t, name: fmt.Sprintf("transactor%d/%d", t.n, t.generation), generation: t.generation,
		sequences: map[int32]int32{}, position: protocol.NoOffset, producerID: protocol.NoProducerID,
	}
	t.instances = append(t.instances, i)
	// Who asks where to go on before he has fenced the one before relies on requireStable: of a transaction that is being ended the
	// offset is not to be had. It must not have been about to commit another one.
	placesFirst := t.plan.copies && t.diedEnding && t.random.Chance(700)
	t.diedEnding = false
	if placesFirst {
		i.place()
		return
	}
	i.find(func() { i.init() })
}

// end is the end of an instance; what it did not end it has not committed.
func (i *instance) end(why string) {
	if i.ended {
		return
	}
	i.s.Linef("%s ends: %s", i.name, why)
	i.ended = true
	if i.op != nil {
		i.over(i.op.Outcome)
	}
	i.instances = deleteOne(i.instances, i)
	if !i.zombie {
		pause := time.Second
		if i.diedEnding { // it may find the transaction undecided
			pause = time.Millisecond
		}
		i.s.After(i.random.Between(0, pause), "a new instance of a transactor", i.begin)
	}
}

// dieEnding ends an instance that waits for the end of its transaction.
func (i *instance) dieEnding() {
	if i.s.phase == working && !i.ended && !i.zombie && i.op != nil && i.ending {
		i.diedEnding = true
		i.end("it dies while its transaction is being ended")
	}
}

// over records the transaction under way.
func (i *instance) over(outcome history.Outcome) {
	i.op.Outcome = outcome
	i.s.history.add(i.s, *i.op)
	i.op = nil
}

// ask sends a request until it is answered. Some come late: then the instance does not
// wait for the answer, and sends it again over another connection.
func (i *instance) ask(req kmsg.Request, version int16, done func(kmsg.Response)) {
	if i.ended {
		return
	}
	again := func(pause time.Duration) {
		i.s.After(pause, i.name+" tries again", func() { i.ask(req, version, done) })
	}
	if i.conn == nil || !i.conn.open {
		if i.conn = i.s.connect(i.name, i.host, protocol.OnBroker, nil); i.conn == nil {
			again(100 * time.Millisecond)
			return
		}
	}
	over := false
	isInit := protocol.APIKey(req.Key()) == protocol.InitProducerId
	if i.s.phase == working && !isInit && i.random.Chance(i.plan.late) {
		i.conn.upAt = i.s.Now.Add(i.random.Between(50*time.Millisecond, 10*time.Second))
		i.s.After(i.random.Between(20*time.Millisecond, time.Second), i.name+" waits no longer", func() {
			if !over {
				over, i.conn = true, nil
				i.doubtful = i.doubtful || i.ending
				again(0)
			}
		})
	}
	i.conn.send(req, version, 30*time.Second, true, func(resp kmsg.Response, err error) {
		if err != nil && isInit {
			i.lostInit = i.s.Now
		}
		switch {
		case over || i.ended:
		case err != nil:
			over = true
			i.doubtful = i.doubtful || i.ending
			again(i.random.Between(0, 100*time.Millisecond))
			if i.random.Chance(300) {
				i.dieEnding()
			}
		default:
			over = true
			done(resp)
		}
	})
}

// judge goes on by a code.
func (i *instance) judge(what string, code protocol.ErrorCode, again, ok func()) {
	if code != protocol.None {
		i.s.Linef("%s: %s gave %s", i.name, what, code)
	}
	switch code {
	case protocol.None:
		ok()
	case protocol.CoordinatorLoadInProgress, protocol.CoordinatorNotAvailable, protocol.NotCoordinator, protocol.ConcurrentTransactions,
		protocol.NotEnoughReplicas, protocol.NotLeaderOrFollower, protocol.KafkaStorageError, protocol.RequestTimedOut, protocol.UnknownTopicOrPartition,
		protocol.UnknownTopicID, protocol.UnstableOffsetCommit, protocol.LeaderNotAvailable, protocol.NotEnoughReplicasAfterAppend, protocol.NetworkException:
		i.doubtful = i.doubtful || i.ending && (code == protocol.RequestTimedOut || code == protocol.NotEnoughReplicasAfterAppend)
		i.s.After(i.random.Between(5*time.Millisecond, 150*time.Millisecond), i.name+" tries again", again)
	case protocol.ProducerFenced, protocol.InvalidProducerEpoch, protocol.InvalidTxnState, protocol.OutOfOrderSequenceNumber, protocol.TransactionAbortable,
		protocol.InvalidProducerIDMapping:
		if !i.zombie && !i.expired() && !i.forgotten(code) && i.s.Now.Sub(i.lostInit) > time.Minute {
			i.s.Violate("%s: %s gave %s, and nobody has fenced it: %s", i.name, what, code, i.id())
		}
		if i.op != nil && i.ending && !i.doubtful {
			i.op.Outcome = history.Fail
		}
		i.end(code.String())
	default:
		i.s.Violate("%s: %s gave %s", i.name, what, code)
	}
}

// expired tells whether the coordinator may have ended the transaction by itself.
func (i *instance) expired() bool {
	return i.op != nil && i.s.Now.UnixNano()-i.op.Begin >= int64(i.plan.timeout)
}

// forgotten tells whether the id may have expired between two transactions.
func (i *instance) forgotten(code protocol.ErrorCode) bool {
	expiry := i.s.plan.transactions.expiry
	if code != protocol.InvalidProducerIDMapping || expiry == 0 || i.added || i.s.Now.Sub(i.touched) < expiry {
		return false
	}
	i.s.counts.ForgottenIDs++
	return true
}

// open tells whether a transaction is certainly undecided.
func (i *instance) open(transaction int) bool {
	return !i.zombie && !i.ended && i.op != nil && i.transaction == transaction && !i.ending && !i.expired()
}

// find finds the coordinator, which makes the topic of the coordinators.
func (i *instance) find(done func()) {
	for _, own := range i.s.plan.transactions.own {
		if !own.auto && i.s.txPart(own, 0) == nil {
			i.s.After(100*time.Millisecond, i.name+" waits until Kafka's own topics are there", func() { i.find(done) })
			return
		}
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKeys = 1, []string{i.id()}
	i.ask(req, int16(4+i.random.Below(3)), func(resp kmsg.Response) {
		code := protocol.ErrorCode(resp.(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode)
		i.judge("FindCoordinator", code, func() { i.find(done) }, done)
	})
}

func (i *instance) init() {
	req := kmsg.NewPtrInitProducerIDRequest()
	name := i.id()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &name, int32(i.plan.timeout.Milliseconds()), -1, -1
	sent, begin := i.s.Now, i.s.Now.UnixNano()
	i.ask(req, int16(2+i.random.Below(4)), func(resp kmsg.Response) {
		answer := resp.(*kmsg.InitProducerIDResponse)
		i.judge("InitProducerId", protocol.ErrorCode(answer.ErrorCode), i.init, func() {
			if !i.s.history.newer(i.n, answer.ProducerID, answer.ProducerEpoch) && !i.zombie {
				i.s.Violate("%s: got producer %d epoch %d, which is not newer than what was given out", i.name, answer.ProducerID, answer.ProducerEpoch)
			}
			i.become(answer.ProducerID, answer.ProducerEpoch)
			i.touched = sent
			i.s.history.add(i.s, history.Op{Kind: history.Fence, Process: i.process(), Begin: begin, Producer: i.producer()})
			i.proceed()
		})
	})
}

// become takes a producer id and epoch; sequences begin anew with each.
func (i *instance) become(id int64, epoch int16) {
	if int64(i.producerID) != id || int16(i.epoch) != epoch {
		i.sequences = map[int32]int32{}
	}
	i.producerID, i.epoch = protocol.ProducerID(id), protocol.ProducerEpoch(epoch)
}

func (i *instance) process() int32 { return i.n<<16 | i.generation }

func (i *instance) producer() history.Producer { return history.Producer{ID: i.n, Epoch: i.generation} }
