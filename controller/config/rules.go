package config

import (
	"slices"
	"strconv"
	"strings"

	"ottla/protocol"
)

func nodeID(id int32) protocol.NodeID { return protocol.NodeID(id) }

// checkRules tests the rules between keys.
func (b *builder) checkRules() {
	b.checkIDs()
	b.checkQuorum()
	switch {
	case b.Broker && !b.Controller:
		b.checkBrokerOnly()
	case b.Controller:
		b.checkController()
	}
	if b.Broker {
		b.checkAdvertised()
	}
	b.checkNonroutable()
	b.checkProtocols()
	b.checkConnections()
	b.checkNames()
	b.checkTimes()
	b.checkPairs()
}

// ok tells that all these keys could be read, so that a rule between them can
// be judged.
func (b *builder) ok(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return b.bad[name] })
}

func (b *builder) checkIDs() {
	if b.ok("node.id", "broker.id") && b.Int("node.id") != b.Int("broker.id") {
		b.fault("node.id", "node.id is %d and broker.id is %d, but they must be the same", b.Int("node.id"), b.Int("broker.id"))
	}
}

func (b *builder) checkQuorum() {
	const voters, servers = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
	if !b.ok(voters, servers, "process.roles", "node.id") {
		return
	}
	if len(b.QuorumVoters) == 0 && len(b.BootstrapServers) == 0 {
		b.fault(servers, "neither %s nor %s says where the metadata quorum is", servers, voters)
	}
	isVoter := slices.ContainsFunc(b.QuorumVoters, func(v Voter) bool { return v.ID == b.NodeID })
	if b.Controller && len(b.QuorumVoters) > 0 && !isVoter {
		b.fault(voters, "%s is %q, but must have an entry for this controller, node.id %d", voters, b.given[voters].Value, b.NodeID)
	}
	if !b.Controller && isVoter {
		b.fault(voters, "%s is %q, but must not have an entry for node.id %d, which is no controller", voters, b.given[voters].Value, b.NodeID)
	}
}

func (b *builder) listens(name string) bool {
	return slices.ContainsFunc(b.Listeners, func(l Listener) bool { return l.Name == name })
}

func (b *builder) checkBrokerOnly() {
	const names = "controller.listener.names"
	if !b.ok(names, "listeners", "process.roles") {
		return
	}
	for _, name := range b.ControllerListenerNames {
		if b.listens(name) {
			b.fault(names, "%s has %s, which must not be in listeners on a node that is no controller", names, name)
		}
		if b.Protocols[name] == "" && b.ok("listener.security.protocol.map") {
			b.fault(names, "%s has %s, for which listener.security.protocol.map names no protocol", names, name)
		}
	}
	if b.Bool("controller.quorum.auto.join.enable") {
		b.fault("controller.quorum.auto.join.enable", "controller.quorum.auto.join.enable is true, but only a controller can join the quorum")
	}
}

func (b *builder) checkController() {
	const names = "controller.listener.names"
	if !b.ok(names, "listeners", "advertised.listeners", "process.roles") {
		return
	}
	for _, name := range b.ControllerListenerNames {
		if !b.listens(name) {
			b.fault(names, "%s has %s, which must be in listeners on a controller", names, name)
		}
	}
	if b.Broker {
		return
	}
	for _, listener := range b.Listeners {
		if !slices.Contains(b.ControllerListenerNames, listener.Name) {
			b.fault("listeners", "listeners has %s, but on a node that is only a controller all must be in %s", listener.Name, names)
		}
	}
	if name := b.String("inter.broker.listener.name"); slices.Contains(b.ControllerListenerNames, strings.ToUpper(name)) {
		b.fault("inter.broker.listener.name", "inter.broker.listener.name is %q, but it must not be a listener of the controller", name)
	}
}

