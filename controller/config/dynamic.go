package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ValidateDynamic checks the run-time settings of a broker resource as a whole
// (KIP-226): settings are all that will be set on it, perBroker tells this
// broker's own resource from the default of all brokers, and the maps hold what
// is set at present. The error is a *protocol.Error: INVALID_REQUEST with
// Kafka's sentence where Kafka has one (DynamicBrokerConfig.validate), and
// INVALID_CONFIG with the reason where Ottla would not act on a setting. Keys
// that no row has are taken, as by Kafka.
func (c *BrokerConfig) ValidateDynamic(settings, clusterDefaults, brokerDynamic map[string]string, perBroker bool) error {
	names := slices.Sorted(maps.Keys(settings))
	if err := checkDynamicNames(names, settings, perBroker); err != nil {
		return err
	}
	after := layered{c, clusterDefaults, settings}
	if !perBroker {
		after = layered{c, settings, brokerDynamic}
	}
	if err := c.checkServed(names, settings, after); err != nil {
		return err
	}
	if err := checkThreads(layered{c, clusterDefaults, brokerDynamic}, after); err != nil {
		return err
	}
	if err := checkLocalRetention(after); err != nil {
		return err
	}
	return c.checkTogether(after)
}

// listenerOnly are keys that only make sense for one listener
// (DynamicBrokerConfig.DynamicSecurityConfigs).
var listenerOnly = []string{
	"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password",
	"ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
}

// clusterWideOfListener are the listener-scoped keys that may be set for all brokers.
var clusterWideOfListener = []string{"max.connections", "max.connection.creation.rate", "num.network.threads"}

// checkDynamicNames is the part of the check that looks at names and single
// values, in Kafka's order.
func checkDynamicNames(names []string, settings map[string]string, perBroker bool) error {
	refuse := func(sentence string, is func(name string) bool) error {
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !is(name) })
		if len(found) == 0 {
			return nil
		}
		return invalidRequest("%s: [%s]", sentence, strings.Join(found, ", "))
	}
	if err := refuse("Cannot update these configs dynamically", isStatic); err != nil {
		return err
	}
	if err := refuse("These security configs can be dynamically updated only per-listener using the listener prefix", func(name string) bool {
		return slices.Contains(listenerOnly, name)
	}); err != nil {
		return err
	}
	for _, name := range names {
		row := dynamicRow(name)
		if row == nil {
			continue
		}
		if _, bad := row.parse(settings[name]); bad != nil {
			return invalidRequest("%s", row.kafkaSentence(settings[name], bad))
		}
		if row.Type == Class && row.Support == Refused && settings[name] != row.Default {
			return invalidRequest("Invalid value %s for configuration %s: Class %s could not be found.", settings[name], row.Name, settings[name])
		}
	}
	if perBroker {
		return nil
	}
	return refuse("Cannot update these configs at default cluster level, broker id must be specified", isPerBroker)
}

// isStatic tells keys that only the file can set.
func isStatic(name string) bool {
	row := index[BrokerScope].byName[name]
	return row != nil && row.Mode == ReadOnly
}

// isPerBroker tells keys that cannot be set for all brokers at once.
func isPerBroker(name string) bool {
	if row := index[BrokerScope].byName[name]; row != nil {
		return row.Mode == PerBroker
	}
	_, base, scoped := splitListenerKey(name)
	return scoped && !slices.Contains(clusterWideOfListener, base)
}

// checkServed refuses what would be stored and not done though it would be in
// use: the same as at the start, and what a running node cannot change.
func (c *BrokerConfig) checkServed(names []string, settings map[string]string, after layered) error {
	b := &builder{BrokerConfig: *c}
	for _, name := range names {
		row := Find(BrokerScope, name)
		switch {
		case row == nil:
			continue
		case name == "listeners" || name == "listener.security.protocol.map":
			if next := after.value(name); !next.equal(c.get(name)) {
				return invalidConfig("%s is %q, which is refused: Ottla opens and closes listeners only at the start.", name, settings[name])
			}
		case name == "metric.reporters" && settings[name] != "" && settings[name] != row.Default:
			return dynamicFault("Validation of dynamic config update of Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters")
		case row.Support == Refused && (row.Use == Always || b.inUse(row.Use)):
			if parsed, _ := row.parse(settings[name]); !parsed.equal(row.defaultValue()) {
				return invalidConfig("%s is %s, which is refused: %s.", name, row.shown(settings[name]), row.Reason)
			}
		}
	}
	return nil
}

