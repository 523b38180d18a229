package config

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// over lays key=value lines over the built-in properties.
func over(text string) []Property { return Layer(Default(), properties(text)) }

func TestDefaultNode(t *testing.T) {
	c, report, err := Broker(Default())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unknown)+len(report.Ignored)+len(report.Warnings) != 0 {
		t.Errorf("the built-in properties report %+v", report)
	}
	if c.NodeID != 1 || !c.Broker || !c.Controller || c.InterBrokerListener != "PLAINTEXT" ||
		!slices.Equal(c.LogDirs, []string{"./data"}) || c.MetadataLogDir != "./data" {
		t.Errorf("the node is %+v", c)
	}
	want := []Listener{{"PLAINTEXT", Plaintext, "localhost", 9092}, {"CONTROLLER", Plaintext, "localhost", 9093}}
	if !slices.Equal(c.Listeners, want) || !slices.Equal(c.AdvertisedListeners, want[:1]) || !slices.Equal(c.AdvertisedControllers, want[1:]) {
		t.Errorf("it listens on %v and advertises %v and %v", c.Listeners, c.AdvertisedListeners, c.AdvertisedControllers)
	}
	if !slices.Equal(c.BootstrapServers, []Address{{"localhost", 9093}}) || c.Int("offsets.topic.replication.factor") != 1 {
		t.Errorf("the quorum is at %v", c.BootstrapServers)
	}
	if !c.Bool("ottla.auto.format") || c.Long("log.segment.bytes") != 1<<30 || c.Double("log.cleaner.io.max.bytes.per.second") != math.MaxFloat64 ||
		!c.IsNull("broker.rack") || c.String("broker.rack") != "" || c.Origin("node.id") != FromBuiltin || c.Origin("num.partitions") != FromTable {
		t.Error("getters give other values than the table")
	}
}

// TestBuiltinYields: the built-in address of the quorum follows listeners that
// were set, and goes where voters were.
func TestBuiltinYields(t *testing.T) {
	c, _, err := Broker(over("listeners=PLAINTEXT://:19092,CONTROLLER://:19093"))
	if err != nil || !slices.Equal(c.BootstrapServers, []Address{{"localhost", 19093}}) {
		t.Errorf("%v, %v", c, err)
	}
	c, _, err = Broker(over("controller.quorum.voters=1@x:9093"))
	if err != nil || len(c.BootstrapServers) != 0 || len(c.QuorumVoters) != 1 {
		t.Errorf("%v, %v", c, err)
	}
	c, _, err = Broker(over("controller.quorum.bootstrap.servers=y:1\nlisteners=PLAINTEXT://:19092,CONTROLLER://:19093"))
	if err != nil || !slices.Equal(c.BootstrapServers, []Address{{"y", 1}}) {
		t.Errorf("%v, %v", c, err)
	}
}

