package consumer

import (
	"maps"
	"slices"
	"strings"
)

// fence removes members, whatever they own; if only members of the classic
// protocol remain, the group becomes a classic one.
func (g *Group) fence(t *Turn, members ...*Member) {
	slices.SortFunc(members, func(a, b *Member) int { return strings.Compare(a.ID, b.ID) })
	if g.mayDowngrade(t, members) {
		g.downgrade(t, members, nil, true)
		return
	}
	for _, m := range members {
		g.removeMember(t, m.ID)
		t.cancelAll(m.ID)
	}
	wanted := maps.Clone(g.topics)
	gone := map[string]int{}
	for _, m := range members {
		for _, topic := range m.Topics {
			addSubscribers(wanted, topic, subscribers{names: -1})
		}
		if regex := m.regex(); regex != "" {
			gone[regex]++
		}
	}
	for _, regex := range slices.Sorted(maps.Keys(gone)) {
		if gone[regex] == g.regexes[regex] {
			t.write(g.regexKey(regex), nil)
			g.dropRegex(regex, wanted)
		}
	}
	epoch := g.epoch + 1
	g.writeEpoch(t, epoch, t.Topics.hash(slices.Sorted(maps.Keys(wanted))))
	if len(members) == len(g.members) {
		// Whoever comes next need not wait for the interval between assignments.
		g.writeTargetEpoch(t, epoch, 0)
	}
}
