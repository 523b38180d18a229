package replica

import (
	"time"

	"ottla/protocol"
)

// Tick does what is due: answers those whose time is up, looks for followers
// that lag, and writes the high watermark checkpoint.
func (m *Manager) Tick(now time.Time) {
	m.timers.Expire(now)
	m.tickMu.Lock()
	checkISR := !now.Before(m.nextISRCheck)
	if checkISR {
		m.nextISRCheck = now.Add(m.options.LagTimeMax / 2)
	}
	checkpoint := !now.Before(m.nextCheckpoint)
	if checkpoint {
		m.nextCheckpoint = now.Add(m.options.CheckpointInterval)
	}
	m.tickMu.Unlock()
	if checkISR {
		m.checkISR(now)
	}
	m.tickMoves(now)
	if checkpoint && m.checkpointing.CompareAndSwap(false, true) {
		m.options.Workers(func() {
			defer m.checkpointing.Store(false)
			if err := m.checkpoint(); err != nil {
				m.options.Logger.Error("the high watermark checkpoint cannot be written", "error", err)
			}
		})
	}
}

// NextDeadline is when Tick is to be called next, at the latest.
func (m *Manager) NextDeadline() time.Time {
	m.tickMu.Lock()
	next := m.nextCheckpoint
	if m.nextISRCheck.Before(next) {
		next = m.nextISRCheck
	}
	m.tickMu.Unlock()
	for _, at := range [...]time.Time{m.timers.Next(), m.moves.Next()} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// checkISR proposes smaller ISRs where followers lag.
func (m *Manager) checkISR(now time.Time) {
	for _, r := range m.sorted() {
		if len(r.view.Load().ISR) < 2 {
			continue
		}
		r.stateMu.Lock()
		s := r.publish(r.core.Tick(now), false)
		r.stateMu.Unlock()
		r.settle(s)
	}
}

// checkpoint writes the high watermarks that have moved.
func (m *Manager) checkpoint() error {
	m.checkpointMu.Lock()
	defer m.checkpointMu.Unlock()
	offsets := make(map[protocol.TopicPartition]protocol.Offset)
	var moved []*Replica
	m.replicas.Range(func(_, value any) bool {
		r := value.(*Replica)
		if offset := protocol.Offset(r.highWatermark.Load()); offset != r.checkpointed {
			offsets[r.tp] = offset
			moved = append(moved, r)
		}
		return true
	})
	if len(offsets) == 0 {
		return nil
	}
	if err := m.options.Store.CheckpointHighWatermarks(offsets); err != nil {
		return err
	}
	for _, r := range moved {
		r.checkpointed = offsets[r.tp]
	}
	return nil
}

// failDirectory takes the directory of a replica offline after a failure that
// leaves its files in doubt.
func (m *Manager) failDirectory(r *Replica, err error) {
	m.options.Logger.Error("a log directory failed", "partition", r.tp.String(), "error", err)
	id, known := m.options.Store.DirectoryOf(r.tp)
	if !known {
		r.offline()
		return
	}
	m.options.Store.FailDirectory(id, err)
	m.DirectoryFailed(id)
}

// DirectoryFailed takes every replica of a log directory offline: those who wait
// get KAFKA_STORAGE_ERROR. It may be called again for the same directory.
func (m *Manager) DirectoryFailed(id protocol.DirectoryID) {
	for _, r := range m.sorted() {
		if of, known := m.options.Store.DirectoryOf(r.tp); known && of == id {
			r.offline()
		}
	}
}

// PartitionFailed takes one replica offline: those who wait get
// KAFKA_STORAGE_ERROR.
func (m *Manager) PartitionFailed(tp protocol.TopicPartition) {
	if value, found := m.replicas.Load(tp); found {
		value.(*Replica).offline()
	}
}

func (r *Replica) offline() {
	r.stateMu.Lock()
	s := r.publish(r.core.Fail(), false)
	r.stateMu.Unlock()
	r.settle(s)
}

// Close answers everyone who waits and writes the high watermarks. The logs are
// the store's to close, after this.
func (m *Manager) Close(now time.Time) error {
	for _, mv := range m.moves.Accepted() {
		m.swap(now, mv) // Apache Kafka, if it is the next on the directories, would take the future log as it is
	}
	m.lifecycle.Lock()
	defer m.lifecycle.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.moves.Stop()
	err := m.checkpoint()
	for _, r := range m.sorted() {
		r.appendMu.Lock()
		s := r.leave(protocol.Errorf(protocol.NotLeaderOrFollower, "the node is shutting down"))
		r.appendMu.Unlock()
		r.settle(s)
		r.pump(now)
	}
	return err
}
