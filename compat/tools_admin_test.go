//go:build compat

package compat

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

func adminToolCases() []toolCase {
	const configs, logDirs, quorum, features = "ConfigCommand", "LogDirsCommand", "MetadataQuorumCommand", "FeatureCommand"
	const elections, reassign, cluster = "LeaderElectionCommand", "reassign.ReassignPartitionsCommand", "ClusterTool"
	return []toolCase{
		{configs, "topics", configTopics},
		{configs, "topics refused", configTopicsRefused},
		{configs, "one broker and all brokers", configBrokers},
		{configs, "brokers refused", configBrokersRefused},
		{configs, "a broker's new default is at work", configAtWork},
		{configs, "broker loggers", configLoggers},
		{configs, "groups and client metrics", configGroups},
		{configs, "users and clients", func(t *toolT) {
			for _, kind := range []string{"users", "clients", "ips"} {
				if out := t.ok(configs, "--entity-type", kind, "--describe"); strings.TrimSpace(out) != "" {
					t.Errorf("%s: %q", kind, out)
				}
			}
		}},
		{"ClientMetricsCommand", "every action", clientMetricsTool},
		{logDirs, "every option", logDirsTool},
		{quorum, "status and replication", quorumTool},
		{features, "describe", func(t *toolT) {
			out := t.ok(features, "describe")
			t.says(out, `(?m)^Feature: kraft\.version +SupportedMinVersion: 0 +SupportedMaxVersion: 1 +FinalizedVersionLevel: 1 +Epoch: \d+$`)
			t.says(out, `(?m)^Feature: metadata\.version +SupportedMinVersion: 3\.\d-IV\d +SupportedMaxVersion: 4\.4-IV2 +FinalizedVersionLevel: 4\.4-IV2 +Epoch: \d+$`)
		}},
		{features, "upgrade and downgrade", featuresTool},
		{elections, "preferred and unclean", electionsTool},
		{reassign, "every action on one node", reassignTool},
		{cluster, "every action", clusterTool},
		{"AclCommand", "without an authorizer", func(t *toolT) {
			t.fails("Error while executing ACL command: org.apache.kafka.common.errors.SecurityDisabledException: No Authorizer is configured on the broker",
				"AclCommand", "--list")
		}},
		{"TransactionsCommand", "describe-producers", func(t *toolT) {
			t.create("producers", 1, nil)
			if r := t.runWith("ConsoleProducer", "a\nb\nc\n", "--bootstrap-server", t.node.Addr(), "--topic", "producers"); r.Exit != 0 {
				t.Fatal(r)
			}
			// The columns are padded to the widest cell of each.
			t.says(t.ok("TransactionsCommand", "describe-producers", "--topic", "producers", "--partition", "0"),
				`^ProducerId\s+ProducerEpoch\s+LatestCoordinatorEpoch\s+LastSequence\s+LastTimestamp\s+CurrentTransactionStartOffset\s*\n\d+\s+0\s+-1\s+2\s+\d{13}\s+None\s*\n$`)
		}},
		{"ReplicaVerificationTool", "one report", replicaVerification},
	}
}

// refuses runs a tool that must exit with 1 and say something on standard error.
func (t *toolT) refuses(say string, class string, args ...string) {
	t.Helper()
	r := t.run(class, args...)
	if r.Exit != 1 || !strings.Contains(r.Stderr, say) {
		t.Fatalf("%s %v: want exit 1 and %q on standard error, got %s", class, args, say, r)
	}
}

