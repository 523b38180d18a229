//go:build compat

package compat

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

const (
	rebalanceMembers    = 100
	rebalancePartitions = 1000
	// The session of the member that is killed; the others' is so long that a busy machine throws none of them out. In the next
	// generation of the protocol the group has one for all.
	victimSession  = 10 * time.Second
	patientSession = 2 * time.Minute
	commonSession  = 20 * time.Second
)

// rebalanceKind is a way in which members share.
type rebalanceKind struct {
	name     string
	balancer kgo.GroupBalancer
	next     bool // KIP-848
}

func (k rebalanceKind) session() time.Duration {
	if k.next {
		return commonSession
	}
	return victimSession
}

var rebalanceKinds = []rebalanceKind{
	{name: "range", balancer: kgo.RangeBalancer()},
	{name: "cooperative-sticky", balancer: kgo.CooperativeStickyBalancer()},
	{name: "next-uniform", balancer: kgo.StickyBalancer(), next: true}, // franz-go names the server's assignors by its own
	{name: "next-range", balancer: kgo.RangeBalancer(), next: true},
}

// ledger holds what the members of a group say of themselves: who owns which partition since which generation. A member owns a
// partition from the moment at which it is told so until it has given it up, both in its own callbacks, which it makes before it tells
// the coordinator. So an owner that is there when another is told is one too many.
type ledger struct {
	mu         sync.Mutex
	partitions int
	owner      map[int32]owning
	count      []int // partitions by member
	dead       map[int]bool
	events     []string // the last ones, for the failure
	violations []string
	changed    chan struct{}
}

type owning struct {
	member     int
	generation int32
}

func newLedger(members, partitions int) *ledger {
	return &ledger{partitions: partitions, owner: map[int32]owning{}, count: make([]int, members), dead: map[int]bool{}, changed: make(chan struct{}, 1)}
}

// assigned notes that a member was told that it owns partitions.
func (l *ledger) assigned(member int, generation int32, partitions []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event("generation %d: member %d is given %v", generation, member, partitions)
	if l.dead[member] {
		return
	}
	for _, p := range partitions {
		if before, twice := l.owner[p]; twice {
			// The dead cannot give anything up: its partitions are free from the next generation on.
			if !l.dead[before.member] || generation <= before.generation {
				l.violations = append(l.violations, fmt.Sprintf("partition %d is given to member %d in generation %d while member %d has it since generation %d",
					p, member, generation, before.member, before.generation))
			}
			l.count[before.member]--
		}
		l.owner[p] = owning{member, generation}
		l.count[member]++
	}
	l.tell()
}

// gaveUp notes that a member owns partitions no longer.
func (l *ledger) gaveUp(member int, generation int32, how string, partitions []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event("generation %d: member %d %s %v", generation, member, how, partitions)
	if l.dead[member] {
		return
	}
	for _, p := range partitions {
		if l.owner[p].member == member {
			delete(l.owner, p)
			l.count[member]--
		}
	}
	l.tell()
}

func (l *ledger) died(member int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event("member %d is cut off with %d partitions", member, l.count[member])
	l.dead[member] = true
}

func (l *ledger) event(format string, args ...any) {
	if len(l.events) == 400 {
		l.events = slices.Delete(l.events, 0, 200)
	}
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

func (l *ledger) tell() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// balanced tells whether the living own everything, in equal shares.
func (l *ledger) balanced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	living, total := len(l.count)-len(l.dead), 0
	least := l.partitions / living
	for member, n := range l.count {
		if l.dead[member] {
			continue
		}
		if n < least || n > least+1 {
			return false
		}
		total += n
	}
	return total == l.partitions
}

// settled waits until the group is balanced.
func (l *ledger) settled(ctx context.Context) error {
	for !l.balanced() {
		select {
		case <-l.changed:
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			return fmt.Errorf("the group does not settle: %w; partitions by member %v; last events:\n%s", ctx.Err(), l.count, strings.Join(l.events, "\n"))
		}
	}
	return nil
}

// judge fails the test if a partition ever had two owners.
func (l *ledger) judge(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.violations) > 0 {
		t.Errorf("%d times a partition had two owners; the first: %s\nlast events:\n%s", len(l.violations), l.violations[0], strings.Join(l.events, "\n"))
	}
}

// cutter dials for one client until it is cut off.
type cutter struct {
	mu    sync.Mutex
	gone  bool
	conns []net.Conn
}

func (c *cutter) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case c.gone:
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// rebalanceTimes is what one group took.
type rebalanceTimes struct{ formed, healed time.Duration }

