package broker

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/controller/txn"
	"ottla/protocol"
)

const (
	// A marker that was not written is tried again after a pause that doubles from
	// the first to the last of these.
	firstMarkerRetry = 10 * time.Millisecond
	lastMarkerRetry  = time.Second
	// maxMarkers bounds the transactions of one WriteTxnMarkers.
	maxMarkers = 1000
)

// SendTo sends a request to a broker, this one included. done is called once,
// from anywhere, with a response or an error.
type SendTo func(to protocol.NodeID, req kmsg.Request, done func(kmsg.Response, error))

// MarkersOptions is what Markers needs.
type MarkersOptions struct {
	NodeID protocol.NodeID
	Image  func() *metadata.Image
	SendTo SendTo
	// Submit gives a request to the transaction coordinator of a partition of
	// __transaction_state on this node.
	Submit func(now time.Time, partition int32, request any, done func(reply any, err error))
	// ProducerID draws a producer id.
	ProducerID func(done func(protocol.ProducerID, error))
	Wake       func()
	Logger     *slog.Logger
}

// Markers carries out what the transaction coordinators of this node decide: it
// has the markers of a transaction written by the leaders of its partitions, again
// and again until each has its own or is gone, and reports back. The requests are
// the same whether a leader is another broker or this one.
//
// There is at most one request on its way to a broker; what comes meanwhile goes
// into the next. What a coordinator that lost its partition has asked for is
// dropped: whoever has it now asks anew.
type Markers struct {
	options MarkersOptions
	counts  markerCounts

	mu    sync.Mutex
	inbox []func(now time.Time) // for the next Tick

	// What follows belongs to Tick.
	tasks   map[markerKey]*markerTask
	changed map[markerKey]bool       // tasks to look at
	busy    map[protocol.NodeID]bool // a request is on its way
	retry   time.Time                // when to look at those that wait; zero: none does
}

// markerKey names a transaction: a transactional id is of one partition, and has
// one transaction at a time.
type markerKey struct {
	partition int32 // of __transaction_state
	id        string
}

// markerTask is a transaction whose markers are being written.
type markerTask struct {
	key      markerKey
	markers  txn.WriteMarkers
	targets  map[protocol.TopicPartition]*markerTarget // those that have no marker yet
	written  []protocol.TopicPartition                 // to be reported
	due      time.Time                                 // of the next report; zero: at once
	attempts int                                       // of reports
}

// markerTarget is one partition.
type markerTarget struct {
	sent     bool
	attempts int
	due      time.Time // zero: at once
}

// NewMarkers makes Markers with nothing to do.
func NewMarkers(options MarkersOptions) *Markers {
	return &Markers{options: options, tasks: map[markerKey]*markerTask{}, changed: map[markerKey]bool{}, busy: map[protocol.NodeID]bool{}}
}

// Carry takes an effect of the coordinator of a partition.
func (m *Markers) Carry(partition int32, effect any) {
	switch effect := effect.(type) {
	case txn.WriteMarkers:
		m.later(func(time.Time) { m.begin(markerKey{partition, effect.TransactionalID}, effect) })
	case txn.DrawProducerID:
		m.draw(partition)
	default:
		m.options.Logger.Error("an effect of a transaction coordinator is not known", "effect", effect)
	}
}

// later has the next Tick run something.
func (m *Markers) later(run func(now time.Time)) {
	m.mu.Lock()
	m.inbox = append(m.inbox, run)
	m.mu.Unlock()
	m.options.Wake()
}

// NextDeadline is when Tick has something to do; zero: never.
func (m *Markers) NextDeadline(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inbox) > 0 {
		return now
	}
	return m.retry
}

// Tick works: it takes what came, sends what can be sent, reports what is written.
func (m *Markers) Tick(now time.Time) {
	m.mu.Lock()
	inbox := m.inbox
	m.inbox = nil
	m.mu.Unlock()
	for _, run := range inbox {
		run(now)
	}
	retry := m.retryTime()
	if !retry.IsZero() && !retry.After(now) {
		for key := range m.tasks {
			m.changed[key] = true
		}
	}
	m.work(now)
	m.mu.Lock()
	m.retry = m.nextRetry(now)
	m.mu.Unlock()
}

func (m *Markers) retryTime() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retry
}

// begin takes a transaction, in the place of what was asked for the same id before.
func (m *Markers) begin(key markerKey, markers txn.WriteMarkers) {
	task := &markerTask{key: key, markers: markers, targets: map[protocol.TopicPartition]*markerTarget{}}
	for _, tp := range markers.Partitions {
		task.targets[tp] = &markerTarget{}
	}
	m.tasks[key] = task
	m.changed[key] = true
}

