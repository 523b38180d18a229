package fetcher

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"ottla/protocol"
	"ottla/storage/move"
	"ottla/storage/replica"
)

// Fetchers are all fetchers of a node. All methods may be called from anywhere at any time.
type Fetchers struct {
	// Wake, if set before the first call, is called when NextDeadline became earlier. It must not block.
	Wake func()

	options  Options
	throttle move.Limit

	// mu guards what follows, and all fetchers and parts. It is not held over I/O, nor over Send.
	mu       sync.Mutex
	fetchers map[key]*fetcher
	assigned map[protocol.TopicPartition]*part
	closed   bool
}

// key names a fetcher: one of those of a leader.
type key struct {
	leader protocol.NodeID
	index  int
}

// fetcher fetches from one leader, over one session.
type fetcher struct {
	of *Fetchers
	key
	parts     []*part // in the order in which they were assigned
	byID      map[partID]*part
	changed   []*part // what the next step has to look at
	delayed   []*part // until their notBefore
	forgotten []name  // to be taken out of the session
	session   session
	busy      bool      // a step is under way, or a request
	due       time.Time // of the next step, while not busy; zero: never
	notBefore time.Time // after a failure of the whole request
	failures  int       // in a row
	requests  meter     // fetches that were sent
}

// state is what a part waits for.
type state int8

const (
	starting state = iota // its position is to be asked of the replica
	fetching
	locating // the leader's log is elsewhere: its start and end are to be asked
	failed   // the disk here failed; only another assignment helps
)

// name is how a request names a partition.
type name struct {
	topicID protocol.TopicID
	tp      protocol.TopicPartition
}

// partID is how an answer names a partition.
type partID struct {
	topicID   protocol.TopicID
	partition int32
}

// part is one partition in one leader epoch.
type part struct {
	name
	fetcher   *fetcher
	epoch     protocol.LeaderEpoch
	state     state
	position  replica.FollowerPosition
	leaderEnd protocol.Offset // NoOffset: not yet known; of locating
	notBefore time.Time       // a pause after an error; not zero: is in delayed
	unheard   int             // so often was it refused by who had not heard of this leader epoch, or has since forgotten it
	asked     *asked          // what the session has of it; nil: nothing
	marked    bool            // is in changed
	gone      bool            // no longer assigned
	answered  bool
	lag       int64 // in records, behind the leader's high watermark
}

// New makes Fetchers that fetch nothing.
func New(options Options) *Fetchers {
	options.setDefaults()
	return &Fetchers{options: options, fetchers: map[key]*fetcher{}, assigned: map[protocol.TopicPartition]*part{}}
}

// Assign has a partition fetched from its leader in a leader epoch, from where its log ends. It is to be called after
// Manager.Apply has made the replica a follower in that epoch. What is fetched in this epoch already goes on; a former
// assignment ends.
func (f *Fetchers) Assign(now time.Time, tp protocol.TopicPartition, topicID protocol.TopicID, leader protocol.NodeID, epoch protocol.LeaderEpoch) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	k := key{leader, f.indexOf(tp)}
	if p := f.assigned[tp]; p != nil {
		if p.fetcher.key == k && p.epoch == epoch && p.topicID == topicID {
			f.mu.Unlock()
			return
		}
		p.leave()
	}
	one := f.fetchers[k]
	if one == nil {
		one = &fetcher{of: f, key: k, byID: map[partID]*part{}}
		f.fetchers[k] = one
	}
	p := &part{name: name{topicID, tp}, fetcher: one, epoch: epoch}
	f.assigned[tp] = p
	one.parts = append(one.parts, p)
	one.byID[partID{topicID, tp.Partition}] = p
	p.mark()
	one.dueAt(now)
	f.mu.Unlock()
	f.wake()
}

// indexOf spreads the partitions over the fetchers of a leader.
func (f *Fetchers) indexOf(tp protocol.TopicPartition) int {
	hash := fnv.New32a()
	hash.Write([]byte(tp.Topic))
	return int((hash.Sum32() + uint32(tp.Partition)) % uint32(f.options.Count))
}