// rebalanceGroup lets the members join at once, cuts one off, and compares the coordinator's view with the members' own.
func rebalanceGroup(t *testing.T, node *harness.Node, topic string, kind rebalanceKind) rebalanceTimes {
	t.Helper()
	group := "group-" + kind.name
	ctx := cellContext(t)
	l := newLedger(rebalanceMembers, rebalancePartitions)
	const victim = rebalanceMembers / 2
	line := &cutter{}
	clients := make([]*kgo.Client, rebalanceMembers)
	begin := time.Now()
	for member := range clients {
		opts := []kgo.Opt{
			kgo.SeedBrokers(node.Addr()), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(kind.balancer), kgo.DisableAutoCommit(),
			kgo.HeartbeatInterval(500 * time.Millisecond), kgo.RebalanceTimeout(patientSession), kgo.FetchMaxWait(5 * time.Second),
			kgo.OnPartitionsAssigned(func(_ context.Context, c *kgo.Client, given map[string][]int32) {
				_, generation := c.GroupMetadata()
				l.assigned(member, generation, given[topic])
			}),
			kgo.OnPartitionsRevoked(func(_ context.Context, c *kgo.Client, taken map[string][]int32) {
				_, generation := c.GroupMetadata()
				l.gaveUp(member, generation, "gives up", taken[topic])
			}),
			kgo.OnPartitionsLost(func(_ context.Context, c *kgo.Client, taken map[string][]int32) {
				_, generation := c.GroupMetadata()
				l.gaveUp(member, generation, "has lost", taken[topic])
			}),
		}
		session := patientSession
		if member == victim {
			opts = append(opts, kgo.Dialer(line.dial))
			session = victimSession
		}
		opts = append(opts, kgo.SessionTimeout(session))
		if kind.next {
			opts = append(opts, kgo.ServerSideBalancer())
		}
		var err error
		if clients[member], err = kgo.NewClient(opts...); err != nil {
			t.Fatal(err)
		}
	}
	defer closeAll(slices.Concat(clients[:victim], clients[victim+1:]))
	defer func() { go clients[victim].CloseAllowingRebalance() }() // tries to leave, and cannot
	if err := l.settled(ctx); err != nil {
		t.Fatal(err)
	}
	formed := time.Since(begin)
	l.died(victim)
	line.cut()
	begin = time.Now()
	if err := l.settled(ctx); err != nil {
		t.Fatal(err)
	}
	healed := time.Since(begin)
	l.judge(t)
	sameAsCoordinator(t, node, group, topic, kind.next, l, clients)
	return rebalanceTimes{formed, healed}
}

func closeAll(clients []*kgo.Client) {
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(c.CloseAllowingRebalance)
	}
	all.Wait()
}

// describe asks the coordinator for the state of a group and what each member has.
func describe(t *testing.T, node *harness.Node, group, topic string, next bool) (state string, members map[string][]int32) {
	t.Helper()
	ctx := cellContext(t)
	if !next {
		state, members, err := franz.New(node.Addr()).Assignment(ctx, group, topic)
		if err != nil {
			t.Error(err)
		}
		return state, members
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	groups, err := kadm.NewClient(client).DescribeConsumerGroups(ctx, group)
	if err != nil {
		t.Error(err)
	}
	members = map[string][]int32{}
	for _, m := range groups[group].Members {
		members[m.MemberID] = slices.Collect(maps.Keys(m.Assignment[topic]))
	}
	return groups[group].State, members
}

// sameAsCoordinator compares what the members own with what the coordinator describes.
func sameAsCoordinator(t *testing.T, node *harness.Node, group, topic string, next bool, l *ledger, clients []*kgo.Client) {
	t.Helper()
	// A member of the protocol consumer tells what it owns with its next heartbeat: until then the group is Reconciling.
	var described map[string][]int32
	err := suite.Eventually(cellContext(t), func() error {
		var state string
		if state, described = describe(t, node, group, topic, next); state != "Stable" {
			return fmt.Errorf("the group is %s", state)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	own := map[string][]int32{}
	l.mu.Lock()
	for member, c := range clients {
		if id, _ := c.GroupMetadata(); !l.dead[member] {
			own[id] = nil
		}
	}
	for p, o := range l.owner {
		id, _ := clients[o.member].GroupMetadata()
		own[id] = append(own[id], p)
	}
	l.mu.Unlock()
	if len(described) != len(own) {
		t.Errorf("the coordinator describes %d members, there are %d", len(described), len(own))
	}
	for id, partitions := range own {
		slices.Sort(partitions)
		theirs := slices.Sorted(slices.Values(described[id]))
		if !slices.Equal(partitions, theirs) {
			t.Errorf("member %s has %v, the coordinator says %v", id, partitions, theirs)
		}
	}
}

// firstGroup has the topic of the offsets made, which is not what is measured.
func firstGroup(t *testing.T, node *harness.Node, topic string) {
	t.Helper()
	ctx := cellContext(t)
	for {
		err := franz.New(node.Addr()).Commit(ctx, "first", topic, map[int32]int64{0: 0})
		if err == nil {
			return
		}
		if suite.ErrorName(err) != "COORDINATOR_NOT_AVAILABLE" || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestRebalance forms a group of a hundred real members and kills one, on Ottla and on Apache Kafka. That no partition has two owners is
// asserted; the times are printed side by side. OTTLA_REBALANCE_ALONE leaves Apache Kafka out, for those who only want to know whether
// it still holds.
func TestRebalance(t *testing.T) {
	need(t)
	var report strings.Builder
	kinds := []harness.Kind{harness.Ottla, harness.Kafka}
	if os.Getenv("OTTLA_REBALANCE_ALONE") != "" {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		node := startNodeIn(t, harness.Options{Kind: kind, Name: "rebalance-" + string(kind), Dir: workDir(t), Properties: map[string]string{
			"offsets.topic.num.partitions":          "5",
			"group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": strconv.FormatInt(commonSession.Milliseconds(), 10),
			"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "500",
		}})
		const topic = "rebalanced"
		if err := franz.New(node.Addr()).CreateTopic(cellContext(t), topic, rebalancePartitions, nil); err != nil {
			t.Fatal(err)
		}
		firstGroup(t, node, topic)
		for _, how := range rebalanceKinds {
			t.Run(string(kind)+"/"+how.name, func(t *testing.T) {
				defer explain(t, node)
				took := rebalanceGroup(t, node, topic, how)
				line := fmt.Sprintf("%-20s %-8s formed %6d ms, healed %6d ms after the session of the killed member ended (%d ms)\n",
					how.name, kind, took.formed.Milliseconds(), (took.healed - how.session()).Milliseconds(), how.session().Milliseconds())
				report.WriteString(line)
				harness.Progress("%s", line)
			})
		}
		node.Close()
	}
	harness.Progress("%d members, %d partitions, one killed; nothing owned twice\n%s", rebalanceMembers, rebalancePartitions, report.String())
}
