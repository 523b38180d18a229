//go:build compat

package compat

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ottla/compat/driver"
	"ottla/compat/franz"
	"ottla/compat/harness"
	"ottla/compat/suite"
)

// toolT is one cell of the tools' table: a command-line tool doing something.
type toolT struct {
	*cell
	ctx  context.Context
	java *driver.Process
	node *harness.Node
	ref  *franz.Client
	dir  string
}

type toolCase struct {
	tool, what string
	run        func(*toolT)
}

// TestTools runs Apache Kafka's command-line tools against one node: what they print, where, and how they exit.
func TestTools(t *testing.T) {
	need(t, "kcat")
	node := startNode(t, "tools", nil)
	java := startJava(t, t.TempDir())
	results := suite.NewResults("tools", serverName(node.Kind()), "compat/run.sh tools")
	for _, c := range toolCases() {
		name := c.tool + " " + c.what
		results.AddRows(name)
		runCell(t, node, results, strings.ReplaceAll(name, " ", "-"), name, "result", func(t *cell) {
			c.run(&toolT{cell: t, ctx: cellContext(t.T), java: java, node: node, ref: franz.New(node.Addr()), dir: t.TempDir()})
		})
	}
	stopCleanly(t, node)
	finish(t, results)
}

func toolCases() []toolCase {
	var all []toolCase
	for _, part := range [][]toolCase{topicCommandCases(), consoleCases(), offsetShellCases(), otherToolCases(), adminToolCases(), groupToolCases(), consumerGroupToolCases(), perfToolCases(), transactionToolCases()} {
		all = append(all, part...)
	}
	return all
}

// run runs a tool against the node.
func (t *toolT) run(class string, args ...string) driver.ToolResult {
	t.Helper()
	return t.runWith(class, "", append([]string{"--bootstrap-server", t.node.Addr()}, args...)...)
}

// runWith runs a tool with these arguments only.
func (t *toolT) runWith(class, stdin string, args ...string) driver.ToolResult {
	t.Helper()
	result, err := t.java.Tool(t.ctx, class, stdin, args...)
	if err != nil {
		t.Fatalf("%s %v: %v", class, args, err)
	}
	return result
}

// ok runs a tool that must exit with 0 and returns its standard output.
func (t *toolT) ok(class string, args ...string) string {
	t.Helper()
	result := t.run(class, args...)
	if result.Exit != 0 {
		t.Fatalf("%s %v: %s", class, args, result)
	}
	return result.Stdout
}

// fails runs a tool that must exit with 1 and say something on standard output.
func (t *toolT) fails(say string, class string, args ...string) {
	t.Helper()
	result := t.run(class, args...)
	if result.Exit != 1 || !strings.Contains(result.Stdout, say) {
		t.Fatalf("%s %v: want exit 1 and %q on standard output, got %s", class, args, say, result)
	}
}

// says checks that a text matches a pattern.
func (t *toolT) says(text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Fatalf("no match of %q in:\n%s", pattern, text)
	}
}

// create makes a topic by the reference client and waits until the broker shows it.
func (t *toolT) create(topic string, partitions int, configs map[string]string) {
	t.Helper()
	if err := t.ref.CreateTopic(t.ctx, topic, partitions, configs); err != nil {
		t.Fatal(err)
	}
	t.visible(topic, partitions)
}

// visible waits until the broker shows so many partitions of a topic; it learns of them after the controller has answered.
func (t *toolT) visible(topic string, partitions int) {
	t.Helper()
	err := suite.Eventually(t.ctx, func() error {
		n, err := t.ref.Partitions(t.ctx, topic)
		if err == nil && n != partitions {
			return &suite.KafkaError{Name: "partitions", Message: topic}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// process runs a tool in a JVM of its own, as its script does, and returns what it printed and its exit code: the check that the
// driver's short cut of running tools in one JVM does not mislead.
func (t *toolT) process(class string, args ...string) driver.ToolResult {
	t.Helper()
	cmd := exec.CommandContext(t.ctx, "java", append([]string{
		"-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=" + filepath.Join(harness.CompatDir(), "java", "log4j2-tools.xml"),
		"-cp", harness.KafkaClassPath(), "org.apache.kafka.tools." + class,
	}, args...)...)
	var out, diag strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", class, err)
	}
	return driver.ToolResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: diag.String()}
}
