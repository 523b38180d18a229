package replica

import (
	"sync"
	"time"

	"ottla/protocol"
	"ottla/protocol/wire"
	"ottla/storage/deadlines"
	"ottla/storage/partition"
)

// Fetch reads from many partitions, in the order of the request (KIP-74): the
// first that has records gives at least one batch, whatever its size; all others
// keep to their MaxBytes and to what is left of the request's. done is called
// once with one result for each partition: at once if a partition failed, has
// diverged, or there are MinBytes; else when there are, or at MaxWait.
//
// cancel ends the waiting: done is called with what there is. It may be called
// at any time, also after done.
func (m *Manager) Fetch(now time.Time, req FetchRequest, done func([]FetchResult)) (cancel func()) {
	p := &poll{manager: m, now: now, req: req, done: done, slots: make([]slot, len(req.Partitions))}
	for i := range req.Partitions {
		s := &p.slots[i]
		s.index = -1
		s.replica, s.err = m.find(req.Partitions[i].Partition, req.Partitions[i].TopicID)
	}
	p.noteFollower(now)
	results, enough := p.readAll()
	if enough || req.MaxWait <= 0 || m.polling.Add(1) > int64(m.options.MaxFetchWaiters) {
		if !enough && req.MaxWait > 0 {
			m.polling.Add(-1)
		}
		p.count(results)
		done(results)
		return func() {}
	}
	release(results)
	p.wait(now.Add(req.MaxWait))
	return p.end
}

// release gives back the regions of results that nobody gets.
func release(results []FetchResult) {
	for i := range results {
		results[i].Records.Release()
		results[i].Records = wire.Region{}
	}
}

// poll is one Fetch and, if it found too little, one waiter on all its
// partitions. It holds no region, file or lock while it waits: when woken it
// looks whether anything it depends on has changed, and reads anew.
type poll struct {
	manager *Manager
	now     time.Time // when it came
	req     FetchRequest
	done    func([]FetchResult)
	slots   []slot
	timer   deadlines.Timer

	mu      sync.Mutex // guards what follows; a leaf
	running bool       // somebody looks, or the poll is over; others only leave a note
	dirty   []int      // slots with a note
	ending  bool       // the time is up, or it was cancelled
}

// slot is one partition of a poll.
type slot struct {
	replica *Replica // nil: err
	err     error
	at      position // what the last read depended on
	bytes   int64    // what it found
	dirty   bool     // guarded by poll.mu
	index   int      // in Replica.polls, guarded by its stateMu; -1 when not in it
}

// pollRef is a poll's registration with one partition.
type pollRef struct {
	poll *poll
	slot int
}

// noteFollower tells each partition's core how far the fetching follower is.
// It is done once for a request, before the read: what the follower has is known
// whatever it will get.
func (p *poll) noteFollower(now time.Time) {
	if p.req.Replica < 0 {
		return
	}
	for i := range p.slots {
		s := &p.slots[i]
		if s.err == nil {
			s.err = s.replica.followerFetched(now, &p.req, &p.req.Partitions[i])
		}
	}
}

// followerFetched takes note of a follower's position, unless its fetch is to be
// refused anyhow or its log has another history than ours.
func (r *Replica) followerFetched(now time.Time, req *FetchRequest, part *FetchPartition) error {
	role := r.view.Load()
	if r.admitFetch(req, part, role) != nil {
		return nil // the read will say so
	}
	view := r.log().View()
	if part.Offset < view.LogStartOffset || part.Offset > view.LogEndOffset {
		return nil
	}
	if part.LastFetchedEpoch != protocol.NoLeaderEpoch {
		if diverging, err := r.diverging(part, view.LogStartOffset); diverging != nil || err != nil {
			return nil
		}
	}
	fetch := partition.FollowerFetch{
		Replica: req.Replica, LeaderEpoch: role.LeaderEpoch, BrokerEpoch: req.ReplicaEpoch, Offset: part.Offset,
		LogStart: part.FollowerLogStart, LeaderEnd: view.LogEndOffset,
	}
	r.stateMu.Lock()
	effects, err := r.core.FollowerFetched(now, fetch, r.manager.options.Brokers)
	s := r.publish(effects, false)
	r.stateMu.Unlock()
	r.settle(s)
	return err
}

// readAll reads every partition and tells whether the answer is due.
func (p *poll) readAll() (results []FetchResult, enough bool) {
	results = make([]FetchResult, len(p.slots))
	left, atLeastOne := p.req.MaxBytes, true
	found := int64(0)
	for i := range p.slots {
		if p.mustWait(i) {
			results[i] = p.readSlot(i, 0, false)
		} else {
			results[i] = p.readSlot(i, max(0, min(p.req.Partitions[i].MaxBytes, left)), atLeastOne)
		}
		size := results[i].Records.Len()
		if size > 0 {
			atLeastOne = false
		}
		left = max(0, left-limitInt(size))
		found += size
		enough = enough || immediate(&results[i])
	}
	return results, enough || len(p.slots) == 0 || found >= int64(p.req.MinBytes)
}