// TestAllFaultsAtOnce: every bad value is told, with what is allowed and where
// it was set.
func TestAllFaultsAtOnce(t *testing.T) {
	_, _, err := Broker(over("num.partitions=0\nlog.roll.hours=x\ncompression.type=brotli\nauto.create.topics.enable=yes\n" +
		"message.max.bytes=-1\nprocess.roles=broker,zookeeper\nlog.cleaner.min.cleanable.ratio=2\ncompression.gzip.level=0\nlisteners=\nssl.key.password=hidden"))
	var faults Errors
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var texts []string
	for _, fault := range faults {
		texts = append(texts, fault.Text)
	}
	want := []string{
		`auto.create.topics.enable is "yes", but it takes true or false (a test).`,
		`compression.gzip.level is "0", but it takes a whole number from 1 to 9 or -1 (a test).`,
		`compression.type is "brotli", but it takes one of uncompressed, zstd, lz4, snappy, gzip, producer (a test).`,
		`listeners is "", but it takes a list with commas between, which must not be empty (a test).`,
		`log.cleaner.min.cleanable.ratio is "2", but it takes a number from 0 to 1 (a test).`,
		`log.roll.hours is "x", but it takes a whole number from 1 to 2147483647 (a test).`,
		`message.max.bytes is "-1", but it takes a whole number from 0 to 2147483647 (a test).`,
		`num.partitions is "0", but it takes a whole number from 1 to 2147483647 (a test).`,
		`process.roles is "broker,zookeeper", but it takes a list with commas between, which must not be empty, of broker, controller (a test).`,
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	if !strings.HasPrefix(err.Error(), "9 settings cannot be used:\n  auto.create") {
		t.Errorf("the error is %s", err)
	}
}

// TestMissing: without file, an empty list of properties lacks what has no
// default, and one fault is one sentence.
func TestMissing(t *testing.T) {
	_, _, err := Broker(nil)
	for _, name := range []string{"process.roles", "node.id", "controller.listener.names"} {
		if err == nil || !strings.Contains(err.Error(), name+" is missing") {
			t.Errorf("%s is not told missing: %v", name, err)
		}
	}
	_, _, err = Broker(over("num.partitions=0"))
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
}

// TestRefusals: what is known and not acted on stops the start when it would
// be in use, and only then.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		given   string
		refused string // property, "" none
		reason  string
	}{
		{"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "authorizer.class.name", noAuthorizer},
		{"authorizer.class.name=", "", ""},
		{"remote.log.storage.system.enable=true\nremote.log.reader.threads=3", "remote.log.storage.system.enable", noRemote},
		{"remote.log.storage.system.enable=false\nremote.log.reader.threads=3", "", ""},
		{"delegation.token.secret.key=abc", "delegation.token.secret.key", noTokens},
		{"create.topic.policy.class.name=x.Y", "create.topic.policy.class.name", noPolicies},
		{"principal.builder.class=x.Y", "principal.builder.class", noPrincipals},
		{"config.providers=file", "config.providers", noProviders},
		{"cordoned.log.dirs=*", "cordoned.log.dirs", noCordon},
		{"client.quota.callback.class=x.Y", "client.quota.callback.class", noQuotaPlugins},
		{"ssl.keystore.location=/k\nsasl.enabled.mechanisms=PLAIN\nlistener.name.external.ssl.keystore.password=p", "", ""},
		{"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL", "", ""},
		{"listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT\nssl.keystore.location=/k", "listeners", noTLS},
		{"listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT", "listeners", noSASL},
		{"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL", "listeners", noTLS},
		{"process.roles=broker\nlisteners=PLAINTEXT://:9092\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SSL", "controller.listener.names", noTLS},
		{"metric.reporters=x.Y\nnum.io.threads=16\nlog.cleaner.threads=2\ntransaction.max.timeout.ms=5", "", ""},
	} {
		_, _, err := Broker(over(c.given))
		if c.refused == "" {
			if err != nil {
				t.Errorf("%s: %v", c.given, err)
			}
			continue
		}
		var faults Errors
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Name != c.refused || !faults[0].Refused || !strings.Contains(faults[0].Text, c.reason) {
			t.Errorf("%s: %v", c.given, err)
		}
		if err != nil && strings.Contains(err.Error(), "abc") {
			t.Errorf("a secret is told: %v", err)
		}
	}
}

