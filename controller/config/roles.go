package config

import (
	"path"
	"slices"
	"strings"
)

// endpoints reads roles, listeners, advertised listeners and the quorum.
func (b *builder) endpoints() {
	b.NodeID = nodeID(b.Int("node.id"))
	b.Broker = slices.Contains(b.List("process.roles"), "broker")
	b.Controller = slices.Contains(b.List("process.roles"), "controller")
	b.ControllerListenerNames = b.List("controller.listener.names")
	b.directories()
	b.QuorumVoters, _ = parseVoters(b.List("controller.quorum.voters"))
	b.BootstrapServers, _ = parseAddresses(b.List("controller.quorum.bootstrap.servers"))
	b.readProtocols()
	b.readListeners()
	b.findInterBroker()
}

// directories refuses a directory that is named twice, also in two spellings.
func (b *builder) directories() {
	key := "log.dirs"
	if b.List(key) == nil {
		key = "log.dir"
	}
	b.LogDirs = b.List(key)
	var seen []string
	for _, dir := range b.LogDirs {
		if slices.Contains(seen, path.Clean(dir)) {
			b.fault(key, "%s is %q, but it takes each directory once", key, strings.Join(b.LogDirs, ","))
		}
		seen = append(seen, path.Clean(dir))
	}
	if b.MetadataLogDir = b.String("metadata.log.dir"); b.MetadataLogDir == "" && len(b.LogDirs) > 0 {
		b.MetadataLogDir = b.LogDirs[0]
	}
}

// readProtocols reads the map of protocols. Where it is not given and nothing
// asks for security, controller listeners speak PLAINTEXT.
func (b *builder) readProtocols() {
	const key = "listener.security.protocol.map"
	protocols, err := parseProtocolMap(b.String(key))
	if err != nil {
		b.fault(key, "%s is %q, but it takes NAME:PROTOCOL pairs with commas between: %v", key, b.given[key].Value, err)
		b.bad[key] = true
		protocols, _ = parseProtocolMap(index[BrokerScope].byName[key].Default)
	}
	b.Protocols = protocols
	if _, given := b.given[key]; given {
		return
	}
	secure := func(name string) bool { return name == SSL || name == SASLSSL || name == SASLPlaintext }
	if slices.ContainsFunc(b.ControllerListenerNames, secure) {
		return
	}
	for _, listener := range b.List("listeners") {
		if name, _, _ := strings.Cut(listener, ":"); secure(strings.ToUpper(name)) {
			return
		}
	}
	for _, name := range b.ControllerListenerNames {
		b.Protocols[name] = Plaintext
	}
}

// readListeners finds the listeners and what of them is advertised.
func (b *builder) readListeners() {
	b.Listeners = b.readEndpoints("listeners")
	if !b.bad["listeners"] {
		if err := checkPorts(b.Listeners); err != nil {
			b.fault("listeners", "listeners is %q: %v", b.listenersText(), err)
		}
	}
	advertised := b.Listeners
	var given []Listener
	if !b.IsNull("advertised.listeners") {
		given = b.readEndpoints("advertised.listeners")
		advertised = given
	}
	for _, listener := range advertised {
		if !slices.Contains(b.ControllerListenerNames, listener.Name) {
			b.AdvertisedListeners = append(b.AdvertisedListeners, listener)
		}
	}
	for _, name := range b.ControllerListenerNames {
		named := func(l Listener) bool { return l.Name == name }
		if at := slices.IndexFunc(given, named); at >= 0 {
			b.AdvertisedControllers = append(b.AdvertisedControllers, given[at])
		} else if at := slices.IndexFunc(b.Listeners, named); at >= 0 {
			own := b.Listeners[at]
			if own.Host == "0.0.0.0" || own.Host == "::" {
				own.Host = "" // all addresses: the machine's name is told
			}
			b.AdvertisedControllers = append(b.AdvertisedControllers, own)
		}
	}
}

func (b *builder) readEndpoints(key string) []Listener {
	if b.bad[key] {
		return nil
	}
	listeners, err := parseListeners(b.List(key), b.Protocols)
	if err != nil {
		b.bad[key] = true
		if !b.bad["listener.security.protocol.map"] {
			b.fault(key, "%s is %q, but it takes NAME://host:port entries with commas between: %v", key, strings.Join(b.List(key), ","), err)
		}
	}
	return listeners
}

func (b *builder) listenersText() string { return strings.Join(b.List("listeners"), ",") }

// findInterBroker finds the listener between brokers.
func (b *builder) findInterBroker() {
	const byName, byProtocol = "inter.broker.listener.name", "security.inter.broker.protocol"
	name := b.String(byProtocol)
	if !b.IsNull(byName) {
		if _, both := b.given[byProtocol]; both {
			b.fault(byName, "%s and %s are both set, but only one may be", byName, byProtocol)
		}
		name = strings.ToUpper(b.String(byName))
		if b.Protocols[name] == "" && !b.bad["listener.security.protocol.map"] {
			b.fault(byName, "%s is %q, for which listener.security.protocol.map names no protocol", byName, b.String(byName))
			b.bad[byName] = true
		}
	}
	if b.Broker {
		b.InterBrokerListener = name
	}
}

// spokenProtocols gives the protocols this node listens with or calls others
// with.
func (b *builder) spokenProtocols() []string {
	var spoken []string
	for _, listener := range b.Listeners {
		spoken = append(spoken, listener.Protocol)
	}
	for _, name := range b.ControllerListenerNames {
		spoken = append(spoken, b.Protocols[name])
	}
	if b.InterBrokerListener != "" {
		spoken = append(spoken, b.Protocols[b.InterBrokerListener])
	}
	return spoken
}