// draw draws a producer id for a coordinator. If there is none to be had, the
// coordinator asks again when it looks at its transactions next.
func (m *Markers) draw(partition int32) {
	m.options.ProducerID(func(id protocol.ProducerID, err error) {
		m.later(func(now time.Time) {
			if err != nil {
				m.options.Logger.Warn("a producer id for the abort of a transaction could not be had yet", "error", err)
				id = protocol.NoProducerID
			}
			m.options.Submit(now, partition, txn.ProducerIDDrawn{ID: id}, func(any, error) {})
		})
	})
}

// work looks at the tasks that changed: it reports, and gathers what is to be sent.
func (m *Markers) work(now time.Time) {
	image := m.options.Image()
	gathered := map[protocol.NodeID][]*sentMarkers{}
	for _, key := range sortedMarkerKeys(m.changed) {
		task := m.tasks[key]
		if task == nil || !m.coordinates(image, task) {
			delete(m.tasks, key)
			delete(m.changed, key)
			continue
		}
		waits := m.gather(now, image, task, gathered)
		if len(task.written) > 0 && !task.due.After(now) {
			m.report(now, task)
		}
		if !waits {
			delete(m.changed, key)
		}
	}
	for _, to := range slices.Sorted(maps.Keys(gathered)) {
		m.send(to, gathered[to])
	}
}

func sortedMarkerKeys(keys map[markerKey]bool) []markerKey {
	return slices.SortedFunc(maps.Keys(keys), func(a, b markerKey) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), strings.Compare(a.id, b.id))
	})
}

// coordinates tells whether the coordinator that asked is still the one.
func (m *Markers) coordinates(image *metadata.Image, task *markerTask) bool {
	p := image.Partition(protocol.TopicPartition{Topic: protocol.TransactionStateTopic, Partition: task.key.partition})
	return p != nil && p.Leader == m.options.NodeID && int32(p.LeaderEpoch) == task.markers.CoordinatorEpoch
}

// gather adds the task's partitions that are due to what is sent to their leaders.
// It tells whether some wait for a broker that is busy.
func (m *Markers) gather(now time.Time, image *metadata.Image, task *markerTask, to map[protocol.NodeID][]*sentMarkers) (waits bool) {
	mine := map[protocol.NodeID]*sentMarkers{}
	for _, tp := range slices.SortedFunc(maps.Keys(task.targets), protocol.TopicPartition.Compare) {
		target := task.targets[tp]
		if target.sent || target.due.After(now) {
			continue
		}
		is := image.Partition(tp)
		switch {
		case is == nil: // it was deleted, and what was in it
			delete(task.targets, tp)
			task.written = append(task.written, tp)
			continue
		case image.Broker(is.Leader) == nil || image.Broker(is.Leader).Fenced:
			target.failed(now)
			continue
		case m.busy[is.Leader] || mine[is.Leader] == nil && len(to[is.Leader]) >= maxMarkers:
			waits = true
			continue
		}
		if mine[is.Leader] == nil {
			mine[is.Leader] = &sentMarkers{task: task}
			to[is.Leader] = append(to[is.Leader], mine[is.Leader])
		}
		target.sent = true
		mine[is.Leader].partitions = append(mine[is.Leader].partitions, tp)
	}
	return waits
}

func (t *markerTarget) failed(now time.Time) {
	t.sent = false
	t.due = now.Add(min(firstMarkerRetry<<min(t.attempts, 10), lastMarkerRetry))
	t.attempts++
}

// markerCounts are as of the last Tick.
type markerCounts struct{ transactions, unreached, unreported atomic.Int64 }

// MarkerCounts say what Markers has to do.
type MarkerCounts struct {
	Transactions int64 // that are being ended
	Unreached    int64 // partitions without a marker whose leader was not reached yet (UnknownDestinationQueueSize)
	Unreported   int64 // transactions whose coordinator could not take a report yet (LogAppendRetryQueueSize)
}

// Counts tells what there was to do after the last Tick.
func (m *Markers) Counts() MarkerCounts {
	return MarkerCounts{m.counts.transactions.Load(), m.counts.unreached.Load(), m.counts.unreported.Load()}
}

// nextRetry is when the first of those that wait is due; it counts them on the way.
func (m *Markers) nextRetry(now time.Time) time.Time {
	var first time.Time
	var unreached, unreported int64
	defer func() {
		m.counts.transactions.Store(int64(len(m.tasks)))
		m.counts.unreached.Store(unreached)
		m.counts.unreported.Store(unreported)
	}()
	for _, task := range m.tasks {
		for _, target := range task.targets {
			if !target.sent && target.attempts > 0 {
				unreached++
			}
			if !target.sent && target.due.After(now) && (first.IsZero() || target.due.Before(first)) {
				first = target.due
			}
		}
		if len(task.written) > 0 && task.attempts > 0 {
			unreported++
		}
		if len(task.written) > 0 && task.due.After(now) && (first.IsZero() || task.due.Before(first)) {
			first = task.due
		}
	}
	return first
}
