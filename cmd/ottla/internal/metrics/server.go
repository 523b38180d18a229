package metrics

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
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
	Page    func() Page  // the node's series
	Healthy func() error // nil: alive, and the metadata log can be written
	Ready   func() error // nil: clients are served
}

// Server serves /metrics, /healthz and /readyz. Until Show was called nobody is
// ready and there are no metrics, but the process is alive.
type Server struct {
	http  http.Server
	shown atomic.Pointer[shown]
}

// shown is a Node, and what tells of the process.
type shown struct {
	Node
	process *prometheus.Registry
	scrapes chan struct{} // places
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
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.shown.Store(&shown{node, process, make(chan struct{}, maxScrapes)})
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
		node.serve(w, r)
		return
	}
	http.Error(w, errStarting.Error(), http.StatusServiceUnavailable)
}

// serve writes the page: what the node counts, then what the runtime and the system
// count of the process.
func (s *shown) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case s.scrapes <- struct{}{}:
		defer func() { <-s.scrapes }()
	default:
		http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
		return
	}
	families, err := s.process.Gather()
	if err != nil && len(families) == 0 {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	pages := s.Page()
	w.Header().Set("Content-Type", textFormat)
	w.Header().Set("Vary", "Accept-Encoding")
	out := io.Writer(w)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer func() { _ = packed.Close() }() // the client may be gone
		out = packed
	}
	for _, text := range pages {
		if _, err := out.Write(text); err != nil {
			return // the client is gone
		}
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return
		}
	}
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