// checkAdvertised tests what a broker tells its clients.
func (b *builder) checkAdvertised() {
	const advertised = "advertised.listeners"
	if !b.ok("listeners", advertised, "controller.listener.names") {
		return
	}
	if len(b.AdvertisedListeners) == 0 {
		b.fault(advertised, "no listener of the broker is left to advertise; %s and listeners need one that is not in controller.listener.names", advertised)
		return
	}
	has := func(name string) bool {
		return slices.ContainsFunc(b.AdvertisedListeners, func(l Listener) bool { return l.Name == name })
	}
	if b.ok("inter.broker.listener.name", "security.inter.broker.protocol") && !has(b.InterBrokerListener) {
		b.fault("inter.broker.listener.name", "the listener between brokers is %s, but it must be one of the advertised listeners of the broker", b.InterBrokerListener)
	}
	for _, listener := range b.AdvertisedListeners {
		if !b.listens(listener.Name) {
			b.fault(advertised, "%s has %s, which is not in listeners", advertised, listener.Name)
		}
	}
}

func (b *builder) checkNonroutable() {
	if !b.ok("listeners", "advertised.listeners") {
		return
	}
	for _, listener := range slices.Concat(b.AdvertisedListeners, b.AdvertisedControllers) {
		if listener.Host == "0.0.0.0" {
			b.fault("advertised.listeners", "%s would be advertised as 0.0.0.0, which nobody can reach; advertised.listeners takes an address that others can", listener.Name)
		}
	}
}

// checkProtocols refuses what this node would have to speak and cannot yet.
func (b *builder) checkProtocols() {
	refuse := func(key, what, protocolName string) {
		reason := noTLS
		if !usesTLS(protocolName) {
			reason = noSASL
		}
		b.faults = append(b.faults, Fault{key, what + " speaks " + protocolName + ", which is refused: " + reason + b.where(key) + ".", true})
	}
	for _, listener := range b.Listeners {
		if listener.Protocol != Plaintext && b.ok("listeners") {
			refuse("listeners", "listener "+listener.Name, listener.Protocol)
		}
	}
	for _, name := range b.ControllerListenerNames {
		if p := b.Protocols[name]; p != "" && p != Plaintext && !b.listens(name) {
			refuse("controller.listener.names", "the controller's listener "+name, p)
		}
	}
}

func (b *builder) checkConnections() {
	const overrides, perIP = "max.connections.per.ip.overrides", "max.connections.per.ip"
	pairs, err := parsePairs(b.String(overrides))
	b.MaxConnectionsPerIP = map[string]int32{}
	for host, text := range pairs {
		count, bad := strconv.ParseInt(text, 10, 32)
		if bad != nil || !addressForm.MatchString(host+":1") || host == "" {
			b.fault(overrides, "%s is %q, but it takes host:count pairs with commas between", overrides, b.String(overrides))
			break
		}
		b.MaxConnectionsPerIP[host] = int32(count)
	}
	if err != nil {
		b.fault(overrides, "%s is %q, but it takes host:count pairs with commas between", overrides, b.String(overrides))
	}
	if b.Int(perIP) == 0 && len(pairs) == 0 && err == nil {
		b.fault(perIP, "%s is 0, which needs exceptions in %s, or nobody could connect", perIP, overrides)
	}
	queued, largest := b.Long("queued.max.request.bytes"), b.Long("socket.request.max.bytes")
	if queued > 0 && queued < largest {
		b.fault("queued.max.request.bytes", "queued.max.request.bytes is %d, but it takes at least socket.request.max.bytes, %d", queued, largest)
	}
	idle, delay := b.Long("connections.max.idle.ms"), b.Long("connection.failed.authentication.delay.ms")
	if idle >= 0 && delay >= idle {
		b.fault("connection.failed.authentication.delay.ms", "connection.failed.authentication.delay.ms is %d, but it takes less than connections.max.idle.ms, %d", delay, idle)
	}
}

// checkNames tests keys that name listeners or directories.
func (b *builder) checkNames() {
	const early, cordoned = "early.start.listeners", "cordoned.log.dirs"
	for _, name := range b.List(early) {
		if b.ok("listeners", "controller.listener.names", early) && !b.listens(name) && !slices.Contains(b.ControllerListenerNames, name) {
			b.fault(early, "%s has %q, but it takes names in listeners or controller.listener.names", early, name)
		}
	}
	dirs := b.List(cordoned)
	for _, dir := range dirs {
		if !slices.Contains(b.LogDirs, dir) && (dir != "*" || len(dirs) > 1) {
			b.fault(cordoned, "%s has %q, but it takes directories in log.dirs, or * alone", cordoned, dir)
		}
	}
}