// dynamicFault is how Kafka words what its reconfigurable parts refuse.
func dynamicFault(format string, args ...any) error {
	return invalidRequest("Invalid value org.apache.kafka.common.config.ConfigException: %s for configuration Invalid dynamic configuration", fmt.Sprintf(format, args...))
}

// threadKeys may at most double or halve at a time. Nothing here has so many
// threads; but who keeps to it with Ottla can go back to Kafka.
var threadKeys = []string{"background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers"}

func checkThreads(before, after layered) error {
	for _, name := range threadKeys {
		was, is := as[int64](name, before.value(name)), as[int64](name, after.value(name))
		why := ""
		switch {
		case is == was:
		case is <= 0:
			why = "value should be at least 1"
		case is < was/2:
			why = fmt.Sprintf("value should be at least half the current value %d", was)
		case is > was*2:
			why = fmt.Sprintf("value should not be greater than double the current value %d", was)
		}
		if why != "" {
			return dynamicFault("Dynamic thread count update validation failed for %s=%d, %s", name, is, why)
		}
	}
	return nil
}

// checkLocalRetention keeps what remains here of a log in remote storage within
// what is kept at all.
func checkLocalRetention(after layered) error {
	retention := int64(0)
	for _, link := range retentionMs {
		if v := after.value(link.name); v.parsed != nil {
			retention = link.convert(as[int64](link.name, v))
			break
		}
	}
	for _, rule := range []struct {
		local, whole string
		most         int64
	}{
		{"log.local.retention.ms", "log.retention.ms", retention},
		{"log.local.retention.bytes", "log.retention.bytes", as[int64]("", after.value("log.retention.bytes"))},
	} {
		local := as[int64](rule.local, after.value(rule.local))
		switch {
		case local == -2 || rule.most < 0:
		case local == -1:
			return dynamicFault("Invalid value -1 for configuration %s: Value must not be -1 as %s value is set as %d.", rule.local, rule.whole, rule.most)
		case local > rule.most:
			return dynamicFault("Invalid value %d for configuration %s: Value must not be more than %s property value: %d", local, rule.local, rule.whole, rule.most)
		}
	}
	return nil
}

// requirements are Kafka's sentences for rules between keys, by the key at fault.
var requirements = map[string]string{
	"log.cleaner.dedupe.buffer.size": "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
	"log.retention.ms":               "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
	"log.roll.jitter.ms":             "log.roll.jitter.ms must be greater than or equal to 0",
	"log.roll.ms":                    "log.roll.ms must be greater than or equal to 1",
	"max.connections.per.ip":         "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
}

// checkTogether checks the node as it would be configured if the file said all
// this, for the rules between keys.
func (c *BrokerConfig) checkTogether(after layered) error {
	_, _, err := Broker(after.properties())
	var faults Errors
	if !errors.As(err, &faults) {
		return err
	}
	// What the file's own settings would be told is no fault of the request.
	known := map[string]bool{}
	if _, _, before := Broker(c.Given()); before != nil {
		var old Errors
		errors.As(before, &old)
		for _, fault := range old {
			known[fault.Text] = true
		}
	}
	for _, fault := range faults {
		if known[fault.Text] {
			continue
		}
		if fault.Refused {
			return invalidConfig("%s", fault.Text)
		}
		if sentence, ok := requirements[fault.Name]; ok {
			return invalidRequest("requirement failed: %s", sentence)
		}
		return invalidRequest("requirement failed: %s", fault.Text)
	}
	return nil
}

// properties are the file's, with the run-time settings that count laid over.
func (l layered) properties() []Property {
	merged := maps.Clone(l.broker.given)
	for _, layer := range []map[string]string{l.defaults, l.dynamic} {
		for name, text := range layer {
			if row := dynamicRow(name); row == nil || dynamicRows[name] != nil {
				continue
			} else if _, bad := row.parse(text); bad == nil {
				merged[name] = Property{Name: name, Value: text, Origin: FromOverride}
			}
		}
	}
	return sortedProperties(merged)
}

// Effective is the configuration with the run-time settings applied, for the
// parts of a node that follow them. Settings that are not allowed or do not go
// together with the others, as another implementation may have written, are
// passed over, in the second case all of them; the error then says why.
func (c *BrokerConfig) Effective(clusterDefaults, brokerDynamic map[string]string) (*BrokerConfig, error) {
	l := layered{c, clusterDefaults, brokerDynamic}
	next, _, err := Broker(l.properties())
	if err != nil {
		return c, err
	}
	// Listeners are bound once, also those whose port the system chose.
	next.Listeners, next.AdvertisedListeners, next.AdvertisedControllers = c.Listeners, c.AdvertisedListeners, c.AdvertisedControllers
	return next, nil
}
