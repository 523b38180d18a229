package harness

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long a node may take until it answers; far above what is ever needed, for a busy machine.
const startLimit = 3 * time.Minute

// ClusterID is the id with which Kafka nodes are formatted; one of those that documents everywhere use.
const ClusterID = "4L6g3nShT-eMCtK--X86sw"

// Options says what kind of node to make.
type Options struct {
	Kind Kind
	// Name appears in progress lines and names the log file.
	Name string
	// Dir is the node's folder: server.properties, logs, and data/ below it. It must exist.
	Dir string
	// Properties are laid over the defaults of this package; an empty value removes the key.
	Properties map[string]string
	// DataDir, if set, is used for log.dirs instead of Dir/data: for a directory that another node has left.
	DataDir string
	// Wrap is put before the command line of the server: a program that sets limits and then becomes the server.
	Wrap []string
	// Log4j is the log4j2 configuration of a Kafka node; by default compat/java/log4j2-server.xml.
	Log4j string
}

// Node is one server process with its directory and ports. It may be started and ended many times.
type Node struct {
	opts       Options
	port       int
	controller int    // its port
	properties string // path of server.properties
	process    *Process
}

// NewNode picks ports and writes server.properties. Nothing is started.
func NewNode(opts Options) (*Node, error) {
	broker, err := FreePort()
	if err != nil {
		return nil, err
	}
	controller, err := FreePort()
	if err != nil {
		return nil, err
	}
	n := &Node{opts: opts, port: broker, controller: controller, properties: filepath.Join(opts.Dir, "server.properties")}
	values := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.bootstrap.servers":              fmt.Sprintf("localhost:%d", controller),
		"listeners":                                        fmt.Sprintf("PLAINTEXT://localhost:%d,CONTROLLER://localhost:%d", broker, controller),
		"controller.listener.names":                        "CONTROLLER",
		"log.dirs":                                         n.DataDir(),
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
	}
	if opts.Kind == Kafka {
		// Killed and started again, it waits until its former session has expired; the default of 9 s would be most of a test. With 3 s
		// a busy machine fences it, and it has no leaders for a moment.
		values["broker.heartbeat.interval.ms"], values["broker.session.timeout.ms"] = "500", "6000"
	}
	maps.Copy(values, opts.Properties)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if values[key] != "" {
			fmt.Fprintf(&text, "%s=%s\n", key, values[key])
		}
	}
	if err := os.WriteFile(n.properties, []byte(text.String()), 0o644); err != nil {
		return nil, fmt.Errorf("node %s: %w", opts.Name, err)
	}
	return n, nil
}

// Successor is a node of another kind, or the same, on the data directory and ports that this one has left: its server.properties
// say the same. It keeps its log in dir.
func (n *Node) Successor(kind Kind, name, dir string) (*Node, error) {
	text, err := os.ReadFile(n.properties)
	if err != nil {
		return nil, fmt.Errorf("successor of %s: %w", n.opts.Name, err)
	}
	next := &Node{
		opts: Options{Kind: kind, Name: name, Dir: dir, DataDir: n.DataDir()},
		port: n.port, controller: n.controller, properties: filepath.Join(dir, "server.properties"),
	}
	if err := os.WriteFile(next.properties, text, 0o644); err != nil {
		return nil, fmt.Errorf("successor of %s: %w", n.opts.Name, err)
	}
	return next, nil
}

// Kind is the kind of server.
func (n *Node) Kind() Kind { return n.opts.Kind }

// Addr is host:port of the broker listener, for clients.
func (n *Node) Addr() string { return net.JoinHostPort("localhost", strconv.Itoa(n.port)) }

// ControllerAddr is host:port of the controller listener.
func (n *Node) ControllerAddr() string {
	return net.JoinHostPort("localhost", strconv.Itoa(n.controller))
}

// DataDir is the node's log.dirs.
func (n *Node) DataDir() string {
	if n.opts.DataDir != "" {
		return n.opts.DataDir
	}
	return filepath.Join(n.opts.Dir, "data")
}

// LogPath is the file with everything the node printed, over all starts.
func (n *Node) LogPath() string { return filepath.Join(n.opts.Dir, n.opts.Name+".log") }

