package config

import (
	"fmt"
	"slices"
	"strings"
)

// Origin tells which layer a property of a node comes from.
type Origin uint8

// The origins, weakest first.
const (
	FromTable    Origin = iota // the default of the table: not given at all
	FromBuiltin                // Default(): no file was given
	FromFile                   // server.properties
	FromEnv                    // an OTTLA_ variable
	FromOverride               // --override
)

// Property is one setting of a node, as it was given.
type Property struct {
	Name, Value string
	Origin      Origin
	Where       string // for messages: "server.properties line 12", "OTTLA_NODE_ID"
}

// Layer merges the layers, weakest first, into one list sorted by name: for
// every name the property of the last layer that has it.
func Layer(layers ...[]Property) []Property {
	merged := map[string]Property{}
	for _, layer := range layers {
		for _, property := range layer {
			merged[property.Name] = property
		}
	}
	return sortedProperties(merged)
}

func sortedProperties(byName map[string]Property) []Property {
	all := make([]Property, 0, len(byName))
	for _, property := range byName {
		all = append(all, property)
	}
	slices.SortFunc(all, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
	return all
}

const environmentPrefix = "OTTLA_"

// FromEnvironment reads the properties among the environment's NAME=value
// strings: OTTLA_ and the name in capitals with "_" for ".", "__" for "_" and
// "___" for "-". The result is sorted by name. Longer runs of underscores are
// read from the left, three at a time, as the apache/kafka image does.
func FromEnvironment(environ []string) []Property {
	found := map[string]Property{}
	for _, variable := range environ {
		name, text, ok := strings.Cut(variable, "=")
		encoded, ours := strings.CutPrefix(name, environmentPrefix)
		if !ok || !ours || encoded == "" {
			continue
		}
		key := strings.NewReplacer("___", "-", "__", "_", "_", ".").Replace(strings.ToLower(encoded))
		found[key] = Property{Name: key, Value: text, Origin: FromEnv, Where: name}
	}
	return sortedProperties(found)
}

// EnvironmentName gives the variable that FromEnvironment reads a key from.
func EnvironmentName(key string) string {
	return environmentPrefix + strings.ToUpper(strings.NewReplacer("-", "___", "_", "__", ".", "_").Replace(key))
}

// FromOverrides reads the values of --override: key=value. The last of several
// for one key wins. The result is sorted by name.
func FromOverrides(overrides []string) ([]Property, error) {
	found := map[string]Property{}
	for _, override := range overrides {
		key, text, ok := strings.Cut(override, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("--override takes key=value, not %q", override)
		}
		found[key] = Property{Name: key, Value: text, Origin: FromOverride, Where: "--override"}
	}
	return sortedProperties(found), nil
}

// Default gives the properties of a node that was given no file: broker and
// controller in one, PLAINTEXT on localhost:9092, the controller on
// localhost:9093, data in ./data, and the internal topics with one replica.
func Default() []Property {
	values := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"listeners":                                        "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
		"controller.listener.names":                        "CONTROLLER",
		"controller.quorum.bootstrap.servers":              "localhost:9093",
		"log.dirs":                                         "./data",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
	byName := map[string]Property{}
	for name, text := range values {
		byName[name] = Property{Name: name, Value: text, Origin: FromBuiltin, Where: "built in"}
	}
	return sortedProperties(byName)
}

// adaptBuiltin makes Default() yield to what was given above it: where the
// quorum or the listeners are set, the built-in address of the quorum would
// point nowhere.
func adaptBuiltin(given map[string]Property) {
	bootstrap, ok := given["controller.quorum.bootstrap.servers"]
	if !ok || bootstrap.Origin != FromBuiltin {
		return
	}
	if _, static := given["controller.quorum.voters"]; static {
		delete(given, bootstrap.Name)
		return
	}
	names := listSeparator.Split(strings.TrimSpace(given["controller.listener.names"].Value), -1)
	for _, text := range listSeparator.Split(strings.TrimSpace(given["listeners"].Value), -1) {
		endpoint, err := parseEndpoint(text)
		if err != nil || !slices.Contains(names, endpoint.Name) {
			continue
		}
		host := endpoint.Host
		if host == "" || host == "0.0.0.0" || host == "::" {
			host = "localhost"
		}
		bootstrap.Value = hostPort(host, endpoint.Port)
		given[bootstrap.Name] = bootstrap
		return
	}
}
