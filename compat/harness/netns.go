package harness

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Network is machines without hardware: network namespaces of Linux, each with one cable to a switch, which is a namespace too. Cables are
// pulled, and packets dropped, at the switch. The process that makes it must itself run in a network namespace of its own (run.sh makes
// one), which gets a cable as well: so nothing ever leaves the machine. It takes root, ip, nft and tc.
type Network struct {
	name  string
	hosts int
}

// Host is one of its machines.
type Host struct {
	Address string // IPv4

	network   *Network
	namespace string
	port      string // of the switch
}

// dropTable is what the switch drops: whole directions (cut), or one packet in so many (loss).
const dropTable = `table bridge chaos {
 set cut {
  type ipv4_addr . ipv4_addr
 }
 chain cutting {
  type filter hook forward priority 0; policy accept;
  ip saddr . ip daddr @cut drop
 }
 chain loss {
  type filter hook forward priority 1; policy accept;
 }
}
`

// NewNetwork makes the switch, and connects the namespace in which this process runs. run.sh removes the namespaces whose names
// begin with name when a test was ended half-way.
func NewNetwork(name string) (*Network, error) {
	cables, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(cables, func(i net.Interface) bool { return i.HardwareAddr != nil }) {
		return nil, errors.New("this process is not in a network namespace of its own: compat/run.sh makes one")
	}
	n := &Network{name: name}
	if err := command("ip", "netns", "add", n.switchName()); err != nil {
		return nil, err
	}
	err = commands(
		[]string{"ip", "-n", n.switchName(), "link", "add", "br0", "type", "bridge"},
		[]string{"ip", "-n", n.switchName(), "link", "set", "br0", "up"},
	)
	if err == nil {
		err = n.drops(dropTable)
	}
	if err == nil {
		err = commands(
			[]string{"ip", "link", "add", "e0", "type", "veth", "peer", "name", "clients", "netns", n.switchName()},
			[]string{"ip", "-n", n.switchName(), "link", "set", "clients", "master", "br0", "up"},
			[]string{"ip", "addr", "add", "10.99.0.254/24", "dev", "e0"},
			[]string{"ip", "link", "set", "lo", "up"},
			[]string{"ip", "link", "set", "e0", "up"},
		)
	}
	if err != nil {
		_ = n.Close() // err is the answer
		return nil, err
	}
	return n, nil
}

func (n *Network) switchName() string { return n.name + "-switch" }

// AddHost makes one more machine, 10.99.0.1 and so on.
func (n *Network) AddHost() (*Host, error) {
	n.hosts++
	h := &Host{
		network: n, Address: fmt.Sprintf("10.99.0.%d", n.hosts), namespace: fmt.Sprintf("%s-%d", n.name, n.hosts), port: "p" + strconv.Itoa(n.hosts),
	}
	return h, commands(
		[]string{"ip", "netns", "add", h.namespace},
		[]string{"ip", "-n", h.namespace, "link", "set", "lo", "up"},
		[]string{"ip", "-n", n.switchName(), "link", "add", h.port, "type", "veth", "peer", "name", "e0", "netns", h.namespace},
		[]string{"ip", "-n", n.switchName(), "link", "set", h.port, "master", "br0", "up"},
		[]string{"ip", "-n", h.namespace, "addr", "add", h.Address + "/24", "dev", "e0"},
		[]string{"ip", "-n", h.namespace, "link", "set", "e0", "up"},
	)
}

// on gives the command that runs argv on the machine, as the same process.
func (h *Host) on(argv []string) []string {
	if h == nil {
		return argv
	}
	return append([]string{"nsenter", "--net=/run/netns/" + h.namespace}, argv...)
}

// Unplug pulls the cable of a machine; nobody hears of it.
func (h *Host) Unplug() error { return h.cable("down") }

// Plug puts it back.
func (h *Host) Plug() error { return h.cable("up") }

func (h *Host) cable(state string) error {
	return command("ip", "-n", h.network.switchName(), "link", "set", h.port, state)
}

// Cut drops everything that goes from one machine to another; not what comes back.
func (n *Network) Cut(from, to *Host) error {
	return n.drops(fmt.Sprintf("add element bridge chaos cut { %s . %s }", from.Address, to.Address))
}

// Lose drops so many percent of the packets from and to a machine.
func (n *Network) Lose(h *Host, percent int) error {
	return n.drops(fmt.Sprintf("add rule bridge chaos loss ip saddr %[1]s numgen random mod 100 < %[2]d drop\nadd rule bridge chaos loss ip daddr %[1]s numgen random mod 100 < %[2]d drop\n", h.Address, percent))
}

// Throttle lets a machine send only so much; what is more waits, for up to delayMs, and is dropped then.
func (h *Host) Throttle(kilobitsPerSecond, delayMs int) error {
	return command("ip", "netns", "exec", h.namespace, "tc", "qdisc", "add", "dev", "e0", "root", "tbf",
		"rate", fmt.Sprintf("%dkbit", kilobitsPerSecond), "burst", "4kb", "latency", fmt.Sprintf("%dms", delayMs))
}

// Unthrottle ends that.
func (h *Host) Unthrottle() error {
	return command("ip", "netns", "exec", h.namespace, "tc", "qdisc", "del", "dev", "e0", "root")
}

// Heal ends Cut and Lose.
func (n *Network) Heal() error {
	return n.drops("flush set bridge chaos cut\nflush chain bridge chaos loss\n")
}

// drops gives rules to the switch.
func (n *Network) drops(rules string) error {
	nft := exec.Command("ip", "netns", "exec", n.switchName(), "nft", "-f", "-")
	nft.Stdin = strings.NewReader(rules)
	if out, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

// Close removes all of it. Nothing may run there any more.
func (n *Network) Close() error {
	first := command("ip", "link", "del", "e0") // at once: with the switch it would go a little later
	for i := 1; i <= n.hosts; i++ {
		if err := command("ip", "netns", "del", fmt.Sprintf("%s-%d", n.name, i)); err != nil && first == nil {
			first = err
		}
	}
	if err := command("ip", "netns", "del", n.switchName()); err != nil && first == nil { // takes the cables with it
		first = err
	}
	return first
}

func commands(all ...[]string) error {
	for _, argv := range all {
		if err := command(argv...); err != nil {
			return err
		}
	}
	return nil
}

func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