// readSlot reads one partition and remembers what the outcome depended on.
func (p *poll) readSlot(i, maxBytes int, atLeastOne bool) FetchResult {
	s := &p.slots[i]
	if s.replica == nil {
		return failedFetch(clientError(s.err))
	}
	s.at = s.replica.position(&p.req)
	if s.err != nil {
		result := failedFetch(clientError(s.err))
		result.CurrentLeader = currentLeader(s.at.view, s.err)
		return result
	}
	result := s.replica.read(&p.req, &p.req.Partitions[i], s.at, maxBytes, atLeastOne)
	s.bytes = result.Records.Len()
	return result
}

// immediate tells a result that is answered whatever MinBytes says.
func immediate(r *FetchResult) bool {
	return r.Err != nil || r.Diverging != nil || r.PreferredReadReplica != protocol.NoNode
}

// wait registers with every partition and then looks again, so that nothing
// that came between the read and the registration is missed.
func (p *poll) wait(deadline time.Time) {
	p.timer = deadlines.Timer{At: deadline, Expire: func(time.Time) { p.end() }}
	p.running = true // who wakes us before we are ready only leaves a note
	for i := range p.slots {
		p.slots[i].replica.register(p, i)
	}
	earlier := p.manager.timers.Add(&p.timer)
	for i := range p.slots {
		p.note(i)
	}
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
	p.look()
	if earlier {
		p.manager.timers.Wake()
	}
}

func (r *Replica) register(p *poll, i int) {
	r.stateMu.Lock()
	p.slots[i].index = len(r.polls)
	r.polls = append(r.polls, pollRef{p, i})
	r.stateMu.Unlock()
}

// unregister fills the gap with the last, so the order is that of a repeatable
// run, not of a map.
func (r *Replica) unregister(p *poll, i int) {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	at := p.slots[i].index
	if at < 0 {
		return
	}
	last := len(r.polls) - 1
	moved := r.polls[last]
	r.polls[at] = moved
	moved.poll.slots[moved.slot].index = at
	r.polls[last] = pollRef{}
	r.polls = r.polls[:last]
	p.slots[i].index = -1
}

// wake says that something happened to a slot's partition.
func (p *poll) wake(i int) {
	p.note(i)
	p.look()
}

func (p *poll) note(i int) {
	p.mu.Lock()
	if !p.slots[i].dirty {
		p.slots[i].dirty = true
		p.dirty = append(p.dirty, i)
	}
	p.mu.Unlock()
}

// end makes the poll answer with what there is.
func (p *poll) end() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.look()
}

// look examines what was noted, by one goroutine at a time: who comes meanwhile
// leaves, and the one who looks sees the note before going.
func (p *poll) look() {
	p.mu.Lock()
	if p.running {
		p.mu.Unlock()
		return
	}
	p.running = true
	for p.ending || len(p.dirty) > 0 {
		ending, dirty := p.ending, p.dirty
		p.dirty = nil
		for _, i := range dirty {
			p.slots[i].dirty = false
		}
		p.mu.Unlock()
		if ending || p.examine(dirty) {
			p.finish() // running stays set: nobody looks again
			return
		}
		p.mu.Lock()
	}
	p.running = false
	p.mu.Unlock()
}

// examine reads the slots whose position moved, and tells whether the answer is
// due. The regions are given back: the answer reads all partitions in order.
func (p *poll) examine(dirty []int) bool {
	for _, i := range dirty {
		s := &p.slots[i]
		now := s.replica.position(&p.req)
		if now == s.at {
			continue
		}
		if p.req.MinBytes <= 1 && now.bound > p.req.Partitions[i].Offset {
			return true // there is something, however much
		}
		result := p.readSlot(i, p.req.Partitions[i].MaxBytes, true)
		due := immediate(&result)
		result.Records.Release()
		if due {
			return true
		}
	}
	found := int64(0)
	for i := range p.slots {
		found += p.slots[i].bytes
	}
	return found >= int64(p.req.MinBytes)
}

// finish answers. Only one goroutine comes here, once.
func (p *poll) finish() {
	p.manager.timers.Remove(&p.timer)
	for i := range p.slots {
		p.slots[i].replica.unregister(p, i)
	}
	p.manager.polling.Add(-1)
	results, _ := p.readAll()
	p.count(results)
	p.done(results)
}
