package node

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/controller/raft"
	"ottla/protocol"
)

// start begins and opens the node. On one that is no controller the metadata is
// fetched in between, as long as that takes; false: ctx ended before.
func (r *runner) start(ctx context.Context) (bool, error) {
	if r.node.config.Controller {
		return true, r.node.Start(time.Now())
	}
	if err := r.node.Begin(time.Now()); err != nil {
		return false, err
	}
	r.logger.Info("waiting for the metadata", "quorum", quorumServers(r.node.config))
	if err := r.catchUp(ctx); err != nil || ctx.Err() != nil {
		if abandoned := r.node.Abandon(time.Now()); err == nil {
			err = abandoned
		}
		return false, err
	}
	return true, r.node.Open(time.Now())
}

// catchUp pumps the quorum until the metadata is known. Afterwards it stands still
// until open pumps everything: what Open reads must not move.
func (r *runner) catchUp(ctx context.Context) error {
	pumping, cancel := context.WithCancel(ctx)
	defer cancel()
	part := r.node.Quorum()
	tick := part.Tick
	part.Tick = func(now time.Time) {
		if tick(now); r.node.CaughtUp() {
			cancel()
		}
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { pump(pumping, part) })
	var err error
	select {
	case <-pumping.Done():
	case err = <-r.fatal:
		cancel()
	}
	pumps.Wait()
	return err
}

func quorumServers(c *config.BrokerConfig) []string {
	if len(c.QuorumVoters) > 0 {
		return c.List("controller.quorum.voters")
	}
	return c.List("controller.quorum.bootstrap.servers")
}

// clusterLeaveTimeout bounds the controlled shutdown where other brokers take over
// what this one leads.
const clusterLeaveTimeout = time.Minute

func (r *runner) leaveTimeout() time.Duration {
	if r.node.config.Controller {
		return leaveTimeout
	}
	return clusterLeaveTimeout
}

func (r *runner) toQuorum(to raft.Address, req kmsg.Request, timeout time.Duration, done func(kmsg.Response, error)) {
	r.peers.toQuorum(to, req, timeout, done)
}

func (r *runner) quorumServes(by raft.Address, key protocol.APIKey) (lowest, highest int16, known bool) {
	return r.peers.quorumServes(by, key)
}
