package node

import (
	"ottla/controller/config"
	"ottla/protocol/server"
)

// limits are how many connections a node takes. perIP is
// max.connections.per.ip.overrides by address.
func limits(node *config.BrokerConfig, perIP map[string]int) server.Limits {
	own := map[string]int{}
	for _, listener := range node.Listeners {
		if most := node.ListenerInt(listener.Name, "max.connections"); most != node.Int("max.connections") {
			own[listener.Name] = int(most)
		}
	}
	return server.Limits{
		MaxConnections: atMost(node.Int("max.connections"), server.DefaultMaxConnections), MaxConnectionsOf: own,
		MaxConnectionsPerIP: atMost(node.Int("max.connections.per.ip"), server.DefaultMaxConnectionsPerIP), MaxConnectionsPerIPOverrides: perIP,
	}
}

// settings takes in what was changed at run time. Addresses may have to be looked
// up, for which nobody waits.
func (r *runner) settings(effective *config.BrokerConfig) {
	if r.effective.Swap(effective) != nil {
		r.tasks.Go(r.limit)
	}
}

// limit gives the servers the limits of the moment.
func (r *runner) limit() {
	r.limiting.Lock()
	defer r.limiting.Unlock()
	effective := r.effective.Load()
	if effective == nil || r.brokers == nil {
		return
	}
	perIP, err := addresses(effective.MaxConnectionsPerIP)
	if err != nil {
		r.logger.Warn("the limits of connections were not changed", "error", err)
		return
	}
	next := limits(effective, perIP)
	r.brokers.SetLimits(next)
	r.controllers.SetLimits(next)
}
