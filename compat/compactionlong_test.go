//go:build compat

package compat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ottla/compat/harness"
)

// longCompaction is what a server is told; its other settings are the defaults of both.
var longCompaction = map[string]string{
	"log.segment.bytes": "4194304", "log.cleaner.backoff.ms": "1000", "log.cleaner.min.cleanable.ratio": "0.3",
}

// TestCompactionLong runs Apache Kafka's LogCompactionTester with OTTLA_COMPACTION_MESSAGES messages on Ottla and on Apache Kafka at the
// same time, so that both have the same neighbours, and prints what each server took.
func TestCompactionLong(t *testing.T) {
	need(t)
	messages := os.Getenv("OTTLA_COMPACTION_MESSAGES")
	if messages == "" {
		messages = "1000000"
	}
	if _, err := strconv.ParseUint(messages, 10, 63); err != nil {
		t.Fatalf("OTTLA_COMPACTION_MESSAGES: %v", err)
	}
	lines := make(chan string, 2)
	var both sync.WaitGroup
	for _, kind := range []harness.Kind{harness.Ottla, harness.Kafka} {
		node := startNodeIn(t, harness.Options{Kind: kind, Name: string(kind), Dir: workDir(t), Properties: longCompaction})
		both.Go(func() {
			line, err := measureTester(node, messages, workDir(t))
			if err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			lines <- line
		})
	}
	both.Wait()
	close(lines)
	for line := range lines {
		harness.Progress("%s", line)
	}
}

// measureTester runs the tester on a node and tells its verdict and what it cost the node.
func measureTester(node *harness.Node, messages, dir string) (string, error) {
	args := []string{"--messages", messages, "--duplicates", "10", "--percent-deletes", "20", "--topics", "1", "--sleep", "30"}
	before, err := node.ProcessorTime()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Hour)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", append([]string{
		"-Xmx512m", "-Djava.io.tmpdir=" + dir, "-cp", harness.KafkaClassPath(),
		"org.apache.kafka.tools.LogCompactionTester", "--bootstrap-server", node.Addr(),
	}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil || !strings.Contains(string(out), "Data verification is completed") {
		return "", fmt.Errorf("LogCompactionTester: %w\n%s", err, out)
	}
	after, err := node.ProcessorTime()
	if err != nil {
		return "", err
	}
	peak, err := node.PeakResidentMB()
	if err != nil {
		return "", err
	}
	var said []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "rows of data") || strings.Contains(line, "Validated") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	var size int64
	logs, err := filepath.Glob(filepath.Join(node.DataDir(), "log-cleaner-test-*", "*.log"))
	if err != nil {
		return "", err
	}
	for _, log := range logs {
		if info, err := os.Stat(log); err == nil {
			size += info.Size()
		}
	}
	return fmt.Sprintf("%s: LogCompactionTester %s: %s; the server took %.1f s of processor time, %.0f MiB at most, %d segments of %.1f MB are left; wall %.0f s",
		node.Kind(), strings.Join(args, " "), strings.Join(said, "; "), (after - before).Seconds(), peak, len(logs), float64(size)/1e6, took.Seconds()), nil
}
