package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ottla/protocol/server"
)

// memory is a listener without a network.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := server.NewPipe()
	m.conns <- far
	return near, nil
}

// onePage is a page of one series.
func onePage() Page {
	text := newTextPage()
	text.put(brokerState, 3)
	return text.page()
}

// TestServer: what is served before the node has started, and after.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &memory{make(chan net.Conn), make(chan struct{})}
		s := NewServer(slog.New(slog.DiscardHandler))
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(on) }()
		client := http.Client{Transport: &http.Transport{DialContext: on.dial}}
		ask := func(path string, status int, text string) {
			t.Helper()
			response, err := client.Get("http://node" + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err = errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != status || !strings.Contains(string(body), text) {
				t.Errorf("%s: %d %s, want %d %s", path, response.StatusCode, body, status, text)
			}
		}
		ask("/healthz", 200, "ok")
		ask("/readyz", 503, "starting")
		ask("/metrics", 503, "starting")
		ask("/", 404, "")
		var sick, busy error
		s.Show(Node{Page: onePage, Healthy: func() error { return sick }, Ready: func() error { return busy }})
		ask("/healthz", 200, "ok")
		ask("/readyz", 200, "ok")
		ask("/metrics", 200, "\nkafka_server_kafkaserver_brokerstate 3\n")
		ask("/metrics", 200, "\ngo_goroutines ")
		ask("/metrics", 200, "\nprocess_resident_memory_bytes ")
		sick, busy = errors.New("the directory is full"), errors.New("the broker is fenced")
		ask("/healthz", 503, "the directory is full")
		ask("/readyz", 503, "the broker is fenced")
		client.CloseIdleConnections()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestBounded: one more than may be waits for another's end, or for the listener's.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &memory{make(chan net.Conn), make(chan struct{})}
		b := &bounded{Listener: on, places: make(chan struct{}, 2), closed: make(chan struct{})}
		accepted, failed := make(chan net.Conn, 10), make(chan error, 1)
		go func() {
			for {
				conn, err := b.Accept()
				if err != nil {
					failed <- err
					return
				}
				accepted <- conn
			}
		}()
		dialled := make(chan struct{}, 3)
		for range 3 {
			go func() {
				_, _ = on.dial(t.Context(), "", "")
				dialled <- struct{}{}
			}()
		}
		synctest.Wait()
		if len(accepted) != 2 || len(dialled) != 2 {
			t.Fatalf("%d of 2 places are taken", len(accepted))
		}
		first := <-accepted
		for range 2 { // the second time gives back nothing
			_ = first.Close()
		}
		synctest.Wait()
		if len(accepted) != 2 || len(dialled) != 3 {
			t.Errorf("who waited got no place")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestPercentiles: of the time since the last turnover but one.
func TestPercentiles(t *testing.T) {
	p := percentiles{windows: map[string]*window{}}
	now := time.UnixMilli(0)
	var counts buckets
	counts[3] = 90  // 3 µs
	counts[10] = 10 // 10 µs
	want := func(values ...float64) {
		t.Helper()
		got := p.of("Produce", now, &counts)
		for i := range values {
			if got[i] != values[i] {
				t.Errorf("%s is %v, want %v", quantiles[i].label, got[i], values[i])
			}
		}
	}
	want(0.003, 0.003, 0.010, 0.010, 0.010, 0.010)
	now = now.Add(turnover)
	want(0.003, 0.003, 0.010, 0.010, 0.010, 0.010)
	counts[5] += 1000
	want(0.005, 0.005, 0.005, 0.005, 0.005, 0.010)
	now = now.Add(turnover)
	counts[7]++
	want(0.005, 0.005, 0.005, 0.005, 0.005, 0.005) // what was before the first turnover is forgotten
	now = now.Add(turnover)
	want(0.005, 0.005, 0.005, 0.005, 0.005, 0.010) // nothing since: of all there ever were
}
