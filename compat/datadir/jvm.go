package datadir

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ottla/compat/harness"
)

// Versions are the versions of Apache Kafka whose directories are handed over. install.sh brings the older ones.
var Versions = []string{harness.KafkaVersion, "4.1.2", "3.9.2"}

// classPath is that of one version, with the compiled java/*.java.
func classPath(version string) string {
	return strings.Join([]string{harness.KafkaJars(version), filepath.Join(harness.Cache(), "handover")}, string(os.PathListSeparator))
}

// JVM is one process of java/Handover.java. Its methods are called by one goroutine at a time.
type JVM struct {
	logPath string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan string // closed when the process has ended

	saying chan struct{} // something was said since it was last looked at
	mu     sync.Mutex
	said   []string
}

// commandLimit ends a command that hangs.
const commandLimit = 5 * time.Minute

// StartJVM starts a JVM of a version; what it logs goes to the file.
func StartJVM(version, logPath string) (*JVM, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process holds its own
	cmd := exec.Command("java", "-Xmx768m", "-XX:TieredStopAtLevel=1",
		"-Dlog4j2.configurationFile="+filepath.Join(harness.CompatDir(), "datadir", "java", "log4j2.xml"), "-cp", classPath(version), "Handover")
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a JVM of Apache Kafka %s: %w", version, err)
	}
	harness.RecordPid(cmd.Process.Pid)
	j := &JVM{logPath: logPath, cmd: cmd, stdin: stdin, answers: make(chan string, 1), saying: make(chan struct{}, 1)}
	go j.read(stdout)
	return j, nil
}

func (j *JVM) read(stdout io.Reader) {
	defer close(j.answers)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			_ = j.cmd.Wait() // how it ended is not asked
			return
		}
		kind, encoded, _ := strings.Cut(strings.TrimSpace(line), " ")
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue // not one of ours
		}
		if kind == "said" {
			j.mu.Lock()
			j.said = append(j.said, string(text))
			j.mu.Unlock()
			select {
			case j.saying <- struct{}{}:
			default:
			}
			continue
		}
		j.answers <- kind + " " + string(text)
	}
}

// Do has a command carried out, and gives what it answered.
func (j *JVM) Do(words ...string) (string, error) {
	if _, err := fmt.Fprintln(j.stdin, strings.Join(words, "\t")); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", words[0], err, harness.Tail(j.logPath, 20))
	}
	select {
	case answer, ok := <-j.answers:
		if !ok {
			return "", fmt.Errorf("%s: the JVM has ended\n%s", words[0], harness.Tail(j.logPath, 20))
		}
		kind, text, _ := strings.Cut(answer, " ")
		if kind != "ok" {
			return "", fmt.Errorf("%s\n%s", text, harness.Tail(j.logPath, 40))
		}
		return text, nil
	case <-time.After(commandLimit):
		return "", fmt.Errorf("%s: no answer within %s\n%s", words[0], commandLimit, harness.Tail(j.logPath, 20))
	}
}

// Said gives what the process has told by itself so far.
func (j *JVM) Said() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.said...)
}

// AwaitSaid waits until so much was told.
func (j *JVM) AwaitSaid(times int) error {
	limit := time.After(commandLimit)
	for len(j.Said()) < times {
		select {
		case <-j.saying:
		case <-limit:
			return fmt.Errorf("only %d of %d things were told within %s\n%s", len(j.Said()), times, commandLimit, harness.Tail(j.logPath, 20))
		}
	}
	return nil
}

// Kill ends the process with SIGKILL and waits for its end.
func (j *JVM) Kill() error {
	err := j.cmd.Process.Kill()
	for range j.answers { //nolint:revive // until it is closed
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Close ends the process if it still runs.
func (j *JVM) Close() { _ = j.Kill() }
