package node

import (
	"strings"
	"testing"

	"ottla/controller/config"
)

// TestOnlyVoter: a node formats its directories by itself only where the
// configuration says that the quorum is this node.
func TestOnlyVoter(t *testing.T) {
	for _, c := range []struct {
		listeners, advertised, quorum string
		alone                         bool
	}{
		{"CONTROLLER://:9093", "CONTROLLER://localhost:9093", "bootstrap.servers=localhost:9093", true}, // as shipped
		{"CONTROLLER://localhost:9093", "", "bootstrap.servers=localhost:9093", true},
		{"CONTROLLER://:9093", "", "bootstrap.servers=localhost:9093", true},
		{"CONTROLLER://0.0.0.0:9093", "CONTROLLER://a.example:9093", "bootstrap.servers=127.0.0.1:9093", true},
		{"CONTROLLER://:9093", "", "bootstrap.servers=me:9093", true},
		{"CONTROLLER://:9093", "", "bootstrap.servers=other:9093", false},
		{"CONTROLLER://10.0.0.1:9093", "", "bootstrap.servers=localhost:9093", false},
		{"CONTROLLER://localhost:9093", "", "bootstrap.servers=localhost:9092", false}, // the broker's
		{"CONTROLLER://localhost:9093", "", "bootstrap.servers=localhost:9093,other:9093", false},
		{"CONTROLLER://localhost:9093", "", "voters=1@localhost:9093", true},
		{"CONTROLLER://localhost:9093", "", "voters=1@localhost:9093,2@other:9093", false},
	} {
		given := map[string]string{
			"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER", "log.dirs": "d",
			"listeners": "PLAINTEXT://localhost:9092," + c.listeners,
		}
		if c.advertised != "" {
			given["advertised.listeners"] = "PLAINTEXT://localhost:9092," + c.advertised
		}
		key, value, _ := strings.Cut(c.quorum, "=")
		given["controller.quorum."+key] = value
		var properties []config.Property
		for name, text := range given {
			properties = append(properties, config.Property{Name: name, Value: text})
		}
		node, _, err := config.Broker(properties)
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		if alone := onlyVoter(node, "me"); alone != c.alone {
			t.Errorf("%v: alone is %v", c, alone)
		}
	}
}
