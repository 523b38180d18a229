//go:build compat

package compat

import (
	"ottla/compat/suite"
)

const (
	featureTool = "FeatureCommand"
	groupsTool  = "GroupsCommand"
)

func consumerGroupToolCases() []toolCase {
	return []toolCase{
		{"ConsumerGroupCommand", "on groups of the protocol consumer", consumerGroupTools},
		{"ConfigCommand", "groups", groupConfigs},
		{"FeatureCommand", "group.version", groupVersion},
	}
}

func consumerGroupTools(t *toolT) {
	const group, topic = "consumers-busy", "consumers-a"
	t.timed(topic, 3)
	leave := t.member(suite.MemberOptions{Group: group, Topic: topic, Protocol: "consumer"})
	t.committedAll(group, topic, 3)
	s := t.script("consumer-groups", `[A-Za-z0-9+/_-]{22}==`)
	describe := func(args ...string) {
		s.tool(groupTool, append([]string{"--describe", "--group", group}, args...)...)
	}
	describe()
	describe("--verbose")
	describe("--offsets")
	describe("--members")
	describe("--members", "--verbose")
	describe("--state")
	describe("--state", "--verbose")
	s.tool(groupTool, "--delete", "--group", group)
	s.tool(groupTool, "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--execute")
	s.tool(groupTool, "--delete-offsets", "--group", group, "--topic", topic)
	s.tool(groupTool, "--list", "--type", "consumer")
	s.tool(groupTool, "--list", "--type", "consumer", "--state", "stable")
	s.tool(groupsTool, "--list", "--group-type", "consumer")
	s.tool(groupsTool, "--list", "--consumer", "--protocol", "consumer", "--group-type", "consumer")
	leave()
	s.note("the member has left")
	describe()
	describe("--members")
	describe("--state")
	s.tool(groupTool, "--list", "--type", "consumer", "--state")
	s.tool(groupTool, "--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "4", "--execute")
	describe()
	s.tool(groupTool, "--delete-offsets", "--group", group, "--topic", topic+":1")
	describe()
	s.tool(groupTool, "--delete", "--group", group)
	s.tool(groupTool, "--list", "--type", "consumer")
	describe()
	s.compare()
}

func groupConfigs(t *toolT) {
	s := t.script("group-configs")
	of := func(args ...string) {
		s.tool(configTool, append([]string{"--entity-type", "groups", "--entity-name", "configured"}, args...)...)
	}
	of("--describe")
	of("--describe", "--all")
	of("--alter", "--add-config", "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=7000")
	of("--describe")
	of("--alter", "--add-config", "consumer.assignment.interval.ms=0")
	of("--alter", "--add-config", "consumer.session.timeout.ms=1000")
	of("--alter", "--add-config", "consumer.session.timeout.ms=soon")
	of("--alter", "--add-config", "consumer.nothing=1")
	of("--describe")
	of("--alter", "--delete-config", "consumer.session.timeout.ms,consumer.assignment.interval.ms")
	of("--describe")
	of("--alter", "--delete-config", "consumer.heartbeat.interval.ms")
	of("--describe")
	s.compare()
}

// groupVersion takes the protocol consumer away from the cluster, and gives it back.
func groupVersion(t *toolT) {
	const group, topic = "unversioned", "unversioned-a"
	t.timed(topic, 1)
	s := t.script("group-version")
	of := func(args ...string) { s.tool(featureTool, args...) }
	of("upgrade", "--feature", "group.version=1")
	of("upgrade", "--feature", "group.version=2")
	of("upgrade", "--feature", "group.version=0")
	of("downgrade", "--feature", "group.version=2")
	of("downgrade", "--feature", "group.version=0", "--dry-run")
	of("downgrade", "--feature", "group.version=0")
	resp, err := t.ref.Beat(t.ctx, group, topic)
	if err != nil || resp != "UNSUPPORTED_VERSION" {
		t.Errorf("without the feature a heartbeat gets %s (%v)", resp, err)
	}
	of("downgrade", "--feature", "group.version=0")
	of("disable", "--feature", "group.version")
	of("upgrade", "--feature", "group.version=1", "--dry-run")
	of("upgrade", "--feature", "group.version=1")
	if resp, err = t.ref.Beat(t.ctx, group, topic); err != nil || resp != "" {
		t.Errorf("with the feature a heartbeat gets %s (%v)", resp, err)
	}
	s.compare()
	t.says(t.ok(featureTool, "describe"), `(?m)^Feature: group\.version +SupportedMinVersion: 0 +SupportedMaxVersion: 1 +FinalizedVersionLevel: 1 +Epoch: \d+$`)
}
