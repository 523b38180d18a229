package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"ottla/compat/suite"
)

// member is the library's handler of a group's claims.
type member struct {
	options     suite.MemberOptions
	client      sarama.Client
	connections *suite.Lines
	enough      context.CancelFunc

	mu      sync.Mutex
	given   map[int32]bool
	records []suite.Record
}

// ReadInGroup reads as a member of a group.
func (c *client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	s := settings()
	connections := &suite.Lines{}
	s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, connections
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.Consumer.Group.Session.Timeout = time.Duration(o.SessionMs) * time.Millisecond
	s.Consumer.Group.Heartbeat.Interval = s.Consumer.Group.Session.Timeout / 10
	s.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	connected, err := sarama.NewClient([]string{c.addr}, s)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroupFromClient(o.Group, connected)
	if err != nil {
		return nil, err
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
			fmt.Fprintln(os.Stderr, "a member of", o.Group+":", err)
		}
	}()
	m := &member{options: o, client: connected, connections: connections, enough: cancel, given: map[int32]bool{}}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{o.Topic}, m); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "a member of", o.Group+":", err)
			time.Sleep(50 * time.Millisecond)
		}
	}
	if o.Die {
		go func() { _ = group.Close() }() // tries to leave, and cannot
		return m.records, nil
	}
	err = group.Close()
	_ = connected.Close()
	return m.records, err
}

// commitEvery is how often what was marked is committed.
const commitEvery = 50 * time.Millisecond

// commit commits what is marked, again and again until the session ends.
func (m *member) commit(session sarama.ConsumerGroupSession) {
	rounds := time.NewTicker(commitEvery)
	defer rounds.Stop()
	for {
		select {
		case <-rounds.C:
			session.Commit()
		case <-session.Context().Done():
			return
		}
	}
}

// Setup moves each partition to where the options say, the first time that the member is given it.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	for _, partition := range session.Claims()[m.options.Topic] {
		if m.options.Seek == "" || m.given[partition] {
			continue
		}
		m.given[partition] = true
		to := m.options.SeekAt
		if m.options.Seek != suite.SeekOffset {
			at := to
			if m.options.Seek == suite.SeekBeginning {
				at = sarama.OffsetOldest
			}
			var err error
			if to, err = m.client.GetOffset(m.options.Topic, partition, at); err != nil {
				return err
			}
		}
		session.ResetOffset(m.options.Topic, partition, to, "")
	}
	if m.options.Commit == 0 {
		go m.commit(session)
	}
	return nil
}

// Cleanup commits what was read, unless the member is dead.
func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	return nil
}

// ConsumeClaim reads one partition until it is taken away.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		if !m.take(session, message, len(claim.Messages()) == 0) {
			return nil
		}
	}
	return nil
}

// take adds a record; no when the member has enough.
func (m *member) take(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage, last bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.options
	if o.Count > 0 && len(m.records) == o.Count {
		return false
	}
	m.records = append(m.records, record(message))
	n := len(m.records)
	if o.Commit == 0 || n <= o.Commit {
		session.MarkOffset(message.Topic, message.Partition, message.Offset+1, "")
	}
	if n == o.Count && o.Commit == 0 || n == o.Commit { // what else is marked goes with the next round of commits
		session.Commit()
	}
	if o.OnRecord != nil && (last || n == o.Count) {
		o.OnRecord(n)
	}
	if n == o.Count {
		if o.Die {
			m.connections.Kill()
		}
		m.enough()
	}
	return true
}
