//go:build compat

package compat

import (
	"strings"
)

func topicCommandCases() []toolCase {
	const tool = "TopicCommand"
	return []toolCase{
		{tool, "create and describe", topicCreateDescribe},
		{tool, "create existing", func(t *toolT) {
			t.create("existing", 1, nil)
			t.fails("Error while executing topic command : Topic 'existing' already exists.", tool, "--create", "--topic", "existing")
			if out := t.ok(tool, "--create", "--if-not-exists", "--topic", "existing"); out != "" {
				t.Fatalf("--if-not-exists printed %q", out)
			}
		}},
		{tool, "create colliding names", func(t *toolT) {
			out := t.ok(tool, "--create", "--topic", "colliding.name")
			t.says(out, "WARNING: .*period.*underscore")
			t.fails("collides with existing topic", tool, "--create", "--topic", "colliding_name")
		}},
		{tool, "create refused", topicCreateRefused},
		{tool, "create with replica assignment", func(t *toolT) {
			t.ok(tool, "--create", "--topic", "assigned", "--replica-assignment", "1,1,1")
			t.visible("assigned", 3)
		}},
		{tool, "list", func(t *toolT) {
			t.create("listed-1", 1, nil)
			t.create("listed-2", 1, nil)
			t.says(t.ok(tool, "--list"), `(?m)^listed-1\nlisted-2$`)
			if out := t.ok(tool, "--list", "--topic", "listed-.*"); out != "listed-1\nlisted-2\n" {
				t.Fatalf("--list with a pattern printed %q", out)
			}
		}},
		{tool, "describe missing", func(t *toolT) {
			t.fails("Topic 'missing' does not exist as expected", tool, "--describe", "--topic", "missing")
			t.ok(tool, "--describe", "--if-exists", "--topic", "missing")
		}},
		{tool, "describe filters", func(t *toolT) {
			t.create("overridden", 1, map[string]string{"retention.ms": "12345000"})
			t.says(t.ok(tool, "--describe", "--topics-with-overrides"), `Topic: overridden\t.*retention\.ms=12345000`)
			for _, filter := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"} {
				if out := t.ok(tool, "--describe", filter); out != "" {
					t.Fatalf("%s printed %q", filter, out)
				}
			}
			t.says(t.ok(tool, "--describe"), "Topic: overridden\t")
		}},
		{tool, "alter partitions", func(t *toolT) {
			t.create("altered", 2, nil)
			t.ok(tool, "--alter", "--topic", "altered", "--partitions", "5")
			t.visible("altered", 5)
			t.fails("Error while executing topic command : ", tool, "--alter", "--topic", "altered", "--partitions", "2")
			t.fails("does not exist as expected", tool, "--alter", "--topic", "missing", "--partitions", "2")
		}},
		{tool, "delete", func(t *toolT) {
			t.create("deleted", 2, nil)
			t.ok(tool, "--delete", "--topic", "deleted")
			if strings.Contains(t.ok(tool, "--list"), "deleted") {
				t.Fatal("the topic is still listed")
			}
			t.fails("Topic 'deleted' does not exist as expected", tool, "--delete", "--topic", "deleted")
			t.ok(tool, "--delete", "--if-exists", "--topic", "deleted")
		}},
		{tool, "500 partitions", func(t *toolT) {
			t.ok(tool, "--create", "--topic", "wide", "--partitions", "500")
			t.visible("wide", 500)
			out := t.ok(tool, "--describe", "--topic", "wide")
			if n := strings.Count(out, "\tLeader: 1\t"); n != 500 {
				t.Fatalf("%d partitions with a leader are described, want 500:\n%.2000s", n, out)
			}
			t.ok(tool, "--delete", "--topic", "wide")
		}},
		{tool, "help and version", func(t *toolT) {
			for _, args := range [][]string{{"--help"}, {}, {"--nonsense"}} {
				if r := t.runWith(tool, "", args...); r.Exit != 1 || r.Stdout != "" || r.Stderr == "" {
					t.Fatalf("%v: want exit 1 and text on standard error only, got %s", args, r)
				}
			}
			if r := t.runWith(tool, "", "--version"); r.Exit != 0 || r.Stdout != "4.4.0\n" {
				t.Fatalf("--version: %s", r)
			}
		}},
		{tool, "in a JVM of its own", func(t *toolT) {
			if r := t.process(tool, "--bootstrap-server", t.node.Addr(), "--create", "--topic", "own-jvm"); r.Exit != 0 || r.Stdout != "Created topic own-jvm.\n" {
				t.Fatalf("create: %s", r)
			}
			r := t.process(tool, "--bootstrap-server", t.node.Addr(), "--describe", "--topic", "missing")
			if r.Exit != 1 || !strings.Contains(r.Stdout, "Error while executing topic command : ") {
				t.Fatalf("describe a missing topic: %s", r)
			}
		}},
	}
}

func topicCreateDescribe(t *toolT) {
	const tool = "TopicCommand"
	out := t.ok(tool, "--create", "--topic", "described", "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=86400000")
	if out != "Created topic described.\n" {
		t.Fatalf("create printed %q", out)
	}
	t.visible("described", 3)
	out = t.ok(tool, "--describe", "--topic", "described")
	t.says(out, `(?m)^Topic: described\tTopicId: [A-Za-z0-9_-]{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: .*retention\.ms=86400000`)
	for _, p := range []string{"0", "1", "2"} {
		t.says(out, `(?m)^\tTopic: described\tPartition: `+p+`\tLeader: 1\tReplicas: 1\tIsr: 1\t`)
	}
}

func topicCreateRefused(t *toolT) {
	for _, c := range []struct {
		say  string
		args []string
	}{
		{"is invalid", []string{"--topic", "bad/name"}},
		{"replication factor", []string{"--topic", "rf", "--replication-factor", "3"}},
		{"Unknown topic config name: nope", []string{"--topic", "cfg", "--config", "nope=1"}},
		{"retention.ms", []string{"--topic", "cfg", "--config", "retention.ms=soon"}},
	} {
		t.fails(c.say, "TopicCommand", append([]string{"--create"}, c.args...)...)
	}
	if out := t.ok("TopicCommand", "--list", "--topic", "rf|cfg"); strings.TrimSpace(out) != "" {
		t.Fatalf("refused topics are listed: %q", out)
	}
}
