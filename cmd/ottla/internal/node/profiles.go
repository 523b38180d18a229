package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"ottla/controller/config"
)

// profileHeaderTime bounds how long who asks for a profile may take to say which.
const profileHeaderTime = 5 * time.Second

// profiles serves the runtime's profiles under /debug/pprof/, for finding out what
// the process spends its time and memory on. A profile shows memory and costs
// time, so nobody but this machine may ask for it.
type profiles struct {
	http http.Server
	on   net.Listener
}

// openProfiles listens where ottla.debug.pprof.listener says; nil if it says
// nothing. An address that others could reach is refused.
func openProfiles(node *config.BrokerConfig, logger *slog.Logger) (*profiles, error) {
	address := node.String("ottla.debug.pprof.listener")
	if address == "" {
		return nil, nil //nolint:nilnil // nobody asked for it
	}
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("ottla.debug.pprof.listener=%s: %w", address, err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("ottla.debug.pprof.listener=%s is no loopback address: profiles are for this machine alone", address)
	}
	on, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return nil, fmt.Errorf("ottla.debug.pprof.listener=%s cannot be opened: %w", address, err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /debug/pprof/", pprof.Index)
	routes.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	routes.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	p := &profiles{on: on}
	p.http.Handler, p.http.ReadHeaderTimeout = routes, profileHeaderTime
	logger.Info("profiles are served", "address", on.Addr().String())
	go func() {
		if err := p.http.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("profiles are not served any more", "error", err)
		}
	}()
	return p, nil
}

// close cuts off who is being served.
func (p *profiles) close() {
	if p != nil {
		_ = p.http.Close() // nothing of it is kept
	}
}