// LogTail returns the last lines of the node's log.
func (n *Node) LogTail(lines int) string { return Tail(n.LogPath(), lines) }

// Process is the running process, or the last one.
func (n *Node) Process() *Process { return n.process }

// Start starts the node, formatting an empty directory first, and returns when clients are served. The duration is that from
// the start of the process to the first answer to ApiVersions.
func (n *Node) Start(ctx context.Context) (time.Duration, error) {
	if err := n.formatKafka(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	begin := time.Now()
	process, err := StartProcess(n.opts.Name, n.LogPath(), nil, slices.Concat(n.opts.Wrap, n.command())...)
	if err != nil {
		return 0, err
	}
	n.process = process
	err = until(ctx, process.Done(), func(ctx context.Context) error {
		_, err := Probe(ctx, n.Addr())
		return err
	})
	firstAnswer := time.Since(begin)
	if err == nil {
		err = until(ctx, process.Done(), func(ctx context.Context) error { return listed(ctx, n.Addr()) })
	}
	if err != nil {
		n.Close()
		return 0, fmt.Errorf("%s (%s) did not start: %w\n%s", n.opts.Name, n.opts.Kind, err, n.LogTail(30))
	}
	Progress("%s (%s, pid %d) answers on %s after %d ms", n.opts.Name, n.opts.Kind, process.Pid(), n.Addr(), firstAnswer.Milliseconds())
	return firstAnswer, nil
}

// command is the command line of the server.
func (n *Node) command() []string {
	if n.opts.Kind == Ottla {
		return []string{OttlaBinary(), "serve", n.properties}
	}
	log4j := n.opts.Log4j
	if log4j == "" {
		log4j = filepath.Join(CompatDir(), "java", "log4j2-server.xml")
	}
	return []string{
		"java", "-Xmx1G", "-Dlog4j2.configurationFile=" + log4j, "-cp", KafkaClassPath(), "kafka.Kafka", n.properties,
	}
}

// formatKafka formats the directory of a Kafka node that has none yet. Ottla does that by itself.
func (n *Node) formatKafka() error {
	if n.opts.Kind != Kafka {
		return nil
	}
	if _, err := os.Stat(filepath.Join(n.DataDir(), "meta.properties")); err == nil {
		return nil
	}
	out, err := exec.Command("java", "-XX:TieredStopAtLevel=1", "-cp", KafkaClassPath(),
		"-Dlog4j2.configurationFile="+filepath.Join(CompatDir(), "java", "log4j2-tools.xml"),
		"kafka.tools.StorageTool", "format", "-t", ClusterID, "-c", n.properties, "--standalone").CombinedOutput()
	if err != nil {
		return fmt.Errorf("format %s: %w\n%s", n.DataDir(), err, out)
	}
	return nil
}

// Stop ends the node with SIGTERM and returns its exit code.
func (n *Node) Stop() (int, error) { return n.process.end(syscall.SIGTERM, 0) }

// Kill ends the node with SIGKILL.
func (n *Node) Kill() error {
	_, err := n.process.end(syscall.SIGKILL, 0)
	return err
}

// Close ends the node if it still runs: SIGTERM, and SIGKILL if it does not go.
func (n *Node) Close() {
	if n.process == nil {
		return
	}
	_ = n.process.Signal(syscall.SIGTERM)
	select {
	case <-n.process.Done():
	case <-time.After(30 * time.Second):
		Progress("%s (pid %d) ignores SIGTERM; killing it", n.opts.Name, n.process.Pid())
		_ = n.process.Signal(syscall.SIGKILL)
		<-n.process.Done()
	}
}

// ResidentMB is the resident memory of the running process in MiB, as Linux reports it.
func (n *Node) ResidentMB() (float64, error) { return n.memoryMB("VmRSS:") }

// PeakResidentMB is the most that the resident memory of the running process has been, in MiB.
func (n *Node) PeakResidentMB() (float64, error) { return n.memoryMB("VmHWM:") }

func (n *Node) memoryMB(name string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.process.Pid()))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", n.opts.Name, err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024, err
		}
	}
	return 0, fmt.Errorf("memory of %s: no line %s", n.opts.Name, name)
}
