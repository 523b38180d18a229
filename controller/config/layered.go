package config

import (
	"maps"
	"slices"
)

// layered is a broker's file with the settings made at run time above it.
type layered struct {
	broker   *BrokerConfig
	defaults map[string]string // for all brokers
	dynamic  map[string]string // for this broker
}

// dynamicRows are broker keys that exist only at run time.
var dynamicRows = map[string]*Row{
	"leader.replication.throttled.rate":              {Name: "leader.replication.throttled.rate", Type: Long, Mode: PerBroker, Allowed: atLeast(0), Doc: "How many bytes a second the throttled replicas this broker leads may send."},
	"follower.replication.throttled.rate":            {Name: "follower.replication.throttled.rate", Type: Long, Mode: PerBroker, Allowed: atLeast(0), Doc: "How many bytes a second the throttled replicas of this broker that follow may fetch."},
	"replica.alter.log.dirs.io.max.bytes.per.second": {Name: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Mode: PerBroker, Allowed: atLeast(0), Doc: "How many bytes a second may move between the directories of this broker."},
}

// dynamicRow gives the row of a key that may be set at run time.
func dynamicRow(name string) *Row {
	if row := dynamicRows[name]; row != nil {
		return row
	}
	if row := Find(BrokerScope, name); row != nil && (row.Mode != ReadOnly || row.Name != name) {
		return row
	}
	return nil
}

// value gives the value of a broker key with the run-time settings applied.
// Run-time settings that are not allowed or do not parse are passed over.
func (l layered) value(name string) value {
	for _, layer := range []map[string]string{l.dynamic, l.defaults} {
		text, ok := layer[name]
		if !ok {
			continue
		}
		if row := dynamicRow(name); row != nil {
			if parsed, bad := row.parse(text); bad == nil {
				return parsed
			}
		}
	}
	return l.broker.get(name)
}

// chain gives the places a broker key's value may come from, nearest first:
// each layer in turn, and in each the key's synonyms in turn. What stands
// before the first entry of the key itself is left out, as in Kafka.
func (l layered) chain(key string, sensitive bool) []Synonym {
	synonyms := brokerSynonyms(key)
	var chain []Synonym
	add := func(name, text string, source Source) {
		link := Synonym{Name: name, Source: source}
		if !sensitive {
			link.Value = &text
		}
		chain = append(chain, link)
	}
	for _, name := range synonyms {
		if text, ok := l.dynamic[name]; ok {
			add(name, text, SourceDynamicBroker)
		}
	}
	for _, name := range synonyms {
		if text, ok := l.defaults[name]; ok {
			add(name, text, SourceDynamicBrokerDefault)
		}
	}
	for _, name := range synonyms {
		if property, ok := l.broker.given[name]; ok {
			add(name, property.Value, SourceStaticBroker)
		}
	}
	for _, name := range synonyms {
		if row := index[BrokerScope].byName[name]; row != nil {
			if text, ok := row.defaultText(); ok {
				add(name, text, SourceDefault)
			}
		}
	}
	own := slices.IndexFunc(chain, func(s Synonym) bool { return s.Name == key })
	if own < 0 {
		return nil
	}
	return chain[own:]
}

// shadowed gives the broker keys of the file that a run-time setting of a
// synonym puts out of effect: Kafka describes them with their defaults then.
func (l layered) shadowed() map[string]bool {
	hidden := map[string]bool{}
	for _, layer := range []map[string]string{l.defaults, l.dynamic} {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			if dynamicRow(name) == nil {
				continue
			}
			synonyms := brokerSynonyms(name)
			if _, _, scoped := splitListenerKey(name); scoped {
				synonyms = nil
			}
			for _, other := range synonyms {
				hidden[other] = other != name
			}
		}
	}
	return hidden
}
