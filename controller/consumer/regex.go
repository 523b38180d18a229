package consumer

import (
	"iter"
	"maps"
	"slices"

	"ottla/controller/assign"
)

// regexPauseMs is how long regular expressions are not looked up again, whatever
// happens.
const regexPauseMs = 10_000

// regexChange is what a heartbeat does to a member's regular expression.
type regexChange uint8

const (
	regexSame     regexChange = iota
	regexUpdated              // it is another one, and what it finds is not known yet
	regexResolved             // it is another one, and what it finds is known
)

// updateRegex follows a member from one regular expression to another. What they
// find is looked up by a decision of its own (Resolve), which may be long.
func (g *Group) updateRegex(t *Turn, member, updated *Member) (regexChange, error) {
	old, now := member.regex(), updated.regex()
	change, refresh := regexSame, false
	if !equal(member.Regex, updated.Regex) {
		change = regexUpdated
		if old != "" && g.regexes[old] == 1 {
			t.write(g.regexKey(old), nil)
		}
		switch {
		case now == "" && old != "", now != "" && g.regexes[now] > 0 && g.resolved[now] != nil:
			change = regexResolved
		case now != "" && g.regexes[now] == 0:
			if _, err := assign.CompileRegex(now); err != nil {
				return change, err
			}
			refresh = true
		}
	}
	if !refresh && len(g.regexes) == 0 || t.Resolving {
		return change, nil
	}
	lastMs, lastVersion := g.lastResolved()
	if t.nowMs() <= lastMs+regexPauseMs {
		return change, nil
	}
	count := len(g.regexes)
	if old != "" && old != now && g.regexes[old] == 1 {
		count--
	}
	if now != "" && now != old && g.regexes[now] == 0 {
		count++
	}
	refresh = refresh || count != len(g.resolved) || lastVersion < t.Topics.newest || t.nowMs() > lastMs+t.Settings.RegexRefreshMs
	if refresh && count > 0 {
		t.arm(Regex, "", 0)
	}
	return change, nil
}

// lastResolved is when regular expressions were looked up last, and in which
// metadata. They are so together.
func (g *Group) lastResolved() (timestampMs, version int64) {
	if len(g.resolved) == 0 {
		return -regexPauseMs - 1, 0
	}
	first := g.resolved[slices.Min(slices.Collect(maps.Keys(g.resolved)))]
	return first.timestampMs, first.version
}

// Resolve looks up what the members' regular expressions find among the topics
// that may tells may be told of (nil: all).
func (g *Group) Resolve(t *Turn, may func(topic string) bool) {
	wanted := maps.Clone(g.topics)
	bump := false
	for _, regex := range slices.Sorted(maps.Keys(g.regexes)) {
		found := t.find(regex, may)
		var before []string
		if old := g.resolved[regex]; old != nil {
			before = old.topics
		}
		if !slices.Equal(before, found) {
			bump = true
			for _, topic := range before {
				addSubscribers(wanted, topic, subscribers{regexes: -1})
			}
			for _, topic := range found {
				addSubscribers(wanted, topic, subscribers{regexes: 1})
			}
		}
		g.writeResolved(t, regex, &resolved{found, t.Topics.version(), t.nowMs()})
	}
	hash := t.Topics.hash(slices.Sorted(maps.Keys(wanted)))
	if bump || hash != g.metadataHash {
		g.writeEpoch(t, g.epoch+1, hash)
		t.looked = true
	}
}

// find looks up a regular expression. One that cannot be read, of a record of
// another broker, finds nothing.
func (t *Turn) find(regex string, may func(topic string) bool) []string {
	compiled, err := assign.CompileRegex(regex)
	if err != nil {
		return nil
	}
	return compiled.Topics(t.Topics.names(), may)
}

func (t *Topics) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for topic := range t.image.Topics() {
			if !yield(topic.Name) {
				return
			}
		}
	}
}
