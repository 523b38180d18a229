package api

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/session"
	"ottla/protocol"
	"ottla/protocol/server"
)

// sessions is the cache of fetch sessions behind its lock.
type sessions struct {
	mu    sync.Mutex
	cache *session.Cache
	off   bool // no slots: nobody gets a session
}

func newSessions(node *Node) sessions {
	slots := node.Config.Int("max.incremental.fetch.session.cache.slots")
	return sessions{cache: session.NewCache(session.Options{Slots: int(slots), Random: node.Random}), off: slots == 0}
}

func (s *sessions) decide(now time.Time, req *kmsg.FetchRequest, name func(protocol.TopicID) string) (*session.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off && req.SessionEpoch == 0 {
		req.SessionEpoch = -1 // as one that wants none
	}
	return s.cache.Decide(now, req, name)
}

func (s *sessions) update(now time.Time, context *session.Context, results []session.Result) session.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return context.Update(now, results)
}

// FetchSessions gives what metrics tell of the cache.
func (h *Handler) FetchSessions() (sessions, partitions int, evictions int64) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	return h.sessions.cache.Sessions(), h.sessions.cache.Partitions(), h.sessions.cache.Evictions()
}

// polls knows how to end the fetches that wait, by connection: a client may ask to
// wait for weeks, and hang up.
type polls struct {
	mu     sync.Mutex
	byConn map[*server.Conn]map[*call]func()
}

// begin notes a fetch that may have to wait.
func (p *polls) begin(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := c.request.Conn
	if p.byConn[conn] == nil {
		p.byConn[conn] = map[*call]func(){}
	}
	p.byConn[conn][c] = nil
}

// waits notes how to end one that has begun and was not answered yet.
func (p *polls) waits(c *call, cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.byConn[c.request.Conn]
	if _, waiting := calls[c]; waiting {
		calls[c] = cancel
	}
}

// end forgets a fetch that is answered.
func (p *polls) end(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := c.request.Conn
	delete(p.byConn[conn], c)
	if len(p.byConn[conn]) == 0 {
		delete(p.byConn, conn)
	}
}

// ConnectionClosed is what server.Options.ConnectionClosed wants: it ends the
// fetches of the connection that wait.
func (h *Handler) ConnectionClosed(conn *server.Conn) {
	h.polls.mu.Lock()
	calls := h.polls.byConn[conn]
	delete(h.polls.byConn, conn)
	h.polls.mu.Unlock()
	for _, cancel := range calls { // in any order: nobody sees the answers
		if cancel != nil {
			cancel()
		}
	}
}
