package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken below the range from which Linux picks the local ports of outgoing connections (32768 and up), so that
// a client's connection cannot take a node's port while the node restarts.
const (
	lowestPort  = 21000
	highestPort = 31999
)

var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort returns a TCP port of localhost on which nobody listens and which this process was not given before.
func FreePort() (int, error) {
	taken.Lock()
	defer taken.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if taken.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		taken.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowestPort, highestPort)
}