// checkTimes tests the effective times of logs, and the memory of cleaners.
func (b *builder) checkTimes() {
	if name, ms := b.effective(segmentMs); ms < 1 {
		b.fault(name, "%s is %s, but segments take an age of at least 1 ms", name, b.given[name].Value)
	}
	if name, ms := b.effective(jitterMs); ms < 0 {
		b.fault(name, "%s is %s, but it takes no less than 0", name, b.given[name].Value)
	}
	if name, ms := b.effective(retentionMs); ms == 0 {
		b.fault(name, "%s is 0, but it takes -1 or at least 1", name)
	}
	buffer, threads := b.Long("log.cleaner.dedupe.buffer.size"), b.Long("log.cleaner.threads")
	if threads == 0 || buffer/threads <= 1<<20 {
		b.fault("log.cleaner.dedupe.buffer.size", "log.cleaner.dedupe.buffer.size is %d for %d threads of log.cleaner.threads, but each takes more than 1048576 bytes", buffer, threads)
	}
	if heartbeat, session := b.Long("broker.heartbeat.interval.ms"), b.Long("broker.session.timeout.ms"); 2*heartbeat > session {
		b.report.Warnings = append(b.report.Warnings, "broker.heartbeat.interval.ms is "+strconv.FormatInt(heartbeat, 10)+
			", more than half of broker.session.timeout.ms, "+strconv.FormatInt(session, 10)+": one lost heartbeat could fence the broker.")
	}
}

// effective gives the first of a chain of broker keys that is set, and its
// value in the unit of the first.
func (c *BrokerConfig) effective(chain []synonym) (name string, ms int64) {
	for _, link := range chain {
		if !c.IsNull(link.name) {
			return link.name, link.convert(c.Long(link.name))
		}
	}
	return chain[0].name, 0
}

// relation is a rule "low is at most high", or less than high.
type relation struct {
	low, high string
	strict    bool
}

// relations are the rules between two numbers.
var relations = buildRelations()

func buildRelations() []relation {
	all := []relation{
		{low: "replica.fetch.wait.max.ms", high: "replica.socket.timeout.ms"},
		{low: "replica.fetch.wait.max.ms", high: "replica.lag.time.max.ms"},
	}
	within := func(prefix, key string) {
		low, middle, high := prefix+"min."+key, prefix+key, prefix+"max."+key
		all = append(all, relation{low: low, high: middle}, relation{low: middle, high: high}, relation{low: low, high: high})
	}
	for _, prefix := range []string{"group.consumer.", "group.share.", "group.streams."} {
		within(prefix, "session.timeout.ms")
		within(prefix, "heartbeat.interval.ms")
		within(prefix, "assignment.interval.ms")
		all = append(all, relation{low: prefix + "heartbeat.interval.ms", high: prefix + "session.timeout.ms", strict: true})
	}
	for _, key := range []string{"delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"} {
		within("group.share.", key)
	}
	for _, key := range []string{"standby.replicas", "warmup.replicas"} {
		all = append(all, relation{low: "group.streams.num." + key, high: "group.streams.max." + key})
	}
	all = append(all, relation{low: "group.share.max.size", high: "group.share.max.share.sessions"})
	return append(all, relation{low: "group.streams.min.task.offset.interval.ms", high: "group.streams.task.offset.interval.ms"})
}

func (b *builder) checkPairs() {
	for _, r := range relations {
		low, high := b.Long(r.low), b.Long(r.high)
		switch {
		case !b.ok(r.low, r.high), low < high, low == high && !r.strict:
		case r.strict:
			b.fault(r.low, "%s is %d, but it takes less than %s, %d", r.low, low, r.high, high)
		default:
			b.fault(r.low, "%s is %d, but it takes no more than %s, %d", r.low, low, r.high, high)
		}
	}
}
