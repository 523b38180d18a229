package node

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"ottla/controller/config"
)

func profilesOn(t *testing.T, address string) (*profiles, error) {
	t.Helper()
	overrides, err := config.FromOverrides([]string{"ottla.debug.pprof.listener=" + address})
	if err != nil {
		t.Fatal(err)
	}
	settings, _, err := config.Broker(config.Layer(append(config.Default(), overrides...)))
	if err != nil {
		t.Fatal(err)
	}
	return openProfiles(settings, slog.New(slog.DiscardHandler))
}

func TestProfilesAreForThisMachineAlone(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		if p, err := profilesOn(t, address); err == nil || !strings.Contains(err.Error(), "loopback") {
			p.close()
			t.Errorf("%s: %v", address, err)
		}
	}
	if p, err := profilesOn(t, ""); p != nil || err != nil {
		t.Errorf("without an address: %v, %v", p, err)
	}
}

func TestProfiles(t *testing.T) {
	p, err := profilesOn(t, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	resp, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/goroutine?debug=1", p.on.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "goroutine profile: total") {
		t.Errorf("%v: %.100q", err, text)
	}
}