// prints runs a tool that must exit with 0 and print exactly this; what was changed before is known to a broker a moment later.
func (t *toolT) prints(want string, class string, args ...string) {
	t.Helper()
	var out string
	err := suite.Eventually(t.ctx, func() error {
		if out = t.ok(class, args...); out != want {
			return fmt.Errorf("%s %v printed %q, want %q", class, args, out, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const configTool = "ConfigCommand"

func configTopics(t *toolT) {
	t.create("configured", 1, nil)
	topic := []string{"--entity-type", "topics", "--entity-name", "configured"}
	alter := append(topic, "--alter")
	t.prints("Dynamic configs for topic configured are:\n", configTool, append(topic, "--describe")...)
	const done = "Completed updating config for topic configured.\n"
	t.prints(done, configTool, append(alter, "--add-config", "retention.ms=12345,cleanup.policy=[delete,compact]")...)
	t.prints("Dynamic configs for topic configured are:\n"+
		"  cleanup.policy=delete,compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=delete,compact, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"+
		"  retention.ms=12345 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=12345}\n", configTool, append(topic, "--describe")...)
	t.prints(done, configTool, append(alter, "--delete-config", "cleanup.policy", "--add-config", "retention.ms=23456")...)
	t.prints(done, configTool, append(alter, "--delete-config", "no.such.key")...)
	t.prints("Dynamic configs for topic configured are:\n"+
		"  retention.ms=23456 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=23456}\n", configTool, append(topic, "--describe")...)
	file := filepath.Join(t.dir, "add.properties")
	if err := os.WriteFile(file, []byte("max.message.bytes=2000\nretention.ms=34567\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.prints(done, configTool, append(alter, "--add-config-file", file)...)
	out := t.ok(configTool, "--topic", "configured", "--describe", "--all")
	t.says(out, `(?m)^All configs for topic configured are:$`)
	t.says(out, `(?m)^  max\.message\.bytes=2000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:max\.message\.bytes=2000, DEFAULT_CONFIG:message\.max\.bytes=1048588\}$`)
	if lines := strings.Count(out, "\n"); lines != 38 {
		t.Errorf("--all printed %d lines", lines)
	}
}

func configTopicsRefused(t *toolT) {
	t.create("refusing", 1, nil)
	for setting, say := range map[string]string{
		"nope=1":               "InvalidConfigurationException: Unknown topic config name: nope",
		"retention.ms=x":       "InvalidConfigurationException: Invalid value x for configuration retention.ms: Not a number of type LONG",
		"segment.bytes=1":      "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
		"cleanup.policy=[a,b]": "String must be one of: compact, delete",
		"min.compaction.lag.ms=100,max.compaction.lag.ms=10": "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)",
	} {
		t.refuses(say, configTool, "--entity-type", "topics", "--entity-name", "refusing", "--alter", "--add-config", setting)
	}
	t.refuses("UnknownTopicOrPartitionException: The topic 'missing' does not exist.",
		configTool, "--entity-type", "topics", "--entity-name", "missing", "--alter", "--add-config", "retention.ms=1")
	t.prints("The topic 'missing' doesn't exist and doesn't have dynamic config.\n", configTool, "--entity-type", "topics", "--entity-name", "missing", "--describe")
	t.prints("Dynamic configs for topic refusing are:\n", configTool, "--entity-type", "topics", "--entity-name", "refusing", "--describe")
}

func configBrokers(t *toolT) {
	one, all := []string{"--entity-type", "brokers", "--entity-name", "1"}, []string{"--entity-type", "brokers", "--entity-default"}
	const changedOne, changedAll = "Completed updating config for broker 1.\n", "Completed updating default config for brokers in the cluster.\n"
	t.prints(changedOne, configTool, append(one, "--alter", "--add-config", "log.retention.ms=100000")...)
	t.prints(changedAll, configTool, append(all, "--alter", "--add-config", "log.retention.ms=200000")...)
	t.prints("Dynamic configs for broker 1 are:\n  log.retention.ms=100000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=100000, "+
		"DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=200000, DEFAULT_CONFIG:log.retention.hours=168}\n", configTool, append(one, "--describe")...)
	t.says(t.ok(configTool, append(all, "--describe")...),
		`(?m)^Default configs for brokers in the cluster are:\n  log\.retention\.ms=200000 sensitive=false synonyms=\{DYNAMIC_DEFAULT_BROKER_CONFIG:log\.retention\.ms=200000\}$`)
	t.says(t.ok(configTool, "--entity-type", "brokers", "--describe"), `(?s)^Dynamic configs for broker 1 are:\n.*Default configs for brokers in the cluster are:\n`)
	t.says(t.ok(configTool, append(one, "--describe", "--all")...), `(?m)^  node\.id=1 sensitive=false synonyms=\{STATIC_BROKER_CONFIG:node\.id=1\}$`)
	t.prints(changedOne, configTool, append(one, "--alter", "--delete-config", "log.retention.ms")...)
	t.prints(changedAll, configTool, append(all, "--alter", "--delete-config", "log.retention.ms")...)
	t.prints("Dynamic configs for broker 1 are:\n", configTool, append(one, "--describe")...)
}

func configBrokersRefused(t *toolT) {
	for setting, say := range map[string]string{
		"log.dirs=/x":            "InvalidRequestException: Cannot update these configs dynamically: [log.dirs]",
		"log.retention.ms=x":     "InvalidRequestException: Invalid value x for configuration log.retention.ms: Not a number of type LONG",
		"log.roll.ms=0":          "InvalidRequestException: requirement failed: log.roll.ms must be greater than or equal to 1",
		"num.io.threads=1000":    "Dynamic thread count update validation failed for num.io.threads=1000, value should not be greater than double the current value 8",
		"ssl.keystore.type=PEM":  "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.type]",
		"compression.type=paper": "Invalid value paper for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
	} {
		t.refuses(say, configTool, "--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config", setting)
	}
	t.refuses("Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
		configTool, "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "listeners=PLAINTEXT://localhost:1")
}

// configAtWork: topics that set nothing follow the broker's run-time settings, at once.
func configAtWork(t *toolT) {
	t.create("following", 1, nil)
	all := []string{"--entity-type", "brokers", "--entity-default", "--alter"}
	t.ok(configTool, append(all, "--add-config", "message.max.bytes=200")...)
	large := suite.Values("large", 1, 500)
	err := suite.Eventually(t.ctx, func() error {
		acks, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: "following"}, large)
		if err == nil && acks[0].Err != "MESSAGE_TOO_LARGE" {
			return fmt.Errorf("a batch that is too large now: %v", acks[0])
		}
		return err
	})
	t.ok(configTool, append(all, "--delete-config", "message.max.bytes")...)
	if err != nil {
		t.Fatal(err)
	}
	err = suite.Eventually(t.ctx, func() error {
		acks, err := t.ref.Produce(t.ctx, suite.ProduceOptions{Topic: "following"}, large)
		if err == nil && acks[0].Err != "" {
			return fmt.Errorf("the same batch under the default: %v", acks[0])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func configLoggers(t *toolT) {
	one := []string{"--entity-type", "broker-loggers", "--entity-name", "1"}
	t.says(t.ok(configTool, append(one, "--describe")...), `(?m)^Dynamic configs for broker-logger 1 are:$`)
	const done = "Completed updating config for broker-logger 1.\n"
	before := regexp.MustCompile(`(?m)^  root=(\w+) sensitive=false synonyms=\{\}$`).FindStringSubmatch(t.ok(configTool, append(one, "--describe")...))
	if before == nil {
		t.Fatal("there is no logger root")
	}
	t.prints(done, configTool, append(one, "--alter", "--add-config", "root=ERROR")...)
	t.says(t.ok(configTool, append(one, "--describe")...), `(?m)^  root=ERROR sensitive=false synonyms=\{\}$`)
	t.prints(done, configTool, append(one, "--alter", "--add-config", "root="+before[1])...)
	t.refuses("Invalid broker logger(s): zork", configTool, append(one, "--alter", "--add-config", "zork=INFO")...)
	t.refuses("is not a supported log level", configTool, append(one, "--alter", "--add-config", "root=LOUD")...)
}

func configGroups(t *toolT) {
	for _, c := range []struct{ kind, one, setting, described, bad, say string }{
		{
			"groups", "group", "consumer.session.timeout.ms=50000",
			"  consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}\n",
			"consumer.session.timeout.ms=1", "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
		},
		{
			"client-metrics", "client-metric", "interval.ms=1000",
			"  interval.ms=1000 sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=1000}\n",
			"interval.ms=1", "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
		},
	} {
		name := "of-" + c.kind
		resource := []string{"--entity-type", c.kind, "--entity-name", name}
		done := fmt.Sprintf("Completed updating config for %s %s.\n", c.one, name)
		heading := fmt.Sprintf("Dynamic configs for %s %s are:\n", c.one, name)
		t.prints(done, configTool, append(resource, "--alter", "--add-config", c.setting)...)
		t.prints(heading+c.described, configTool, append(resource, "--describe")...)
		t.says(t.ok(configTool, "--entity-type", c.kind, "--describe"), regexp.QuoteMeta(heading+c.described))
		t.refuses(c.say, configTool, append(resource, "--alter", "--add-config", c.bad)...)
		key, _, _ := strings.Cut(c.setting, "=")
		t.prints(done, configTool, append(resource, "--alter", "--delete-config", key)...)
	}
}

func clientMetricsTool(t *toolT) {
	const tool = "ClientMetricsCommand"
	t.prints("Altered client metrics config for subscribed.\n", tool, "--alter", "--name", "subscribed", "--metrics", "org.apache.kafka.", "--interval", "5000", "--match", "client_id=a.*")
	t.prints("subscribed\n", tool, "--list")
	t.prints("Client metrics configs for subscribed are:\n  interval.ms=5000\n  match=client_id=a.*\n  metrics=org.apache.kafka.\n", tool, "--describe", "--name", "subscribed")
	t.prints("Deleted client metrics config for subscribed.\n", tool, "--delete", "--name", "subscribed")
	t.prints("\n", tool, "--list")
}

func logDirsTool(t *toolT) {
	const tool = "LogDirsCommand"
	t.create("in-dirs", 2, nil)
	t.produce("in-dirs", 20)
	out := t.ok(tool, "--describe", "--topic-list", "in-dirs")
	t.says(out, `^Querying brokers for log directories information\nReceived log directory information from brokers 1\n\{.*\}\n$`)
	var described struct {
		Version int
		Brokers []struct {
			Broker  int
			LogDirs []struct {
				Error, LogDir *string
				Partitions    []struct {
					Partition       string
					Size, OffsetLag int64
					IsFuture        bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.Split(out, "\n")[2]), &described); err != nil {
		t.Fatal(err)
	}
	dir := described.Brokers[0].LogDirs[0]
	if described.Version != 1 || dir.Error != nil || dir.LogDir == nil || *dir.LogDir != t.node.DataDir() || len(dir.Partitions) != 2 {
		t.Fatalf("%+v", described)
	}
	for _, p := range dir.Partitions {
		info, err := os.Stat(filepath.Join(t.node.DataDir(), p.Partition, "00000000000000000000.log"))
		if err != nil || p.OffsetLag != 0 || p.IsFuture || p.Size != info.Size() {
			t.Errorf("%+v beside %v %v", p, info, err)
		}
	}
	t.says(t.ok(tool, "--describe"), `"partition":"in-dirs-1"`)
	t.says(t.ok(tool, "--describe", "--broker-list", "1"), `"partition":"in-dirs-0"`)
	t.says(t.ok(tool, "--describe", "--topic-list", "no-such-topic"), `"partitions":\[\]`)
	t.refuses("ERROR: The given brokers do not exist from --broker-list: 2. Current existent brokers: 1", tool, "--describe", "--broker-list", "2")
}

func quorumTool(t *toolT) {
	const tool = "MetadataQuorumCommand"
	t.says(t.ok(tool, "describe", "--status"), `^ClusterId: {14}[A-Za-z0-9_-]{22}\nLeaderId: {15}1\nLeaderEpoch: {12}\d+\nHighWatermark: {10}\d+\nMaxFollowerLag: {9}0\nMaxFollowerLagTimeMs: {3}0\n`+
		`CurrentVoters: {10}\[\{"id": 1, "directoryId": "[A-Za-z0-9_-]{22}", "endpoints": \["CONTROLLER://localhost:\d+"\]\}\]\nCurrentObservers: {7}\[\]\n$`)
	head := `^NodeId\tDirectoryId {11}\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus\t\n`
	t.says(t.ok(tool, "describe", "--replication"), head+`1 {5}\t[A-Za-z0-9_-]{22}\t\d+ +\t0  \t\d{13} {5}\t\d{13} {8}\tLeader\t\n$`)
	t.says(t.ok(tool, "describe", "--replication", "--human-readable"), head+`1 {5}\t[A-Za-z0-9_-]{22}\t\d+ +\t0  \t\d+ ms ago +\t\d+ ms ago +\tLeader\t\n$`)
}

func featuresTool(t *toolT) {
	const tool, prefix = "FeatureCommand", "The update failed for all features since the following feature had an error: "
	t.prints(" `metadata` flag is deprecated and may be removed in a future release.\nmetadata.version was upgraded to 33.\n", tool, "upgrade", "--metadata", "4.4-IV2")
	t.prints("metadata.version can be upgraded to 33.\n", tool, "upgrade", "--feature", "metadata.version=33", "--dry-run")
	t.fails("Can not downgrade metadata.version to 30. "+prefix+"Unsupported metadata.version downgrade from 33 to 30. "+
		"Refusing to perform the requested downgrade because it might delete metadata information.", tool, "downgrade", "--feature", "metadata.version=30", "--dry-run")
	t.fails("Could not downgrade metadata.version to 30. ", tool, "downgrade", "--feature", "metadata.version=30")
	t.fails("Unsupported metadata.version downgrade from 33 to 25. Unsafe metadata downgrade is not supported in this version.", tool, "downgrade", "--feature", "metadata.version=25", "--unsafe")
	t.fails("Could not upgrade zork to 1. "+prefix+"Invalid update version 1 for feature zork. Local controller 1 does not support this feature.", tool, "upgrade", "--feature", "zork=1")
	t.fails("Could not disable zork. "+prefix+"Invalid update version 0 for feature zork. Feature zork not found.", tool, "disable", "--feature", "zork")
	t.fails("Could not downgrade kraft.version to 0. "+prefix+"Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature.",
		tool, "downgrade", "--feature", "kraft.version=0")
	t.prints("metadata.version=33 (4.4-IV2) has no dependencies.\n", tool, "feature-dependencies", "--feature", "metadata.version=33")
	t.says(t.ok(tool, "version-mapping", "--release-version", "4.4"), `(?m)^metadata\.version=33 \(4\.4\)$`)
}

func electionsTool(t *toolT) {
	const tool = "LeaderElectionCommand"
	t.create("elected", 2, nil)
	for _, kind := range []string{"preferred", "unclean"} {
		t.prints("Valid replica already elected for partitions elected-1\n", tool, "--election-type", kind, "--topic", "elected", "--partition", "1")
		t.prints("", tool, "--election-type", kind, "--all-topic-partitions")
	}
	file := t.jsonFile("elections", map[string]any{"partitions": []map[string]any{{"topic": "elected", "partition": 0}}})
	t.prints("Valid replica already elected for partitions elected-0\n", tool, "--election-type", "preferred", "--path-to-json-file", file)
	t.fails("Error completing leader election (PREFERRED) for partition: missing-0: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such topic as missing",
		tool, "--election-type", "preferred", "--topic", "missing", "--partition", "0")
}

// jsonFile writes a file that a tool reads.
func (t *toolT) jsonFile(name string, content any) string {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.dir, name+".json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func reassignTool(t *toolT) {
	const tool = "reassign.ReassignPartitionsCommand"
	t.create("reassigned", 1, nil)
	plan := func(name string, replica int) string {
		return t.jsonFile(name, map[string]any{"version": 1, "partitions": []map[string]any{{"topic": "reassigned", "partition": 0, "replicas": []int{replica}}}})
	}
	same, other := plan("same", 1), plan("other", 2)
	t.prints("No partition reassignments found.\n", tool, "--list")
	topics := t.jsonFile("topics", map[string]any{"version": 1, "topics": []map[string]any{{"topic": "reassigned"}}})
	t.says(t.ok(tool, "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1"),
		`(?s)^Current partition replica assignment\n\{"version":1,"partitions":\[\{"topic":"reassigned","partition":0,"replicas":\[1\],"log_dirs":\["[^"]+"\]\}\]\}\n\nProposed partition reassignment configuration\n`)
	t.says(t.ok(tool, "--execute", "--reassignment-json-file", same), `Successfully started partition reassignment for reassigned-0\n`)
	verified := "Status of partition reassignment:\nReassignment of partition reassigned-0 is completed.\n\nClearing broker-level throttles on broker 1\nClearing topic-level throttles on topic reassigned\n"
	if out := t.ok(tool, "--verify", "--reassignment-json-file", same); strings.TrimSpace(out) != strings.TrimSpace(verified) {
		t.Errorf("--verify printed %q", out)
	}
	t.says(t.ok(tool, "--execute", "--throttle", "1000000", "--reassignment-json-file", same), `The inter-broker throttle limit was set to 1000000 B/s`)
	t.says(t.ok(configTool, "--entity-type", "brokers", "--entity-name", "1", "--describe"), `leader\.replication\.throttled\.rate=1000000`)
	t.ok(tool, "--verify", "--reassignment-json-file", same)
	t.prints("Dynamic configs for broker 1 are:\n", configTool, "--entity-type", "brokers", "--entity-name", "1", "--describe")
	t.says(t.ok(tool, "--cancel", "--reassignment-json-file", same), `None of the specified partition reassignments are active\.`)
	t.fails("Error: Unknown broker id 2", tool, "--execute", "--reassignment-json-file", other)
}

func clusterTool(t *toolT) {
	const tool = "ClusterTool"
	run := func(args ...string) string {
		t.Helper()
		r := t.runWith(tool, "", append(args[:1:1], append([]string{"--bootstrap-server", t.node.Addr()}, args[1:]...)...)...)
		if r.Exit != 0 {
			t.Fatalf("%v: %s", args, r)
		}
		return r.Stdout
	}
	t.says(run("cluster-id"), `^Cluster ID: [A-Za-z0-9_-]{22}\n$`)
	t.says(run("list-endpoints"), `(?m)^1 +localhost +\d+ +null +unfenced +broker\s*$`)
	t.says(run("list-endpoints", "--include-fenced-brokers"), `(?m)^1 +localhost +\d+ +null +unfenced +broker\s*$`)
	r := t.runWith(tool, "", "unregister", "--bootstrap-server", t.node.Addr(), "--id", "9")
	if r.Exit != 1 || !strings.Contains(r.Stderr, "Broker ID 9 is not currently registered") {
		t.Fatal(r)
	}
}

// replicaVerification has no replicas to compare on one node: it reads what there is, and reports no lag.
func replicaVerification(t *toolT) {
	t.create("verified", 1, nil)
	t.produce("verified", 10)
	r := t.processFor("ReplicaVerificationTool", `max lag is 0 for partition verified-0 at offset 10 among 1 partitions`,
		"--broker-list", t.node.Addr(), "--topics-include", "verified", "--report-interval-ms", "500", "--max-wait-ms", "200")
	t.says(r, `verification process is started`)
}

// processFor runs a tool that does not end by itself, in a JVM of its own, until a line of its standard output matches; it returns what
// was printed.
func (t *toolT) processFor(class, pattern string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, "java", append([]string{
		"-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=" + filepath.Join(harness.CompatDir(), "java", "log4j2-tools.xml"),
		"-cp", harness.KafkaClassPath(), "org.apache.kafka.tools." + class,
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("%s: %v", class, err)
	}
	var printed strings.Builder
	lines := bufio.NewScanner(out)
	found := false
	for !found && lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		found = regexp.MustCompile(pattern).MatchString(lines.Text())
	}
	stop()
	_ = cmd.Wait() // it was killed
	if !found {
		t.Fatalf("%s printed no %q:\n%s", class, pattern, printed.String())
	}
	return printed.String()
}
