package config

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ottla/protocol"
)

// Listener is one endpoint a node listens on or advertises.
type Listener struct {
	Name     string // upper case, as PLAINTEXT
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host     string // without brackets; "" is all addresses, or this host's name
	Port     int32
}

// Voter is one voter of a static quorum.
type Voter struct {
	ID   protocol.NodeID
	Host string
	Port int32
}

// Address is a host and a port.
type Address struct {
	Host string
	Port int32
}

// The security protocols.
const (
	Plaintext     = "PLAINTEXT"
	SSL           = "SSL"
	SASLPlaintext = "SASL_PLAINTEXT"
	SASLSSL       = "SASL_SSL"
)

func usesTLS(protocolName string) bool { return protocolName == SSL || protocolName == SASLSSL }
func usesSASL(protocolName string) bool {
	return protocolName == SASLPlaintext || protocolName == SASLSSL
}

var (
	endpointForm = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)
	addressForm  = regexp.MustCompile(`^\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)$`)
)

// hostPort writes an address, with brackets where the host needs them.
func hostPort(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}

func parsePort(text string) (int32, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%s is not a port from 0 to 65535", text)
	}
	return int32(port), nil
}

// parseEndpoint reads NAME://host:port; the protocol is left to the caller.
func parseEndpoint(text string) (Listener, error) {
	parts := endpointForm.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Listener{}, fmt.Errorf("%q has not the form NAME://host:port", text)
	}
	port, err := parsePort(parts[3])
	if err != nil {
		return Listener{}, fmt.Errorf("in %q %w", text, err)
	}
	return Listener{Name: strings.ToUpper(parts[1]), Host: parts[2], Port: port}, nil
}

func parseAddress(text string) (Address, error) {
	parts := addressForm.FindStringSubmatch(text)
	if parts == nil || parts[1] == "" {
		return Address{}, fmt.Errorf("%q has not the form host:port", text)
	}
	port, err := parsePort(parts[2])
	if err != nil {
		return Address{}, fmt.Errorf("in %q %w", text, err)
	}
	return Address{parts[1], port}, nil
}

func parseAddresses(elements []string) ([]Address, error) {
	var all []Address
	for _, element := range elements {
		address, err := parseAddress(element)
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

// parseVoters reads id@host:port entries. The last of two with one id wins, as
// in Kafka. The result is sorted by id.
func parseVoters(elements []string) ([]Voter, error) {
	byID := map[protocol.NodeID]Voter{}
	for _, element := range elements {
		id, rest, ok := strings.Cut(element, "@")
		number, err := strconv.ParseInt(id, 10, 32)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q has not the form id@host:port", element)
		}
		address, err := parseAddress(rest)
		if err != nil {
			return nil, fmt.Errorf("%q has not the form id@host:port", element)
		}
		byID[protocol.NodeID(number)] = Voter{protocol.NodeID(number), address.Host, address.Port}
	}
	all := make([]Voter, 0, len(byID))
	for _, voter := range byID {
		all = append(all, voter)
	}
	slices.SortFunc(all, func(a, b Voter) int { return int(int64(a.ID) - int64(b.ID)) })
	return all, nil
}

// parsePairs reads key:value pairs with commas between; the value is what
// follows the last colon.
func parsePairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	if text == "" {
		return pairs, nil
	}
	elements := listSeparator.Split(text, -1)
	for len(elements) > 0 && elements[len(elements)-1] == "" {
		elements = elements[:len(elements)-1] // as Java's split
	}
	for _, element := range elements {
		at := strings.LastIndexByte(element, ':')
		if at < 0 {
			return nil, fmt.Errorf("%q has not the form key:value", element)
		}
		pairs[strings.TrimSpace(element[:at])] = strings.TrimSpace(element[at+1:])
	}
	return pairs, nil
}

// parseProtocolMap reads listener.security.protocol.map.
func parseProtocolMap(text string) (map[string]string, error) {
	pairs, err := parsePairs(text)
	if err != nil {
		return nil, err
	}
	protocols := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		protocolName := pairs[name]
		upper := strings.ToUpper(protocolName)
		switch upper {
		case Plaintext, SSL, SASLPlaintext, SASLSSL:
		default:
			return nil, fmt.Errorf("%q is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", protocolName)
		}
		if _, twice := protocols[strings.ToUpper(name)]; twice {
			return nil, fmt.Errorf("the listener %s is mapped twice", strings.ToUpper(name))
		}
		protocols[strings.ToUpper(name)] = upper
	}
	return protocols, nil
}

// parseListeners reads a list of endpoints and finds their protocols.
func parseListeners(elements []string, protocols map[string]string) ([]Listener, error) {
	var all []Listener
	for _, element := range elements {
		listener, err := parseEndpoint(element)
		if err != nil {
			return nil, err
		}
		listener.Protocol = protocols[listener.Name]
		if listener.Protocol == "" {
			return nil, fmt.Errorf("listener.security.protocol.map names no protocol for the listener %s", listener.Name)
		}
		if slices.ContainsFunc(all, func(other Listener) bool { return other.Name == listener.Name }) {
			return nil, fmt.Errorf("the listener %s stands there twice", listener.Name)
		}
		all = append(all, listener)
	}
	return all, nil
}

// checkPorts refuses two listeners on one port, except one IPv4 and one IPv6
// address. Port 0 lets the system choose and never collides.
func checkPorts(listeners []Listener) error {
	byPort := map[int32][]Listener{}
	for _, listener := range listeners {
		if listener.Port != 0 {
			byPort[listener.Port] = append(byPort[listener.Port], listener)
		}
	}
	for _, listener := range listeners {
		same := byPort[listener.Port]
		if len(same) < 2 || len(same) == 2 && oneOfEach(same[0].Host, same[1].Host) {
			continue
		}
		return fmt.Errorf("several listeners use port %d, which only one IPv4 and one IPv6 address may share", listener.Port)
	}
	return nil
}

func oneOfEach(a, b string) bool {
	first, err1 := netip.ParseAddr(a)
	second, err2 := netip.ParseAddr(b)
	return err1 == nil && err2 == nil && first.Is4() != second.Is4()
}
