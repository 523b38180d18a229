package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"ottla/compat/suite"
)

// transactional is a producer in transactions, whose records are counted.
type transactional struct {
	producer sarama.AsyncProducer
	wait     func() // until the producer has said all

	mu   sync.Mutex
	acks []suite.Ack // of the transaction under way
	left int
	none chan struct{} // closed when nothing is left
}

func (c *client) transactional(id string, timeoutMs int, lines *suite.Lines) (*transactional, error) {
	s, err := producerSettings(suite.ProduceOptions{Idempotent: true})
	if err != nil {
		return nil, err
	}
	s.Producer.Transaction.ID = id
	s.Producer.Transaction.Retry.Max, s.Producer.Transaction.Retry.Backoff = 600, 50*time.Millisecond
	if timeoutMs > 0 {
		s.Producer.Transaction.Timeout = time.Duration(timeoutMs) * time.Millisecond
	}
	if lines != nil {
		s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, lines
	}
	producer, err := sarama.NewAsyncProducer([]string{c.addr}, s)
	if err != nil {
		return nil, err
	}
	t := &transactional{producer: producer}
	t.wait = collect(producer, t.done)
	return t, nil
}

func (t *transactional) done(i int, ack suite.Ack) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acks[i] = ack
	if t.left--; t.left == 0 {
		close(t.none)
	}
}

// send sends the messages of a transaction and waits for all acknowledgements.
func (t *transactional) send(messages []*sarama.ProducerMessage) []suite.Ack {
	t.mu.Lock()
	t.acks, t.left, t.none = make([]suite.Ack, len(messages)), len(messages), make(chan struct{})
	none := t.none
	if len(messages) == 0 {
		close(none)
	}
	t.mu.Unlock()
	for _, m := range messages {
		t.producer.Input() <- m
	}
	<-none
	return t.acks
}

func (t *transactional) close() {
	t.producer.AsyncClose()
	t.wait()
}

// Transact produces in transactions.
func (c *client) Transact(_ context.Context, o suite.TransactOptions, transactions []suite.Transaction, stop <-chan struct{}) ([][]suite.Ack, error) {
	t, err := c.transactional(o.TransactionalID, o.TimeoutMs, nil)
	if err != nil {
		return nil, err
	}
	defer t.close()
	var answers [][]suite.Ack
	for _, transaction := range transactions {
		if err := t.producer.BeginTxn(); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
		messages := make([]*sarama.ProducerMessage, len(transaction.Records))
		for i, r := range transaction.Records {
			messages[i] = message(o.Topic, r, i)
		}
		answers = append(answers, t.send(messages))
		end := t.producer.CommitTxn
		switch transaction.End {
		case suite.Abort:
			end = t.producer.AbortTxn
		case suite.Linger:
			o.OnOpen(len(answers))
			<-stop
		}
		if err := end(); err != nil {
			return nil, fmt.Errorf("%s: %w", transaction.End, err)
		}
	}
	return answers, nil
}

// copier is a copy loop under way: the library's handler of a group's claims.
type copier struct {
	o     suite.CopyOptions
	lines *suite.Lines
	over  context.CancelFunc

	mu       sync.Mutex // over transactions, of which the producer has one at a time
	producer *transactional
	done     suite.Copied
	died     bool
	failed   error // after which the producer is of no use
}

// CopyInTransactions copies from topic to topic until stop is closed or it dies.
func (c *client) CopyInTransactions(ctx context.Context, o suite.CopyOptions, stop <-chan struct{}) (suite.Copied, error) {
	s, lines := settings(), &suite.Lines{}
	s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, lines
	s.Consumer.IsolationLevel = sarama.ReadCommitted
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.Consumer.Group.Session.Timeout = time.Duration(o.SessionMs) * time.Millisecond
	s.Consumer.Group.Heartbeat.Interval = s.Consumer.Group.Session.Timeout / 10
	s.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	if o.Batch == 0 {
		o.Batch = 100
	}
	producer, err := c.transactional(o.TransactionalID, o.TimeoutMs, lines)
	if err != nil {
		return suite.Copied{}, err
	}
	group, err := sarama.NewConsumerGroup([]string{c.addr}, o.Group, s)
	if err != nil {
		return suite.Copied{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		for err := range group.Errors() { // they pass: it joins again
			fmt.Fprintln(os.Stderr, "a copy loop of", o.Group+":", err)
		}
	}()
	l := &copier{o: o, lines: lines, over: cancel, producer: producer}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{o.From}, l); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "a copy loop of", o.Group+":", err)
			time.Sleep(50 * time.Millisecond)
		}
	}
	if l.died {
		go func() { _ = group.Close() }() // tries to leave, and cannot
		go producer.close()
		return l.done, nil
	}
	producer.close()
	return l.done, errors.Join(l.failed, group.Close())
}

// Setup does nothing.
func (l *copier) Setup(sarama.ConsumerGroupSession) error { return nil }

// Cleanup does nothing: offsets go with transactions.
func (l *copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim copies one partition until it is taken away. What was read and not copied for good the next session reads again.
func (l *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for first := range claim.Messages() {
		read := []*sarama.ConsumerMessage{first}
		for len(read) < l.o.Batch && len(claim.Messages()) > 0 {
			if m, ok := <-claim.Messages(); ok {
				read = append(read, m)
			}
		}
		for copied := false; !copied; {
			var err error
			if copied, err = l.copy(session, read); err != nil || session.Context().Err() != nil || l.died {
				return err
			}
		}
	}
	return nil
}

// copy copies what was read in a transaction, and says whether it was committed. After an abort that was wanted the same is sent
// again: a claim cannot be moved back.
func (l *copier) copy(session sarama.ConsumerGroupSession, read []*sarama.ConsumerMessage) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if session.Context().Err() != nil || l.died || l.failed != nil {
		return false, nil
	}
	p := l.producer.producer
	if err := p.BeginTxn(); err != nil {
		return false, l.fail(err)
	}
	messages := make([]*sarama.ProducerMessage, len(read))
	for i, m := range read {
		messages[i] = message(l.o.To, record(m), i)
		messages[i].Timestamp = time.Time{}
	}
	var failed error
	for _, ack := range l.producer.send(messages) {
		if ack.Err != "" {
			failed = errors.New(ack.Err)
		}
	}
	if l.o.Die > 0 && l.done.Records >= l.o.Die && failed == nil {
		l.died = true
		l.lines.Kill()
		l.over()
		return false, nil
	}
	if failed == nil {
		failed = p.AddMessageToTxnWithGroupMetadata(read[len(read)-1], &sarama.ConsumerGroupMetadata{
			GroupID: l.o.Group, MemberID: session.MemberID(), GenerationID: session.GenerationID(),
		}, nil)
	}
	if all := l.done.Commits + l.done.Aborts + 1; failed == nil && (l.o.AbortEvery == 0 || all%l.o.AbortEvery != 0) {
		if failed = p.CommitTxn(); failed == nil {
			l.done.Commits++
			l.done.Records += len(read)
			if l.o.OnCopied != nil {
				l.o.OnCopied(l.done.Records)
			}
			return true, nil
		}
	}
	if p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0 {
		return false, l.fail(failed)
	}
	if err := p.AbortTxn(); err != nil {
		return false, l.fail(errors.Join(failed, err))
	}
	l.done.Aborts++
	return false, failed
}

// fail ends the loop.
func (l *copier) fail(err error) error {
	l.failed = err
	l.over()
	return err
}

var _ interface {
	suite.Transactor
	suite.Copier
} = (*client)(nil)