// TestReport: unknown keys and ignored ones are told, defaults are not.
func TestReport(t *testing.T) {
	_, report, err := Broker(over("zookeeper.connect=a\nnum.io.threads=9\nnum.network.threads=3\nssl.keystore.location=/k\n" +
		"listener.name.plaintext.num.partitions=3\nlistener.name.plaintext.max.connections=5\nlistener.name.plaintext.no.such=1\n" +
		"log.retention.hours=1\nbroker.heartbeat.interval.ms=8000\nsuper.users=User:a"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(all []Property) string {
		var names []string
		for _, property := range all {
			names = append(names, property.Name)
		}
		return strings.Join(names, " ")
	}
	if got := names(report.Unknown); got != "listener.name.plaintext.no.such super.users zookeeper.connect" {
		t.Errorf("unknown are %s", got)
	}
	if got := names(report.Ignored); got != "listener.name.plaintext.num.partitions num.io.threads ssl.keystore.location" {
		t.Errorf("ignored are %s", got)
	}
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "broker.heartbeat.interval.ms") {
		t.Errorf("warnings are %q", report.Warnings)
	}
}

// TestBadIDIsNamedOnce: broker.id and node.id stand for each other, and a fault
// names the one that was given.
func TestBadIDIsNamedOnce(t *testing.T) {
	_, _, err := Broker(over("node.id=abc"))
	if err == nil || strings.Contains(err.Error(), "broker.id") || !strings.Contains(err.Error(), "node.id is") {
		t.Errorf("the error is %v", err)
	}
}

func TestListenerScopedKeys(t *testing.T) {
	c, _, err := Broker(over("max.connections=100\nlistener.name.plaintext.max.connections=5\n" +
		"listener.name.plaintext.scram-sha-256.sasl.jaas.config=x\nmax.connections.per.ip.overrides=127.0.0.1:3,host:4"))
	if err != nil {
		t.Fatal(err)
	}
	if c.ListenerInt("PLAINTEXT", "max.connections") != 5 || c.ListenerInt("CONTROLLER", "max.connections") != 100 {
		t.Error("the listener's own value does not count")
	}
	if c.ListenerString("PLAINTEXT", "ssl.client.auth") != "none" || len(c.ListenerList("PLAINTEXT", "sasl.enabled.mechanisms")) != 1 {
		t.Error("the listener does not inherit")
	}
	if c.MaxConnectionsPerIP["127.0.0.1"] != 3 || c.MaxConnectionsPerIP["host"] != 4 {
		t.Errorf("the exceptions are %v", c.MaxConnectionsPerIP)
	}
	if _, _, err := Broker(over("listener.name.plaintext.max.connections=x")); err == nil || !strings.Contains(err.Error(), "listener.name.plaintext.max.connections") {
		t.Errorf("the error is %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	got := FromEnvironment([]string{
		"OTTLA_NUM_PARTITIONS=4", "OTTLA_ABC__DEF=1", "OTTLA_ABC___DEF=2", "OTTLA_A____B=3", "OTTLA_A_____B=5", "OTTLA_=x", "OTHER=1", "OTTLA_EMPTY=", "OTTLA_NOVALUE",
		"OTTLA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___256_SASL_JAAS_CONFIG=a=b",
	})
	want := map[string]string{
		"num.partitions": "4", "abc_def": "1", "abc-def": "2", "a-.b": "3", "a-_b": "5", "empty": "",
		"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": "a=b",
	}
	if len(got) != len(want) {
		t.Errorf("read %+v", got)
	}
	for _, property := range got {
		if text, ok := want[property.Name]; !ok || text != property.Value || property.Origin != FromEnv {
			t.Errorf("read %+v", property)
		}
	}
	for _, row := range Rows(BrokerScope) {
		back := FromEnvironment([]string{EnvironmentName(row.Name) + "=x"})
		if len(back) != 1 || back[0].Name != row.Name {
			t.Errorf("%s is written %s and read %v", row.Name, EnvironmentName(row.Name), back)
		}
	}
}

func TestLayer(t *testing.T) {
	overrides, err := FromOverrides([]string{"a=1", " b =2=3", "a=4"})
	if err != nil {
		t.Fatal(err)
	}
	got := Layer([]Property{{Name: "b", Value: "low"}, {Name: "c", Value: "kept"}}, overrides)
	if len(got) != 3 || got[0].Value != "4" || got[1].Value != "2=3" || got[2].Value != "kept" {
		t.Errorf("merged %+v", got)
	}
	for _, bad := range []string{"a", "=b", " =b"} {
		if _, err := FromOverrides([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestGettersPanic(t *testing.T) {
	c, _, err := Broker(Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, misuse := range []func(){
		func() { c.Int("no.such.key") }, func() { c.Bool("num.partitions") }, func() { c.TopicDefaults(nil, nil).Topic("t", nil).Int("no.such") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("misuse goes unnoticed")
				}
			}()
			misuse()
		}()
	}
}

func TestJavaDouble(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.5: "0.5", -2.25: "-2.25", 1e6: "1000000.0", 1e7: "1.0E7", 12345678.5: "1.23456785E7",
		0.001: "0.001", 0.0009: "9.0E-4", math.MaxFloat64: "1.7976931348623157E308", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		if got := javaDouble(v); got != want {
			t.Errorf("%g is %s, Java: %s", v, got, want)
		}
	}
}

// TestShippedFile: Kafka's own server.properties, as 4.x ships it, starts a
// node; only what concerns transactions and share groups is named as ignored.
func TestShippedFile(t *testing.T) {
	c, report, err := Broker(properties("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n" +
		"listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n" +
		"advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n" +
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n" +
		"num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n" +
		"socket.request.max.bytes=104857600\nlog.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\nnum.recovery.threads.per.data.dir=2\n" +
		"offsets.topic.replication.factor=1\nshare.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n" +
		"transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\nlog.retention.hours=168\n" +
		"log.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000"))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unknown) != 0 || len(report.Ignored) != 2 || len(report.Warnings) != 0 {
		t.Errorf("it reports %+v", report)
	}
	want := []Listener{{"PLAINTEXT", Plaintext, "localhost", 9092}}
	if !slices.Equal(c.AdvertisedListeners, want) || c.Listeners[0].Host != "" {
		t.Errorf("it listens on %v and advertises %v", c.Listeners, c.AdvertisedListeners)
	}
}
