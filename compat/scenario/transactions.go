package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"ottla/compat/suite"
)

// Transactions are the rows of transactions, which are in List too. Each waits for sessions and timeouts most of its time.
func Transactions() []Scenario {
	return []Scenario{
		{"txn-views", "transactions over eight partitions, committed and aborted: what readers of committed records and of all see", txnViews},
		{"txn-fenced", "a second producer of a transactional id aborts the transaction of the first, which can commit no more", txnFenced},
		{"txn-timeout", "a transaction past its timeout is aborted, and its producer can commit no more", txnTimeout},
		{"txn-copy", "a copy loop aborts now and then, and dies in a transaction: with its heir's, each record is once in the output", txnCopy},
	}
}

// OldTransactions are the same rows on a node with transaction.version=1, for clients that do otherwise there.
func OldTransactions() []Scenario {
	list := Transactions()
	for i := range list {
		list[i].Name += oldTransactions
	}
	return list
}

const oldTransactions = "-v1"

// transaction makes n records for each partition, of values that name the transaction.
func transaction(number, partitions, n int, end string) suite.Transaction {
	made := suite.Transaction{End: end}
	for p := range partitions {
		for i := range n {
			made.Records = append(made.Records, suite.Record{Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d-%d", number, p, i)})
		}
	}
	return made
}

// Transact produces in transactions by a client; each must end as it should.
func (t *T) Transact(c suite.Client, o suite.TransactOptions, all ...suite.Transaction) {
	t.Helper()
	by, ok := c.(suite.Transactor)
	if !ok {
		t.Fatalf("%s is listed for this scenario but cannot express it", c.Name())
	}
	acks, err := by.Transact(t.Ctx, o, all, nil)
	t.Must(err, "transactions by "+c.Name())
	if len(acks) != len(all) {
		t.Fatalf("%s: acknowledgements of %d transactions, want %d", c.Name(), len(acks), len(all))
	}
	for i, of := range acks {
		if len(of) != len(all[i].Records) {
			t.Fatalf("%s: transaction %d: %d acknowledgements for %d records", c.Name(), i, len(of), len(all[i].Records))
		}
		for n, ack := range of {
			if ack.Err != "" {
				t.Fatalf("%s: transaction %d, record %d: %s", c.Name(), i, n, ack.Err)
			}
		}
	}
}

// views reads a topic by the client and by the reference, as readers of committed records and of all. A record that is not
// transactional ends the reading; it comes behind the last marker, which is written a little after a commit was answered.
func (t *T) views(topic string, partitions int, all ...suite.Transaction) {
	t.Helper()
	t.settled(topic, partitions)
	var last []suite.Record
	for p := range partitions {
		last = append(last, suite.Record{Partition: int32(p), Value: []byte("the last")})
	}
	t.produceBy(t.Ref, suite.ProduceOptions{Topic: topic}, last)
	all = append(slices.Clone(all), suite.Transaction{Records: last, End: suite.Commit})
	for _, committed := range []bool{false, true} {
		if committed && !t.Can("committed") {
			continue
		}
		var want []string
		next := map[int32]int64{}
		for i, transaction := range all {
			for _, r := range transaction.Records {
				if !committed || transaction.End == suite.Commit {
					want = append(want, fmt.Sprintf("%d %3d %s", r.Partition, next[r.Partition], r.Value))
				}
				next[r.Partition]++
			}
			if i < len(all)-1 { // the marker
				for p := range partitions {
					next[int32(p)]++
				}
			}
		}
		for _, c := range []suite.Client{t.Client, t.Ref} {
			from := map[int32]int64{}
			for p := range partitions {
				from[int32(p)] = suite.Earliest
			}
			var got []string
			for _, r := range t.consumeBy(c, suite.ConsumeOptions{Topic: topic, From: from, ReadCommitted: committed}) {
				got = append(got, fmt.Sprintf("%d %3d %s", r.Partition, r.Offset, r.Value))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, read_committed %v: %d records\n%s\nwant %d\n%s", c.Name(), committed, len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
			}
		}
	}
}

func txnViews(t *T) {
	partitions := 8
	if !t.Can("partitions") {
		partitions = 1
	}
	topic := t.Topic("", partitions)
	var all []suite.Transaction
	for i, end := range []string{suite.Commit, suite.Abort, suite.Commit, suite.Commit, suite.Abort, suite.Abort, suite.Commit} {
		all = append(all, transaction(i, partitions, 3, end))
	}
	producer := t.Client
	if !t.Can("produce") {
		producer = t.Ref
	}
	t.Transact(producer, suite.TransactOptions{ProduceOptions: suite.ProduceOptions{Topic: topic}, TransactionalID: topic}, all...)
	t.views(topic, partitions, all...)
	if name := t.Client.Name(); name == Java || name == Franz {
		t.epochs(topic, len(all))
	}
}

// epochs looks at the producer epochs of so many transactions, as they are stored: with transactions v2 each has its own, with v1
// all have one.
func (t *T) epochs(topic string, transactions int) {
	t.Helper()
	var epochs []int16
	for _, b := range t.Stored(topic) {
		if b.Transactional && !b.Control && !slices.Contains(epochs, b.ProducerEpoch) {
			epochs = append(epochs, b.ProducerEpoch)
		}
	}
	want := transactions
	if strings.HasSuffix(t.Name, oldTransactions) {
		want = 1
	}
	if len(epochs) != want || !slices.IsSorted(epochs) {
		t.Errorf("%d transactions have the producer epochs %v, want %d", transactions, epochs, want)
	}
}

// lingering is a producer whose last transaction stays open.
type lingering struct {
	stop chan struct{}
	done chan error
}

// linger starts a producer, and waits until its last transaction is open, with all records acknowledged.
func (t *T) linger(o suite.TransactOptions, all ...suite.Transaction) *lingering {
	t.Helper()
	l := &lingering{stop: make(chan struct{}), done: make(chan error, 1)}
	open := make(chan struct{})
	o.OnOpen = func(int) { close(open) }
	c := as[suite.Transactor](t)
	go func() {
		_, err := c.Transact(t.Ctx, o, all, l.stop)
		l.done <- err
	}()
	select {
	case <-open:
	case err := <-l.done:
		t.Fatalf("the producer that was to leave its transaction open has ended: %v", err)
	case <-t.Ctx.Done():
		t.Fatalf("a transaction was to be open: %v", t.Ctx.Err())
	}
	return l
}

// fenced lets it commit, which must fail as that of a producer whose transaction is no more its own: by one of the names.
func (t *T) fenced(l *lingering, names ...string) {
	t.Helper()
	close(l.stop)
	var err error
	select {
	case err = <-l.done:
	case <-t.Ctx.Done():
		t.Fatalf("a producer that is fenced does not end: %v", t.Ctx.Err())
	}
	if err == nil {
		t.Fatalf("a producer that is fenced has committed")
	}
	if name := suite.ErrorName(err); !slices.Contains(append(names, "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), name) {
		t.Fatalf("a producer that is fenced fails with %q (%v)", name, err)
	}
}

func txnFenced(t *T) {
	const partitions = 2
	topic := t.Topic("", partitions)
	o := suite.TransactOptions{ProduceOptions: suite.ProduceOptions{Topic: topic}, TransactionalID: topic}
	all := []suite.Transaction{transaction(0, partitions, 2, suite.Commit), transaction(1, partitions, 2, suite.Linger)}
	first := t.linger(o, all...)
	heirs := transaction(2, partitions, 2, suite.Commit)
	t.Transact(t.Client, o, heirs)
	t.fenced(first)
	t.views(topic, partitions, append(all, heirs)...)
}

// txnTimeoutMs is how long a transaction may be open: more than its records take to be acknowledged on a busy machine.
const txnTimeoutMs = 10_000

func txnTimeout(t *T) {
	const partitions = 2
	topic := t.Topic("", partitions)
	o := suite.TransactOptions{ProduceOptions: suite.ProduceOptions{Topic: topic}, TransactionalID: topic, TimeoutMs: txnTimeoutMs}
	open := transaction(0, partitions, 2, suite.Linger)
	first := t.linger(o, open)
	t.settled(topic, partitions)
	t.fenced(first, "INVALID_TXN_STATE") // to a client of transactions v2, who is one epoch behind
	heirs := transaction(1, partitions, 2, suite.Commit)
	t.Transact(t.Client, o, heirs)
	t.views(topic, partitions, open, heirs)
}

// settled waits until no transaction is open in any partition.
func (t *T) settled(topic string, partitions int) {
	t.Helper()
	t.Must(suite.Eventually(t.Ctx, func() error {
		for p := range int32(partitions) {
			end, _, err := t.Ref.ListOffset(t.Ctx, topic, p, suite.Latest)
			if err != nil {
				return err
			}
			stable, err := t.Ref.LastStable(t.Ctx, topic, p)
			if err == nil && stable < end {
				err = fmt.Errorf("the last stable offset of partition %d is %d, its end %d", p, stable, end)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}), "the end of a transaction")
}

// txnCopy copies three partitions, of which each has records that are committed, aborted and committed.
func txnCopy(t *T) {
	const partitions, committed, aborted = 3, 20, 10
	from, to := t.Topic("in", partitions), t.Topic("out", partitions)
	t.Transact(t.Ref, suite.TransactOptions{ProduceOptions: suite.ProduceOptions{Topic: from}, TransactionalID: from},
		transaction(0, partitions, committed, suite.Commit), transaction(1, partitions, aborted, suite.Abort), transaction(2, partitions, committed, suite.Commit))
	o := suite.CopyOptions{
		Group: from, From: from, To: to, TransactionalID: to, SessionMs: mortalSessionMs, Batch: 10, AbortEvery: 3, Die: 30,
	}
	dead, err := as[suite.Copier](t).CopyInTransactions(t.Ctx, o, nil)
	t.Must(err, "the copy loop that dies")
	const all = partitions * 2 * committed
	if dead.Records < o.Die || dead.Records >= all {
		t.Fatalf("the copy loop died after %d records, of %d; it should have after %d", dead.Records, all, o.Die)
	}
	o.Die = 0
	heir := t.heir(o, all-dead.Records)
	if heir.Records != all-dead.Records || dead.Aborts+heir.Aborts == 0 {
		t.Errorf("the dead copied %+v, its heir %+v, of %d records", dead, heir, all)
	}
	t.settled(to, partitions)
	t.copied(to, partitions, committed)
	offsets, err := t.Ref.Committed(t.Ctx, from, from)
	t.Must(err, "what the loop has committed")
	for p := range int32(partitions) { // the last record lies before the last marker, and some count that too
		if last := int64(2*committed + aborted + 2); offsets[p] != last && offsets[p] != last+1 {
			t.Errorf("offset %d of partition %d is committed, want %d", offsets[p], p, last)
		}
	}
}

// heir runs a copy loop until it has copied so many records.
func (t *T) heir(o suite.CopyOptions, records int) suite.Copied {
	t.Helper()
	var count atomic.Int64
	o.OnCopied = func(n int) { count.Store(int64(n)) }
	stop, done := make(chan struct{}), make(chan error, 1)
	var copied suite.Copied
	c := as[suite.Copier](t)
	go func() {
		var err error
		copied, err = c.CopyInTransactions(t.Ctx, o, stop)
		done <- err
	}()
	err := waitFor(t.Ctx, func() (bool, error) {
		select {
		case err := <-done:
			return false, fmt.Errorf("it has ended: %w", err)
		default:
			return int(count.Load()) >= records, nil
		}
	})
	if err != nil {
		t.Fatalf("the heir has copied %d of %d records: %v", count.Load(), records, err)
	}
	close(stop)
	select {
	case err = <-done:
	case <-t.Ctx.Done():
		err = t.Ctx.Err()
	}
	t.Must(err, "the heir")
	return copied
}

// copied checks that the output holds each committed record of the input once, in order.
func (t *T) copied(to string, partitions, committed int) {
	t.Helper()
	for p := range int32(partitions) {
		got := t.consumeBy(t.Ref, suite.ConsumeOptions{Topic: to, From: map[int32]int64{p: suite.Earliest}, ReadCommitted: true})
		for i := range max(len(got), 2*committed) {
			value, want := "nothing", "nothing"
			if i < len(got) {
				value = string(got[i].Value)
			}
			if i < 2*committed {
				want = fmt.Sprintf("%d-%d-%d", i/committed*2, p, i%committed)
			}
			if value != want {
				t.Fatalf("record %d of partition %d is %s, want %s; %d are there", i, p, value, want, len(got))
			}
		}
	}
}
