package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ottla/protocol"
)

// randomGroup makes a group of which nobody owns anything yet.
func randomGroup(random *rand.Rand, uneven bool) Group {
	g := Group{Topics: map[protocol.TopicID]Topic{}}
	for t := 1; t <= 1+random.IntN(6); t++ {
		id := topicID(t)
		g.Topics[id] = Topic{ID: id, Partitions: int32(random.IntN(20))}
	}
	for m := range 1 + random.IntN(12) {
		g.Members = append(g.Members, Member{ID: fmt.Sprintf("m%02d", m), Topics: subscribe(random, g, uneven)})
	}
	return g
}

func subscribe(random *rand.Rand, g Group, uneven bool) (topics []protocol.TopicID) {
	for t := 1; t <= 6; t++ {
		if _, exists := g.Topics[topicID(t)]; exists && (!uneven || random.IntN(2) == 0) {
			topics = append(topics, topicID(t))
		}
	}
	return append(topics, topicID(99)) // does not exist
}

// own makes the members own what they were assigned.
func own(g Group, assigned map[string]Assignment) {
	for m := range g.Members {
		g.Members[m].Owned = assigned[g.Members[m].ID]
	}
}

type owned struct {
	topic     protocol.TopicID
	partition int32
}

// check asserts that each partition that has subscribers has one owner, who is one
// of them, and gives the owners.
func check(t *testing.T, g Group, assigned map[string]Assignment) map[owned]int {
	t.Helper()
	owners := map[owned]int{}
	for m := range g.Members {
		for topic, partitions := range assigned[g.Members[m].ID] {
			if len(partitions) == 0 || !slices.IsSorted(partitions) {
				t.Fatalf("%s gets the list %v", g.Members[m].ID, partitions)
			}
			if !slices.Contains(g.Members[m].Topics, topic) {
				t.Fatalf("%s gets partitions of a topic that it does not subscribe to", g.Members[m].ID)
			}
			for _, p := range partitions {
				if _, twice := owners[owned{topic, p}]; twice {
					t.Fatalf("partition %d has two owners", p)
				}
				owners[owned{topic, p}] = m
			}
		}
	}
	want := 0
	for id, topic := range g.Topics {
		if slices.ContainsFunc(g.Members, func(m Member) bool { return slices.Contains(m.Topics, id) }) {
			want += int(topic.Partitions)
		}
	}
	if len(owners) != want {
		t.Fatalf("%d partitions are assigned of %d", len(owners), want)
	}
	return owners
}

func sizes(owners map[owned]int, members int) []int {
	counts := make([]int, members)
	for _, m := range owners {
		counts[m]++
	}
	return counts
}

// balanced asserts that no partition should go to another of its subscribers.
func balanced(t *testing.T, g Group, owners map[owned]int) {
	t.Helper()
	counts := sizes(owners, len(g.Members))
	for at, owner := range owners {
		for m := range g.Members {
			if slices.Contains(g.Members[m].Topics, at.topic) && counts[owner] > counts[m]+1 {
				t.Fatalf("%s has %d and %s has %d", g.Members[owner].ID, counts[owner], g.Members[m].ID, counts[m])
			}
		}
	}
}

func moves(before, after map[owned]int) (n int) {
	for at, owner := range before {
		if now, assigned := after[at]; assigned && now != owner {
			n++
		}
	}
	return n
}

func TestUniformIsBalancedAndSticky(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		uneven := seed%2 == 1
		g := randomGroup(random, uneven)
		assigned := Uniform(g)
		owners := check(t, g, assigned)
		balanced(t, g, owners)
		own(g, assigned)
		if again := check(t, g, Uniform(g)); moves(owners, again) > 0 {
			t.Fatalf("seed %d: %d partitions move though nothing has changed", seed, moves(owners, again))
		}
		g.Members = append(g.Members, Member{ID: "n", Topics: subscribe(random, g, uneven)})
		joined := Uniform(g)
		after := check(t, g, joined)
		balanced(t, g, after)
		if got := sizes(after, len(g.Members))[len(g.Members)-1]; !uneven && moves(owners, after) != got {
			t.Fatalf("seed %d: %d partitions move for a member that gets %d", seed, moves(owners, after), got)
		}
		own(g, joined)
		g.Members = g.Members[1:]
		left := check(t, g, Uniform(g))
		balanced(t, g, left)
		for at, m := range after { // the members' numbers are one less now
			if owner, assigned := left[at]; !uneven && m > 0 && assigned && owner != m-1 {
				t.Fatalf("seed %d: a partition moves though its owner has stayed", seed)
			}
		}
	}
}

func TestRangeMeets(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		g := randomGroup(random, false)
		for id := range g.Topics {
			g.Topics[id] = Topic{ID: id, Partitions: 7}
		}
		owners := check(t, g, Range(g))
		for at, owner := range owners {
			for id := range g.Topics {
				if owners[owned{id, at.partition}] != owner {
					t.Fatalf("seed %d: partition %d of two topics is not of one member", seed, at.partition)
				}
			}
		}
	}
}

func TestAssignNobodyAndNothing(t *testing.T) {
	for _, name := range Names() {
		assignor, _ := ByName(name)
		if result := assignor(Group{}); len(result) != 0 {
			t.Errorf("%s assigns to nobody: %v", name, result)
		}
		if result := assignor(Group{Members: []Member{{ID: "a"}, {ID: "b", Topics: []protocol.TopicID{topicID(1)}}}}); len(result) != 2 || len(result["a"])+len(result["b"]) != 0 {
			t.Errorf("%s assigns what there is not: %v", name, result)
		}
	}
	if _, known := ByName("sticky"); known {
		t.Error("there is an assignor that should not be")
	}
}

// TestAssignSharesNothing checks that a result stays as it is when the input changes.
func TestAssignSharesNothing(t *testing.T) {
	id := topicID(1)
	partitions := []int32{0, 1}
	g := Group{Topics: map[protocol.TopicID]Topic{id: {id, 2}}, Members: []Member{{ID: "a", Topics: []protocol.TopicID{id}, Owned: map[protocol.TopicID][]int32{id: partitions}}}}
	result := Uniform(g)
	partitions[0] = 77
	if got := result["a"][id]; !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("the result has become %v", got)
	}
}

func benchmarkUniform(b *testing.B, members, topics, partitions int, uneven bool) {
	g := Group{Topics: map[protocol.TopicID]Topic{}}
	var ids []protocol.TopicID
	for t := 1; t <= topics; t++ {
		ids = append(ids, topicID(t))
		g.Topics[topicID(t)] = Topic{topicID(t), int32(partitions / topics)}
	}
	for m := range members {
		of := ids
		if uneven && m%2 == 0 {
			of = ids[:topics/2]
		}
		g.Members = append(g.Members, Member{ID: fmt.Sprintf("m%05d", m), Topics: of})
	}
	own(g, Uniform(g))
	g.Members = g.Members[1:]
	for b.Loop() {
		Uniform(g)
	}
}

func BenchmarkUniform100x1000(b *testing.B)         { benchmarkUniform(b, 100, 10, 1000, false) }
func BenchmarkUniform1000x10000(b *testing.B)       { benchmarkUniform(b, 1000, 10, 10000, false) }
func BenchmarkUniformUneven1000x10000(b *testing.B) { benchmarkUniform(b, 1000, 10, 10000, true) }
