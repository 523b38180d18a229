package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// maxScrapes and maxConnections bound what the listener costs; who comes beyond
	// is told 503, or waits.
	maxScrapes     = 4
	maxConnections = 64

	headerTime = 5 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// Node is what is served of one node.
type Node struct {
	Collector prometheus.Collector
	Healthy   func() error // nil: alive, and the metadata log can be written
	Ready     func() error // nil: clients are served
}

// Server serves /metrics, /healthz and /readyz. Until Show was called nobody is
// ready and there are no metrics, but the process is alive.
type Server struct {
	http  http.Server
	shown atomic.Pointer[shown]
}

// shown is a Node with the handler that was made for it.
type shown struct {
	Node
	metrics http.Handler
}

// NewServer makes a Server that shows nothing yet.
func NewServer(logger *slog.Logger) *Server {
	s := &Server{}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /metrics", s.serveMetrics)
	routes.HandleFunc("GET /healthz", s.serveHealth)
	routes.HandleFunc("GET /readyz", s.serveReady)
	s.http = http.Server{
		Handler: routes, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Show says what to serve.
func (s *Server) Show(node Node) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(node.Collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.shown.Store(&shown{node, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError,
	})})
}

// Serve serves until Close, on a listener that it closes.
func (s *Server) Serve(on net.Listener) error {
	err := s.http.Serve(&bounded{Listener: on, places: make(chan struct{}, maxConnections), closed: make(chan struct{})})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("the listener of the metrics: %w", err)
}

// Close ends it: what is being served may finish until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if node := s.shown.Load(); node != nil {
		node.metrics.ServeHTTP(w, r)
		return
	}
	http.Error(w, errStarting.Error(), http.StatusServiceUnavailable)
}

var errStarting = errors.New("the node is starting")

// serveHealth is alive while the node starts: a long recovery is no reason to kill it.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if node := s.shown.Load(); node != nil {
		answer(w, node.Healthy())
		return
	}
	answer(w, nil)
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if node := s.shown.Load(); node != nil {
		answer(w, node.Ready())
		return
	}
	answer(w, errStarting)
}

func answer(w http.ResponseWriter, wrong error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok"
	if wrong != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = wrong.Error()
	}
	_, _ = fmt.Fprintln(w, text) // the client may be gone
}