// Unassign ends the fetching of a partition: its leader is this node or nobody, or the replica is gone. It is to be
// called after the replica has its new role, or none: a step under way then has no effect any more.
func (f *Fetchers) Unassign(tp protocol.TopicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.assigned[tp]; p != nil {
		p.leave()
	}
}

// leave takes a part out of everything. mu is held.
func (p *part) leave() {
	p.gone = true
	one := p.fetcher
	delete(one.of.assigned, p.tp)
	one.parts = without(one.parts, p)
	if id := (partID{p.topicID, p.tp.Partition}); one.byID[id] == p {
		delete(one.byID, id)
	}
	if p.marked { // and stays so: it is not to come in again
		one.changed = without(one.changed, p)
	}
	if !p.notBefore.IsZero() {
		one.delayed = without(one.delayed, p)
	}
	p.refresh()
	one.dropIfIdle()
}

// refresh takes a part out of the session. When it comes in again the leader tells all of it, also the high watermark that it
// has told already: in an answer that meant another assignment, or that this part could not take. mu is held.
func (p *part) refresh() {
	if p.asked != nil {
		p.asked = nil
		p.fetcher.session.members--
		p.fetcher.forgotten = append(p.fetcher.forgotten, p.name)
	}
}

func without(list []*part, gone *part) []*part {
	if at := slices.Index(list, gone); at >= 0 {
		return slices.Delete(list, at, at+1)
	}
	return list
}

// dropIfIdle forgets a fetcher that has nothing to do. The leader forgets its session when it needs the room.
func (one *fetcher) dropIfIdle() {
	if !one.busy && len(one.parts) == 0 && one.of.fetchers[one.key] == one {
		delete(one.of.fetchers, one.key)
	}
}

// mark has the next step look at a part. mu is held.
func (p *part) mark() {
	if !p.marked {
		p.marked = true
		p.fetcher.changed = append(p.fetcher.changed, p)
	}
}

// delay pauses a part. mu is held.
func (p *part) delay(until time.Time) {
	if p.notBefore.IsZero() {
		p.fetcher.delayed = append(p.fetcher.delayed, p)
	}
	p.notBefore = until
	p.mark() // so that it leaves the session
}

// dueAt says that a step has something to do at a time. mu is held.
func (one *fetcher) dueAt(at time.Time) {
	if one.busy {
		return
	}
	if at.Before(one.notBefore) {
		at = one.notBefore
	}
	if one.due.IsZero() || at.Before(one.due) {
		one.due = at
	}
}

// SetThrottle says how many bytes a second all throttled partitions of the node together may fetch while they are not
// in sync (follower.replication.throttled.rate); a negative number is no limit.
func (f *Fetchers) SetThrottle(bytesPerSecond int64) { f.throttle.Set(bytesPerSecond) }

// Tick starts the steps that are due.
func (f *Fetchers) Tick(now time.Time) {
	f.mu.Lock()
	var due []*fetcher
	for _, one := range f.fetchers {
		if !one.busy && !one.due.IsZero() && !one.due.After(now) {
			one.busy, one.due = true, time.Time{}
			due = append(due, one)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(due, func(a, b *fetcher) int {
		return cmp.Or(cmp.Compare(a.leader, b.leader), cmp.Compare(a.index, b.index))
	})
	for _, one := range due {
		f.options.Workers(func() { one.step(now) })
	}
}

// NextDeadline is when Tick has something to do; zero: never.
func (f *Fetchers) NextDeadline() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var next time.Time
	for _, one := range f.fetchers {
		if !one.busy && !one.due.IsZero() && (next.IsZero() || one.due.Before(next)) {
			next = one.due
		}
	}
	return next
}

// Close ends all fetching. An answer that comes later is dropped.
func (f *Fetchers) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, p := range f.assigned { // the order reaches nobody
		p.leave()
	}
}

func (f *Fetchers) wake() {
	if f.Wake != nil {
		f.Wake()
	}
}
