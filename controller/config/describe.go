package config

import (
	"maps"
	"slices"
	"strings"
)

// Synonym is one link of the chain that DescribeConfigs shows: a key, its
// value there, and where it stands. Value is nil for sensitive keys.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Entry is one configuration of a DescribeConfigs response.
type Entry struct {
	Name      string
	Value     *string // nil for null and for sensitive values
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Synonyms  []Synonym // the whole chain; the caller leaves it out if not asked
	Doc       string    // likewise
}

// DescribeTopic gives the entries of one topic, sorted by name: the 37 of
// Apache Kafka 4.4.0, and overrides that no row has. names, when not empty,
// restricts them.
func DescribeTopic(topic *TopicConfig, names []string) []Entry {
	var entries []Entry
	for _, row := range Rows(TopicScope) {
		if row.Internal || !wanted(names, row.Name) {
			continue
		}
		entries = append(entries, topic.entry(row, row.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(topic.overrides)) {
		row := Find(TopicScope, name)
		if (row == nil || row.Internal) && wanted(names, name) {
			entries = append(entries, topic.entry(row, name))
		}
	}
	sortEntries(entries)
	return entries
}

func (t *TopicConfig) entry(row *Row, name string) Entry {
	e := Entry{Name: name, Source: SourceDefault, Synonyms: t.chain(row, name)}
	if row == nil {
		e.Sensitive = true
	} else {
		e.Type, e.Doc, e.Value = row.Type, row.Doc, t.get(name).text()
	}
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// chain gives the topic's own setting and the broker's beneath it.
func (t *TopicConfig) chain(row *Row, name string) []Synonym {
	var chain []Synonym
	if _, own := t.overrides[name]; own {
		link := Synonym{Name: name, Source: SourceTopic}
		if row != nil {
			link.Value = t.get(name).text()
		}
		chain = append(chain, link)
	}
	if links := topicSynonyms[name]; links != nil {
		chain = append(chain, t.defaults.settings.chain(links[0].name, false)...)
	}
	return chain
}

// DescribeBroker gives the entries of this node's own broker resource, sorted
// by name: those of Apache Kafka 4.4.0, and whatever else was given. Keys of
// Ottla's own are described only when names asks for them, so that a
// comparison of two brokers finds no difference. names, when not empty,
// restricts the entries.
func DescribeBroker(broker *BrokerConfig, clusterDefaults, brokerDynamic map[string]string, names []string) []Entry {
	l := layered{broker, clusterDefaults, brokerDynamic}
	described := map[string]bool{}
	for _, row := range Rows(BrokerScope) {
		described[row.Name] = !row.Internal && (!Own(row.Name) || len(names) > 0)
	}
	for name := range broker.given {
		if index[BrokerScope].byName[name] == nil || !Own(name) {
			described[name] = true
		}
	}
	for _, layer := range []map[string]string{clusterDefaults, brokerDynamic} {
		for name := range layer {
			described[name] = true
		}
	}
	hidden := l.shadowed()
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if described[name] && wanted(names, name) {
			entries = append(entries, l.entry(name, hidden[name]))
		}
	}
	return entries
}

// entry describes one broker key. A hidden key shows its default.
func (l layered) entry(name string, hidden bool) Entry {
	row := Find(BrokerScope, name)
	if row == nil {
		row = dynamicRows[name]
	}
	e := Entry{Name: name, Source: SourceDefault, Sensitive: row == nil || row.Sensitive()}
	dynamic := dynamicRow(name)
	e.ReadOnly = dynamic == nil || dynamic.Name != name
	e.Synonyms = l.chain(name, e.Sensitive)
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	if row != nil {
		e.Type, e.Doc = row.Type, row.Doc
	}
	switch {
	case e.Sensitive:
	case hidden:
		e.Value = row.defaultValue().text()
	default:
		e.Value = l.entryValue(row, name).text()
	}
	return e
}

// entryValue is value, also for keys that only exist at run time.
func (l layered) entryValue(row *Row, name string) value {
	if _, static := l.broker.values[name]; static {
		return l.value(name)
	}
	for _, layer := range []map[string]string{l.dynamic, l.defaults} {
		if text, ok := layer[name]; ok {
			if parsed, bad := row.parse(text); bad == nil {
				return parsed
			}
		}
	}
	return value{}
}

// DescribeClusterDefaults gives the entries of the broker resource with the
// empty name: the run-time settings for all brokers, and no others.
func DescribeClusterDefaults(clusterDefaults map[string]string, names []string) []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(clusterDefaults)) {
		if !wanted(names, name) {
			continue
		}
		row := dynamicRow(name)
		text := clusterDefaults[name]
		e := Entry{Name: name, Source: SourceDynamicBrokerDefault, Sensitive: row == nil || row.Sensitive()}
		e.ReadOnly = row == nil || row.Name != name
		if row != nil {
			e.Type, e.Doc = row.Type, row.Doc
		}
		if !e.Sensitive {
			e.Value = &text
		}
		for _, synonym := range brokerSynonyms(name) {
			link := Synonym{Name: synonym, Source: SourceDynamicBrokerDefault}
			text, set := clusterDefaults[synonym]
			if !set {
				continue
			}
			if !e.Sensitive {
				link.Value = &text
			}
			e.Synonyms = append(e.Synonyms, link)
		}
		entries = append(entries, e)
	}
	return entries
}

func wanted(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
}
