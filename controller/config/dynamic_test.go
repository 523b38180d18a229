package config

import (
	"strings"
	"testing"

	"ottla/protocol"
)

func brokerOf(t *testing.T, properties ...string) *BrokerConfig {
	t.Helper()
	given, err := FromOverrides(properties)
	if err != nil {
		t.Fatal(err)
	}
	broker, _, err := Broker(Layer(Default(), given))
	if err != nil {
		t.Fatal(err)
	}
	return broker
}

// TestValidateDynamic: the verdicts, codes and sentences that Apache Kafka 4.4.0
// gave for the same settings of one broker ("1") or of all (""); Ottla's own
// refusals have INVALID_CONFIG.
func TestValidateDynamic(t *testing.T) {
	const exception = "Invalid value org.apache.kafka.common.config.ConfigException: "
	for _, c := range []struct {
		resource, settings string
		code               protocol.ErrorCode
		says               string
	}{
		{"1", "log.retention.ms=100000", 0, ""},
		{"", "log.retention.ms=100000", 0, ""},
		{"1", "log.dirs=/x", 42, "Cannot update these configs dynamically: [log.dirs]"},
		{"", "log.dirs=/x log.retention.ms=x", 42, "Cannot update these configs dynamically: [log.dirs]"},
		{"1", "advertised.listeners=PLAINTEXT://localhost:9", 42, "Cannot update these configs dynamically: [advertised.listeners]"},
		{"1", "group.consumer.session.timeout.ms=50000", 42, "Cannot update these configs dynamically: [group.consumer.session.timeout.ms]"},
		{"1", "no.such.key=1", 0, ""},
		{"1", "ssl.keystore.location=/x", 42, "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{"1", "listener.name.plaintext.ssl.keystore.location=/x", 0, ""},
		{"", "listener.name.plaintext.ssl.keystore.location=/x", 42, "Cannot update these configs at default cluster level, broker id must be specified: [listener.name.plaintext.ssl.keystore.location]"},
		{"", "listener.name.plaintext.max.connections=1000", 0, ""},
		{"", "listeners=PLAINTEXT://localhost:9", 42, "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
		{"1", "log.retention.ms=x", 42, "Invalid value x for configuration log.retention.ms: Not a number of type LONG"},
		{"1", "listener.name.plaintext.max.connections=x", 42, "Invalid value x for configuration max.connections: Not a number of type INT"},
		{"1", "log.segment.bytes=5", 42, "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576"},
		{"1", "leader.replication.throttled.rate=x", 42, "Invalid value x for configuration leader.replication.throttled.rate: Not a number of type LONG"},
		{"1", "leader.replication.throttled.rate=1000", 0, ""},
		{"1", "principal.builder.class=x", 42, "Invalid value x for configuration principal.builder.class: Class x could not be found."},
		{"1", "num.io.threads=12", 0, ""},
		{"1", "num.io.threads=100", 42, exception + "Dynamic thread count update validation failed for num.io.threads=100, value should not be greater than double the current value 8 for configuration Invalid dynamic configuration"},
		{"1", "num.io.threads=1", 42, exception + "Dynamic thread count update validation failed for num.io.threads=1, value should be at least half the current value 8 for configuration Invalid dynamic configuration"},
		{"1", "log.local.retention.ms=5 log.retention.ms=2", 42, exception + "Invalid value 5 for configuration log.local.retention.ms: Value must not be more than log.retention.ms property value: 2 for configuration Invalid dynamic configuration"},
		{"1", "metric.reporters=x.Y", 42, exception + "Validation of dynamic config update of Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters for configuration Invalid dynamic configuration"},
		{"1", "metric.reporters=", 0, ""},
		{"1", "log.roll.ms=0", 42, "requirement failed: log.roll.ms must be greater than or equal to 1"},
		{"1", "log.cleaner.threads=400", 42, "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{"1", "max.connections.per.ip=0", 42, "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."},
		{"1", "max.connections.per.ip=0 max.connections.per.ip.overrides=localhost:3", 0, ""},
		// What Kafka would do and Ottla does not:
		{"1", "cordoned.log.dirs=/x", 40, "cordoned.log.dirs is \"/x\", which is refused: " + noCordon + "."},
		{"1", "listeners=PLAINTEXT://localhost:9", 40, "listeners is \"PLAINTEXT://localhost:9\", which is refused: Ottla opens and closes listeners only at the start."},
		{"1", "config.providers=x", 40, "config.providers is \"x\", which is refused: " + noProviders + "."},
	} {
		settings := map[string]string{}
		for _, pair := range strings.Fields(c.settings) {
			key, value, _ := strings.Cut(pair, "=")
			settings[key] = value
		}
		err := brokerOf(t).ValidateDynamic(settings, nil, nil, c.resource != "")
		message := ""
		if text := protocol.MessageOf(err); text != nil {
			message = *text
		}
		if protocol.CodeOf(err) != c.code || message != c.says {
			t.Errorf("%q: %s\n got %v %s\nwant %v %s", c.resource, c.settings, protocol.CodeOf(err), message, c.code, c.says)
		}
	}
}

// The present run-time settings count: threads go by steps, and what is set for all
// stays beneath what is set for one.
func TestValidateDynamicOverWhatIsSet(t *testing.T) {
	broker := brokerOf(t)
	own := map[string]string{"num.io.threads": "16"}
	if err := broker.ValidateDynamic(map[string]string{"num.io.threads": "32"}, nil, own, true); err != nil {
		t.Error(err)
	}
	if err := broker.ValidateDynamic(map[string]string{}, nil, own, true); err != nil {
		t.Errorf("back to the file's 8: %v", err)
	}
	if err := broker.ValidateDynamic(map[string]string{"num.io.threads": "1"}, nil, own, false); err != nil {
		t.Errorf("for all, where this broker has its own: %v", err)
	}
}

func TestAlterBroker(t *testing.T) {
	current := map[string]string{"log.cleanup.policy": "compact"}
	for _, c := range []struct {
		change Alteration
		want   string // of log.cleanup.policy, or the sentence
	}{
		{Alteration{"log.cleanup.policy", AlterAppend, "delete,compact"}, "compact,delete"},
		{Alteration{"log.cleanup.policy", AlterSubtract, "compact"}, ""},
		{Alteration{"log.cleanup.policy", AlterSet, "x"}, "x"},
		{Alteration{"log.retention.ms", AlterAppend, "5"}, "Config value append is not allowed for config key: log.retention.ms"},
		{Alteration{"log.retention.ms", AlterSubtract, "5"}, "Config value subtract is not allowed for config key: log.retention.ms"},
		{Alteration{"zork", AlterAppend, "5"}, "Unknown config name: zork"},
	} {
		next, err := AlterBroker(current, []Alteration{c.change})
		got := next["log.cleanup.policy"]
		if err != nil {
			got = *protocol.MessageOf(err)
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.change, got, c.want)
		}
	}
	if next, err := AlterBroker(current, []Alteration{{Name: "log.cleanup.policy", Kind: AlterDelete}}); err != nil || len(next) != 0 || len(current) != 1 {
		t.Errorf("deleted: %v %v, and before %v", next, err, current)
	}
	if next, _ := AlterBroker(nil, []Alteration{{"log.cleanup.policy", AlterAppend, "compact"}}); next["log.cleanup.policy"] != "delete,compact" {
		t.Errorf("to the default: %v", next)
	}
}

func TestEffective(t *testing.T) {
	broker := brokerOf(t, "max.connections=100", "listeners=PLAINTEXT://:9092,CONTROLLER://:9093")
	everyone := map[string]string{"max.connections": "200", "producer.id.expiration.ms": "5000", "no.such": "1", "leader.replication.throttled.rate": "7"}
	own := map[string]string{"max.connections": "300", "max.connections.per.ip.overrides": "127.0.0.1:5", "listener.name.plaintext.max.connections": "50", "log.retention.ms": "rubbish", "log.dirs": "/elsewhere"}
	effective, err := broker.Effective(everyone, own)
	if err != nil {
		t.Fatal(err)
	}
	if effective.Int("max.connections") != 300 || effective.Int("producer.id.expiration.ms") != 5000 || effective.MaxConnectionsPerIP["127.0.0.1"] != 5 ||
		effective.ListenerInt("PLAINTEXT", "max.connections") != 50 || !effective.IsNull("log.retention.ms") {
		t.Errorf("%+v", effective)
	}
	if len(effective.LogDirs) != len(broker.LogDirs) || effective.LogDirs[0] != broker.LogDirs[0] || broker.Int("max.connections") != 100 {
		t.Errorf("directories %v, and the file's own %d", effective.LogDirs, broker.Int("max.connections"))
	}
	// What does not go together, as another implementation may have written it, is not applied.
	same, err := broker.Effective(map[string]string{"log.roll.ms": "0"}, nil)
	if err == nil || same != broker {
		t.Errorf("%v %v", same, err)
	}
}

// TestDescribeGroup: what Apache Kafka 4.4.0 describes of a group that sets one key.
func TestDescribeGroup(t *testing.T) {
	broker := brokerOf(t, "group.consumer.heartbeat.interval.ms=6000")
	entries := DescribeGroup(map[string]string{"consumer.session.timeout.ms": "50000", "consumer.assignor.offload.enable": "false"}, broker, nil, nil, nil)
	byName := map[string]Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	if len(entries) != 22 { // 21, and an internal one that is set
		t.Errorf("%d entries", len(entries))
	}
	for name, want := range map[string]struct {
		value  string
		source Source
		chain  string
	}{
		"consumer.session.timeout.ms":               {"50000", SourceGroup, "consumer.session.timeout.ms=50000 8, group.consumer.session.timeout.ms=45000 5"},
		"consumer.heartbeat.interval.ms":            {"6000", SourceStaticBroker, "group.consumer.heartbeat.interval.ms=6000 4, group.consumer.heartbeat.interval.ms=5000 5"},
		"streams.assignor.name":                     {"sticky", SourceDefault, "group.streams.assignors=sticky 5"},
		"share.isolation.level":                     {"read_uncommitted", SourceDefault, "share.isolation.level=read_uncommitted 5"},
		"errors.deadletterqueue.topic.name":         {"", SourceDefault, "errors.deadletterqueue.topic.name= 5"},
		"consumer.assignor.offload.enable":          {"false", SourceGroup, "consumer.assignor.offload.enable=false 8, group.consumer.assignor.offload.enable=true 5"},
		"errors.deadletterqueue.copy.record.enable": {"false", SourceDefault, "errors.deadletterqueue.copy.record.enable=false 5"},
	} {
		e := byName[name]
		var chain []string
		for _, s := range e.Synonyms {
			chain = append(chain, s.Name+"="+*s.Value+" "+string('0'+rune(s.Source)))
		}
		if e.Value == nil || *e.Value != want.value || e.Source != want.source || strings.Join(chain, ", ") != want.chain || e.ReadOnly || e.Sensitive {
			t.Errorf("%s: %+v with %q", name, e, strings.Join(chain, ", "))
		}
	}
	if one := DescribeGroup(nil, broker, nil, nil, []string{"share.heartbeat.interval.ms", "zork"}); len(one) != 1 {
		t.Errorf("%v", one)
	}
}

func TestClientMetrics(t *testing.T) {
	for settings, says := range map[string]string{
		"interval.ms=100":   "",
		"interval.ms=99":    "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
		"interval.ms=x":     "Invalid value x for configuration interval.ms: Not a number of type INT",
		"nope=1":            "Unknown client metrics configuration: nope",
		"match=foo":         "Illegal client matching pattern: foo",
		"match=client_id=[": "Illegal client matching pattern: client_id=[",
		"match=zork=a":      "Illegal client matching pattern: zork=a",
		"match=client_id=a*,client_software_name=b": "",
		"match=client_id=(?<=a)b":                   "", // Java knows it
	} {
		key, value, _ := strings.Cut(settings, "=")
		err := ValidateClientMetrics("m", map[string]string{key: value})
		got := ""
		if text := protocol.MessageOf(err); text != nil {
			got = *text
		}
		if got != says {
			t.Errorf("%s: %q, want %q", settings, got, says)
		}
	}
	entries := DescribeClientMetrics(map[string]string{"metrics": "a,b"}, nil)
	if len(entries) != 3 || *entries[2].Value != "a,b" || entries[2].Source != SourceClientMetrics || *entries[0].Value != "300000" || entries[0].Source != SourceDefault {
		t.Errorf("%+v", entries)
	}
}
