package config

import (
	"fmt"
	"slices"
	"strings"

	"ottla/protocol"
)

// BrokerConfig is the checked configuration of a node. It is immutable.
type BrokerConfig struct {
	NodeID     protocol.NodeID
	Broker     bool // process.roles has broker
	Controller bool // process.roles has controller

	Listeners []Listener
	// AdvertisedListeners are those of the broker. Where neither they nor
	// listeners name a host, Host is empty, and node puts the machine's name.
	AdvertisedListeners []Listener
	// AdvertisedControllers are those of this node's controller, in the order
	// of ControllerListenerNames; Host as above.
	AdvertisedControllers   []Listener
	ControllerListenerNames []string
	// Protocols maps every listener name to its security protocol, also those
	// that only other nodes have.
	Protocols           map[string]string
	InterBrokerListener string // "" on a node that is no broker
	QuorumVoters        []Voter
	BootstrapServers    []Address

	LogDirs        []string
	MetadataLogDir string
	// MaxConnectionsPerIP holds the exceptions by address or host name.
	MaxConnectionsPerIP map[string]int32

	values map[string]value    // of every row, and of listener-scoped keys
	given  map[string]Property // as given, broker.id and node.id both filled in
}

// Report names what the node was told and does not do, sorted by name.
type Report struct {
	Unknown  []Property // no such key
	Ignored  []Property // known, without effect here, and no harm done
	Warnings []string   // sentences about settings that are allowed but unwise
}

// Fault is one thing wrong with a configuration.
type Fault struct {
	Name string // the property
	Text string // a sentence: the property, its value, and what is allowed
	// Refused marks a value that is good in itself, but that Ottla does not act
	// on.
	Refused bool
}

// Errors is the error of Broker: every fault, sorted by property.
type Errors []Fault

func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].Text
	}
	lines := []string{fmt.Sprintf("%d settings cannot be used:", len(e))}
	for _, fault := range e {
		lines = append(lines, "  "+fault.Text)
	}
	return strings.Join(lines, "\n")
}

// builder gathers a BrokerConfig and what is wrong with it.
type builder struct {
	BrokerConfig
	report Report
	faults Errors
	bad    map[string]bool // keys whose value could not be read
	copied map[string]bool // of broker.id and node.id, the one filled in
}

// Broker checks the properties of a node: every value against its row, and the
// rules between keys (kafka.server.KafkaConfig.validateValues). The error is
// an Errors and names all faults at once. The properties must have been merged
// by Layer. The Report is of use also beside an error.
func Broker(properties []Property) (*BrokerConfig, Report, error) {
	b := &builder{bad: map[string]bool{}, copied: map[string]bool{}}
	b.given = map[string]Property{}
	for _, property := range properties {
		b.given[property.Name] = property
	}
	adaptBuiltin(b.given)
	b.fillIDs()
	b.readValues()
	b.endpoints()
	b.checkRules()
	b.checkSupport()
	if len(b.faults) > 0 {
		slices.SortStableFunc(b.faults, func(x, y Fault) int { return strings.Compare(x.Name, y.Name) })
		return nil, b.report, b.faults
	}
	return &b.BrokerConfig, b.report, nil
}

// fillIDs gives broker.id and node.id the value of the other.
func (b *builder) fillIDs() {
	broker, hasBroker := b.given["broker.id"]
	node, hasNode := b.given["node.id"]
	switch {
	case hasNode && !hasBroker:
		node.Name = "broker.id"
		b.copied["broker.id"] = true
		b.given["broker.id"] = node
	case hasBroker && !hasNode:
		broker.Name = "node.id"
		b.copied["node.id"] = true
		b.given["node.id"] = broker
	}
}

// readValues reads every value, the defaults of what is not given, and finds
// what is unknown or missing. A bad value is replaced by the default, so that
// the rules can go on.
func (b *builder) readValues() {
	b.values = map[string]value{}
	for _, row := range Rows(BrokerScope) {
		b.values[row.Name] = row.defaultValue()
		if _, ok := b.given[row.Name]; !ok && row.Default == Required {
			b.fault(row.Name, "%s is missing; it takes %s", row.Name, row.takes())
			b.bad[row.Name] = true
		}
	}
	for _, property := range sortedProperties(b.given) {
		row := Find(BrokerScope, property.Name)
		if row == nil {
			b.report.Unknown = append(b.report.Unknown, property)
			continue
		}
		parsed, bad := row.parse(property.Value)
		if bad != nil && b.copied[property.Name] {
			b.bad[property.Name] = true // the one it was filled in from is named
			continue
		}
		if bad != nil {
			b.fault(property.Name, "%s is %s, but it takes %s%s",
				property.Name, row.shown(property.Value), row.takes(), detail(bad))
			b.bad[property.Name] = true
			continue
		}
		b.values[property.Name] = parsed
	}
}

// detail adds what a check of a row's own found.
func detail(bad *problem) string {
	if strings.Contains(bad.kafka, `"`) {
		return ": " + bad.kafka
	}
	return ""
}

// shown quotes a value for a message, unless it is secret.
func (r *Row) shown(text string) string {
	if r.Sensitive() {
		return "a secret"
	}
	return fmt.Sprintf("%q", text)
}

// fault notes something wrong with a property, and where it was set.
func (b *builder) fault(name, format string, args ...any) {
	b.faults = append(b.faults, Fault{Name: name, Text: fmt.Sprintf(format, args...) + b.where(name) + "."})
}

func (b *builder) where(name string) string {
	if where := b.given[name].Where; where != "" {
		return " (" + where + ")"
	}
	return ""
}

// checkSupport refuses or reports what was given and is not acted on.
func (b *builder) checkSupport() {
	for _, property := range sortedProperties(b.given) {
		row := Find(BrokerScope, property.Name)
		if row == nil || b.bad[property.Name] || b.values[property.Name].equal(row.defaultValue()) {
			continue
		}
		scoped := row.Name != property.Name
		switch {
		case row.Support == Acted && (!scoped || row.Name == "max.connections"):
		case row.Support == Refused && row.Use == Always:
			b.faults = append(b.faults, Fault{property.Name, fmt.Sprintf("%s is %s, which is refused: %s%s.",
				property.Name, row.shown(property.Value), row.Reason, b.where(property.Name)), true})
		case row.Support == Refused && b.inUse(row.Use):
			// The listener that brings it into use is refused already.
		case property.Origin == FromBuiltin:
			// Nobody asked for it.
		default:
			b.report.Ignored = append(b.report.Ignored, property)
		}
	}
}

// inUse tells whether a node as configured would need keys of this use.
func (b *builder) inUse(use Use) bool {
	if use == WithRemote {
		return b.Bool("remote.log.storage.system.enable")
	}
	for _, protocolName := range b.spokenProtocols() {
		switch {
		case use != WithSASL && usesTLS(protocolName), use != WithTLS && usesSASL(protocolName):
			return true
		}
	}
	return false
}
