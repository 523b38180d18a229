package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupLoad is a group of many members on many partitions that form at once; then one is cut off. The members are as simple as can
// be, so that the time is the coordinator's.
type groupLoad struct {
	members, partitions int
	next                bool // the protocol of KIP-848
	topics              map[string]string
}

const (
	sessionTime   = time.Second
	heartbeatTime = 100 * time.Millisecond
	groupLimit    = 90 * time.Second // that a round may take
)

func (g *groupLoad) line(name string) *line {
	return &line{name: name, prepare: g.prepare, round: g.round}
}

func (g *groupLoad) prepare(ctx context.Context, s *server) error {
	c, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	req := kmsg.NewPtrApiVersionsRequest()
	resp, err := c.ask(req)
	if err != nil {
		return err
	}
	if g.next && !serves(resp.(*kmsg.ApiVersionsResponse), kmsg.ConsumerGroupHeartbeat) { //nolint:forcetypeassert // ResponseKind
		return fmt.Errorf("consumer group heartbeats (KIP-848): %w", errNotServed)
	}
	g.topics[s.Addr()], err = s.topic(ctx, g.partitions)
	return err
}

func serves(versions *kmsg.ApiVersionsResponse, key kmsg.Key) bool {
	for _, k := range versions.ApiKeys {
		if k.ApiKey == key.Int16() {
			return true
		}
	}
	return false
}

// groupRun is one round: the members and what they tell.
type groupRun struct {
	*groupLoad
	topic   string
	topicID [16]byte
	group   string
	addr    string

	mu      sync.Mutex
	owned   map[int]ownership // by member
	changed chan struct{}     // somebody told something
	deaths  chan time.Time    // when the member that is to die was last heard of
	fatal   error
}

// ownership is what a member has been given.
type ownership struct {
	generation int32
	partitions []int32
}

func (g *groupLoad) round(ctx context.Context, s *server) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, groupLimit)
	defer cancel()
	s.count++
	r := &groupRun{
		groupLoad: g, topic: g.topics[s.Addr()], group: fmt.Sprintf("bench-group-%d", s.count), addr: s.Addr(),
		owned: map[int]ownership{}, changed: make(chan struct{}, 1), deaths: make(chan time.Time, 1),
	}
	if err := r.coordinator(ctx); err != nil {
		return nil, err
	}
	kill := make(chan struct{})
	var formed, healed time.Duration
	used, err := s.during(func() error {
		begin := time.Now()
		var all sync.WaitGroup
		defer all.Wait()
		running, stop := context.WithCancel(ctx)
		defer stop()
		for i := range g.members {
			all.Go(func() {
				var die <-chan struct{}
				if i == g.members/2 {
					die = kill
				}
				r.member(running, i, die)
			})
		}
		if err := r.stable(ctx, g.members); err != nil {
			return fmt.Errorf("forming: %w", err)
		}
		formed = time.Since(begin)
		close(kill)
		died := <-r.deaths
		if err := r.stable(ctx, g.members-1); err != nil {
			return fmt.Errorf("after a member was cut off: %w", err)
		}
		healed = time.Since(died) - sessionTime
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures{
		{name: "formed ms", value: milliseconds(formed)},
		{name: "healed ms", value: milliseconds(healed)},
		{name: "CPU ms", value: used.cpuSeconds * 1000},
		used.peak(),
	}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// coordinator waits until the group has one.
func (r *groupRun) coordinator(ctx context.Context) error {
	c, err := dial(ctx, r.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := r.findTopic(c); err != nil {
		return err
	}
	for ctx.Err() == nil {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKey, find.Version = r.group, 0
		resp, err := c.ask(find)
		if err != nil {
			return err
		}
		found := resp.(*kmsg.FindCoordinatorResponse) //nolint:forcetypeassert // ResponseKind
		if found.ErrorCode == 0 {
			beat := kmsg.NewPtrHeartbeatRequest()
			beat.Group, beat.MemberID, beat.Version = r.group, "nobody", 0
			if resp, err = c.ask(beat); err != nil {
				return err
			}
			code := resp.(*kmsg.HeartbeatResponse).ErrorCode //nolint:forcetypeassert // ResponseKind
			if errors.Is(kerr.ErrorForCode(code), kerr.UnknownMemberID) {
				return nil // it is loaded
			}
		}
		time.Sleep(retryPause)
	}
	return ctx.Err()
}

func (r *groupRun) findTopic(c *conn) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 10
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &r.topic
	req.Topics = append(req.Topics, topic)
	resp, err := c.ask(req)
	if err != nil {
		return err
	}
	found := resp.(*kmsg.MetadataResponse).Topics[0] //nolint:forcetypeassert // ResponseKind
	r.topicID = found.TopicID
	return kerr.ErrorForCode(found.ErrorCode)
}

// member runs until ctx ends, or until it is cut off.
func (r *groupRun) member(ctx context.Context, index int, die <-chan struct{}) {
	c, err := dial(ctx, r.addr)
	if err != nil {
		r.fail(err)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }()
	run := (&classicMember{run: r, conn: c, index: index}).live
	if r.next {
		run = (&nextMember{run: r, conn: c, index: index}).live
	}
	err = run(ctx, die)
	if err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		r.fail(fmt.Errorf("member %d: %w", index, err))
	}
}

// die tells that a member is gone since it was last heard of.
func (r *groupRun) die(index int, last time.Time) {
	r.mu.Lock()
	delete(r.owned, index)
	r.mu.Unlock()
	r.deaths <- last
}

func (r *groupRun) fail(err error) {
	r.mu.Lock()
	r.fatal = errors.Join(r.fatal, err)
	r.mu.Unlock()
	r.tell()
}

func (r *groupRun) tell() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// owns notes what a member was given.
func (r *groupRun) owns(index int, generation int32, partitions []int32) {
	r.mu.Lock()
	r.owned[index] = ownership{generation, partitions}
	r.mu.Unlock()
	r.tell()
}

// stable waits until so many members have all partitions in equal shares between them, all of one generation.
func (r *groupRun) stable(ctx context.Context, members int) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), r.state())
		case <-r.changed:
		}
		if done, err := r.isStable(members); done || err != nil {
			return err
		}
	}
}

func (r *groupRun) isStable(members int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal != nil || len(r.owned) != members {
		return false, r.fatal
	}
	owner := map[int32]int{}
	generation := int32(-1)
	for index, o := range r.owned {
		if generation == -1 {
			generation = o.generation
		}
		if o.generation != generation || len(o.partitions) < r.partitions/members {
			return false, nil
		}
		for _, p := range o.partitions {
			if other, twice := owner[p]; twice {
				return false, fmt.Errorf("partition %d belongs to members %d and %d in generation %d", p, other, index, generation)
			}
			owner[p] = index
		}
	}
	return len(owner) == r.partitions, nil
}

func (r *groupRun) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	generations := map[int32]int{}
	partitions := 0
	for _, o := range r.owned {
		generations[o.generation]++
		partitions += len(o.partitions)
	}
	return fmt.Sprintf("%d members with %d partitions, by generation %v", len(r.owned), partitions, generations)
}

// beat waits for the next heartbeat, or for the order to die.
func beat(ctx context.Context, die <-chan struct{}) (dead bool, err error) {
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-die:
		return true, nil
	case <-time.After(heartbeatTime):
		return false, nil
	}
}
