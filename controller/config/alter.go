package config

import (
	"slices"
	"strings"

	"ottla/protocol"
)

// AlterKind is what an alteration does to a key; the numbers are those of
// IncrementalAlterConfigs (KIP-339).
type AlterKind int8

// The kinds.
const (
	AlterSet      AlterKind = 0
	AlterDelete   AlterKind = 1
	AlterAppend   AlterKind = 2 // adds what a list lacks
	AlterSubtract AlterKind = 3 // takes elements out of a list
)

// Known tells whether there is such a kind.
func (k AlterKind) Known() bool { return k >= AlterSet && k <= AlterSubtract }

// String gives Kafka's name of the kind.
func (k AlterKind) String() string {
	if !k.Known() {
		return "UNKNOWN"
	}
	return [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}[k]
}

// MaxValueBytes bounds a value, as Kafka does.
const MaxValueBytes = 32767

// Alteration is a change of one key. Value is of no meaning with AlterDelete.
type Alteration struct {
	Name  string
	Kind  AlterKind
	Value string
}

// IsList tells whether elements can be appended to a key. Only keys of topics
// and of brokers can have that, as in Kafka (KafkaConfigSchema.isSplittable).
func IsList(scope Scope, name string) bool {
	if scope != TopicScope && scope != BrokerScope {
		return false
	}
	row := index[scope].byName[name]
	return row != nil && row.Type == List
}

// Apply gives the value that an alteration makes of a key's own value; nil is
// not set. A list that is not set counts as the table's default, whatever the
// layers beneath hold. The caller has asked IsList.
func (a Alteration) Apply(scope Scope, current *string) *string {
	switch a.Kind {
	case AlterSet:
		return &a.Value
	case AlterDelete:
		return nil
	}
	if row := index[scope].byName[a.Name]; current == nil && row != nil {
		if text, ok := row.defaultText(); ok {
			current = &text
		}
	}
	var elements []string
	if current != nil {
		elements = slices.DeleteFunc(strings.Split(*current, ","), func(e string) bool { return e == "" })
	}
	for _, element := range strings.Split(a.Value, ",") {
		at := slices.Index(elements, element)
		switch {
		case a.Kind == AlterAppend && at < 0:
			elements = append(elements, element)
		case a.Kind == AlterSubtract && at >= 0:
			elements = slices.Delete(elements, at, at+1)
		}
	}
	joined := strings.Join(elements, ",")
	return &joined
}

// AlterBroker gives the settings of a broker resource after alterations, for
// ValidateDynamic. The error is a *protocol.Error with Kafka's sentence.
func AlterBroker(current map[string]string, alterations []Alteration) (map[string]string, error) {
	next := map[string]string{}
	for name, value := range current {
		next[name] = value
	}
	for _, a := range alterations {
		if a.Kind >= AlterAppend {
			if index[BrokerScope].byName[a.Name] == nil {
				return nil, invalidConfig("Unknown config name: %s", a.Name)
			}
			if !IsList(BrokerScope, a.Name) {
				return nil, invalidConfig("Config value %s is not allowed for config key: %s", strings.ToLower(a.Kind.String()), a.Name)
			}
		}
		var own *string
		if value, ok := next[a.Name]; ok {
			own = &value
		}
		if value := a.Apply(BrokerScope, own); value != nil {
			next[a.Name] = *value
		} else {
			delete(next, a.Name)
		}
	}
	return next, nil
}

func invalidRequest(format string, args ...any) error {
	return protocol.Errorf(protocol.InvalidRequest, format, args...)
}
