package config

import (
	"regexp"
	"slices"
	"strings"
)

// index holds all rows by scope and name.
var index = buildIndex()

type scopeIndex struct {
	byName map[string]*Row
	sorted []*Row
}

func buildIndex() map[Scope]*scopeIndex {
	all := map[Scope]*scopeIndex{}
	add := func(scope Scope, tables ...[]Row) {
		in := &scopeIndex{byName: map[string]*Row{}}
		for _, table := range tables {
			for i := range table {
				row := &table[i]
				row.Scope = scope
				if in.byName[row.Name] != nil {
					panic("config: two rows are named " + row.Name)
				}
				in.byName[row.Name] = row
				in.sorted = append(in.sorted, row)
			}
		}
		slices.SortFunc(in.sorted, func(a, b *Row) int { return strings.Compare(a.Name, b.Name) })
		all[scope] = in
	}
	add(BrokerScope, nodeRows, networkRows, logRows, replicationRows, securityRows,
		coordinatorRows, remoteRows, observeRows, ownRows)
	add(TopicScope, topicRows)
	add(GroupScope, groupRows)
	add(ClientMetricsScope, clientMetricsRows)
	return all
}

// Rows gives all rows of a scope, sorted by name. The slice is shared.
func Rows(scope Scope) []*Row { return index[scope].sorted }

// Find gives the row of a key, nil when there is none. A listener-scoped
// broker key (listener.name.internal.ssl.keystore.location) gives the row of
// what it overrides.
func Find(scope Scope, name string) *Row {
	if row := index[scope].byName[name]; row != nil || scope != BrokerScope {
		return row
	}
	if _, base, ok := splitListenerKey(name); ok {
		return index[scope].byName[base]
	}
	return nil
}

// Own tells the keys of Ottla's own.
func Own(name string) bool { return strings.HasPrefix(name, "ottla.") }

var listenerKey = regexp.MustCompile(`^listener\.name\.([^.]*)\.(.*)$`)

// mechanismKeys can be set for one SASL mechanism of a listener.
var mechanismKeys = []string{
	"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
	"sasl.server.callback.handler.class", "connections.max.reauth.ms",
}

// splitListenerKey cuts listener.name.<listener>.<key>, and leaves a mechanism
// in front of the key out.
func splitListenerKey(name string) (listener, key string, ok bool) {
	parts := listenerKey.FindStringSubmatch(name)
	if parts == nil {
		return "", "", false
	}
	for _, mechanism := range mechanismKeys {
		if strings.HasSuffix(parts[2], mechanism) {
			return parts[1], mechanism, true
		}
	}
	return parts[1], parts[2], true
}

// listenerPrefix is what the keys of one listener begin with.
func listenerPrefix(listener string) string {
	return "listener.name." + strings.ToLower(listener) + "."
}
