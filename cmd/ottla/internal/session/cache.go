package session

import (
	"math"
	"time"

	"ottla/protocol"
)

// Options of a Cache.
type Options struct {
	// Slots is max.incremental.fetch.session.cache.slots, default 1,000.
	Slots int
	// MinEviction is min.incremental.fetch.session.eviction.ms, default 2 minutes:
	// a session younger than that is not evicted for a larger one.
	MinEviction time.Duration
	// MaxPartitions bounds what all sessions hold together; default 500,000,
	// which is about 100 MB. Kafka has no such bound.
	MaxPartitions int
	// Random gives session ids.
	Random func() uint64
}

// Cache holds the sessions of a broker.
type Cache struct {
	options    Options
	sessions   map[int32]*session
	partitions int
	evictions  int64
}

// NewCache makes an empty cache.
func NewCache(options Options) *Cache {
	if options.Slots <= 0 {
		options.Slots = 1000
	}
	if options.MinEviction <= 0 {
		options.MinEviction = 2 * time.Minute
	}
	if options.MaxPartitions <= 0 {
		options.MaxPartitions = 500_000
	}
	return &Cache{options: options, sessions: map[int32]*session{}}
}

// Sessions gives the number of sessions.
func (c *Cache) Sessions() int { return len(c.sessions) }

// Partitions gives the number of partitions in all sessions.
func (c *Cache) Partitions() int { return c.partitions }

// Evictions gives how many sessions had to make room since the start.
func (c *Cache) Evictions() int64 { return c.evictions }

// session is one peer's standing fetch.
type session struct {
	id           int32
	privileged   bool // a follower's
	usesTopicIDs bool
	created      time.Time
	lastUsed     time.Time
	epoch        int32 // that the next request must have
	partitions   partitionList

	// What the last use left for eviction to look at.
	size                  int
	evictableByAll        bool
	evictableByPrivileged bool
	closed                bool // no longer in the cache
}

// create makes a session with room for partitions, or gives nil if there is none.
func (c *Cache) create(now time.Time, privileged bool, partitions int, usesTopicIDs bool) *session {
	if c.partitions+partitions > c.options.MaxPartitions {
		return nil
	}
	if len(c.sessions) >= c.options.Slots && !c.evictFor(now, privileged, partitions) {
		return nil
	}
	s := &session{id: c.newID(), privileged: privileged, usesTopicIDs: usesTopicIDs, created: now, epoch: nextEpoch(0)}
	c.sessions[s.id] = s
	return s
}

// newID gives an id that no session has; never 0.
func (c *Cache) newID() int32 {
	for {
		id := int32(1 + c.options.Random()%(math.MaxInt32-1))
		if c.sessions[id] == nil {
			return id
		}
	}
}

// nextEpoch gives the epoch after one; it wraps to 1, as 0 asks for a new session.
func nextEpoch(epoch int32) int32 {
	switch {
	case epoch < 0:
		return finalEpoch
	case epoch == math.MaxInt32:
		return 1
	}
	return epoch + 1
}

// evictFor makes room for a session if the rules of KIP-227 allow: one that was
// not used for MinEviction goes in any case; else the least of those that have
// lived so long goes, if the new one is greater. A follower's session is greater
// than a consumer's, whatever their sizes, and consumers' sessions of any age go
// for it.
func (c *Cache) evictFor(now time.Time, privileged bool, size int) bool {
	var oldest, least *session
	for _, s := range c.sessions { // finds the least of a total order: the map's order does not matter
		if oldest == nil || s.usedBefore(oldest) {
			oldest = s
		}
		evictable := s.evictableByAll || privileged && s.evictableByPrivileged
		if evictable && (least == nil || s.compare(least.privileged, least.size, least.id) < 0) {
			least = s
		}
	}
	switch {
	case oldest != nil && now.Sub(oldest.lastUsed) > c.options.MinEviction:
		c.remove(oldest)
	case least != nil && least.compare(privileged, size, 0) <= 0:
		c.remove(least)
	default:
		return false
	}
	c.evictions++
	return true
}

func (s *session) usedBefore(other *session) bool {
	if !s.lastUsed.Equal(other.lastUsed) {
		return s.lastUsed.Before(other.lastUsed)
	}
	return s.id < other.id
}

// compare orders sessions for eviction by privilege, size and id.
func (s *session) compare(privileged bool, size int, id int32) int {
	switch {
	case s.privileged != privileged && privileged:
		return -1
	case s.privileged != privileged:
		return 1
	case s.size != size:
		return s.size - size
	}
	return int(s.id) - int(id)
}

// touch notes a use. What may evict the session is decided now, not when room is
// wanted, as Apache Kafka does.
func (c *Cache) touch(s *session, now time.Time) {
	s.lastUsed = now
	c.partitions += s.partitions.len() - s.size
	s.size = s.partitions.len()
	old := now.Sub(s.created) > c.options.MinEviction
	s.evictableByAll = old
	s.evictableByPrivileged = old || !s.privileged
}

func (c *Cache) remove(s *session) {
	if s.closed {
		return
	}
	s.closed = true
	c.partitions -= s.size
	delete(c.sessions, s.id)
}

// key names a partition in a session: by topic id or, in a session without ids,
// by name.
type key struct {
	topicID   protocol.TopicID
	topic     string
	partition int32
}

func keyOf(topicID protocol.TopicID, topic string, partition int32) key {
	if !topicID.IsZero() {
		topic = ""
	}
	return key{topicID, topic, partition}
}

// cached is one partition of a session: the request's side, and of the last
// response what decides whether the next one must name the partition.
type cached struct {
	Partition
	highWatermark  protocol.Offset
	logStartOffset protocol.Offset // the leader's
	before, after  *cached
}

// partitionList is the partitions of a session in their order.
type partitionList struct {
	byKey       map[key]*cached
	first, last *cached
}

func (l *partitionList) len() int { return len(l.byKey) }

func (l *partitionList) find(k key) *cached { return l.byKey[k] }

// add appends a partition that is not in the list.
func (l *partitionList) add(p *cached) {
	if l.byKey == nil {
		l.byKey = map[key]*cached{}
	}
	l.byKey[p.key()] = p
	l.link(p)
}

func (l *partitionList) link(p *cached) {
	p.before, p.after = l.last, nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.after = p
	}
	l.last = p
}

func (l *partitionList) unlink(p *cached) {
	if p.before == nil {
		l.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		l.last = p.before
	} else {
		p.after.before = p.before
	}
}

func (l *partitionList) remove(p *cached) {
	l.unlink(p)
	delete(l.byKey, p.key())
}

// moveToEnd makes a partition the last to be served next time.
func (l *partitionList) moveToEnd(p *cached) {
	l.unlink(p)
	l.link(p)
}
