package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
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

	"github.com/twmb/franz-go/pkg/kmsg"
)

// LetIn are the features with which a cluster of Apache Kafka has to be formatted so that Ottla may join it.
var LetIn = []string{"share.version=0", "streams.version=0"}

// ClusterOptions say what kind of cluster to make.
type ClusterOptions struct {
	Dir         string // of everything; it must exist
	Controllers int    // of Apache Kafka, 1 to 3
	// Features are given to the format of the controllers as name=level.
	Features []string
	// Version is that of Apache Kafka's processes at first; "": KafkaVersion.
	Version string
	// Static makes the voters those of controller.quorum.voters (kraft.version 0), instead of those that the log holds.
	Static bool
	// Properties are laid over the defaults of every member.
	Properties map[string]string
	// Network gives each member a machine of its own; nil: all of them are on loopback.
	Network *Network
	// HeapMegabytes is that of each Java process; 0: 512.
	HeapMegabytes int
}

// Cluster is several processes, on loopback ports or on a Network: controllers of Apache Kafka, and brokers of either kind.
type Cluster struct {
	options     ClusterOptions
	Controllers []*Member
	Brokers     []*Member // in the order of AddBroker
	directories []string  // the ids of the controllers' directories
}

// Member is one process of a Cluster. It may be started and ended many times.
type Member struct {
	Kind Kind
	ID   int
	// Version is that of Apache Kafka ("": KafkaVersion). Another one counts from the next start on.
	Version string

	cluster    *Cluster
	controller bool
	host       *Host // nil: loopback
	port       int
	dir        string
	dataDir    string
	process    *Process
}

// networkPort is where members listen that have a machine of their own.
const networkPort = 9092

// firstController is the id of the first controller; brokers count from 1.
const firstController = 1001

// NewCluster picks ports and formats the controllers. Nothing is started.
func NewCluster(options ClusterOptions) (*Cluster, error) {
	c := &Cluster{options: options}
	for i := range options.Controllers {
		m, err := c.member(Kafka, firstController+i, true)
		if err != nil {
			return nil, err
		}
		c.Controllers = append(c.Controllers, m)
		var id [16]byte
		_, _ = rand.Read(id[:]) // it never fails
		id[0] &= 0x7f           // an id that does not begin with a dash
		c.directories = append(c.directories, base64.RawURLEncoding.EncodeToString(id[:]))
	}
	for _, m := range c.Controllers {
		if err := m.configure(nil); err != nil {
			return nil, err
		}
		if err := m.Format(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Cluster) member(kind Kind, id int, controller bool) (*Member, error) {
	var host *Host
	port, err := networkPort, error(nil)
	if c.options.Network != nil {
		host, err = c.options.Network.AddHost()
	} else {
		port, err = FreePort()
	}
	if err != nil {
		return nil, err
	}
	role := "broker"
	if controller {
		role = "controller"
	}
	dir := filepath.Join(c.options.Dir, fmt.Sprintf("%s-%d-%s", role, id, kind))
	return &Member{
		Kind: kind, ID: id, Version: c.options.Version, cluster: c, controller: controller, host: host, port: port, dir: dir, dataDir: filepath.Join(dir, "data"),
	}, os.MkdirAll(dir, 0o755)
}

// AddBroker makes a broker with a formatted directory, where log.dirs of the properties says if it is there. It is not started.
func (c *Cluster) AddBroker(kind Kind, properties map[string]string) (*Member, error) {
	m, err := c.member(kind, len(c.Brokers)+1, false)
	if err != nil {
		return nil, err
	}
	if dir := properties["log.dirs"]; dir != "" {
		m.dataDir = dir
	}
	if err := m.configure(properties); err != nil {
		return nil, err
	}
	if err := m.Format(); err != nil {
		return nil, err
	}
	c.Brokers = append(c.Brokers, m)
	return m, nil
}

// Start starts all controllers and waits until each answers.
func (c *Cluster) Start(ctx context.Context) error {
	for _, m := range c.Controllers {
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range c.Controllers {
		if err := m.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every member that still runs, brokers first.
func (c *Cluster) Close() {
	for _, m := range slices.Concat(c.Brokers, c.Controllers) {
		m.Close()
	}
}

// Bootstrap lists host:port of all brokers.
func (c *Cluster) Bootstrap() []string {
	var all []string
	for _, m := range c.Brokers {
		all = append(all, m.Addr())
	}
	return all
}

// quorum gives the property that says where the controllers are.
func (c *Cluster) quorum() (name, value string) {
	var servers []string
	name = "controller.quorum.bootstrap.servers"
	if c.options.Static {
		name = "controller.quorum.voters"
	}
	for _, m := range c.Controllers {
		server := m.Addr()
		if c.options.Static {
			server = strconv.Itoa(m.ID) + "@" + server
		}
		servers = append(servers, server)
	}
	return name, strings.Join(servers, ",")
}

// Name is how the member is called in progress lines.
func (m *Member) Name() string { return filepath.Base(m.dir) }

// Addr is host:port of its listener.
func (m *Member) Addr() string {
	name := "localhost"
	if m.host != nil {
		name = m.host.Address
	}
	return net.JoinHostPort(name, strconv.Itoa(m.port))
}

// Host is its machine, where the cluster has a Network.
func (m *Member) Host() *Host { return m.host }

// DataDir is its log.dirs.
func (m *Member) DataDir() string { return m.dataDir }

// Directories are those of log.dirs.
func (m *Member) Directories() []string { return strings.Split(m.dataDir, ",") }

// ReplicaDir is the folder of a partition, in whichever directory it lies; that of the first one if it is in none.
func (m *Member) ReplicaDir(partition string) string {
	for _, dir := range m.Directories() {
		if at := filepath.Join(dir, partition); isDir(at) {
			return at
		}
	}
	return filepath.Join(m.Directories()[0], partition)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// LogPath is the file with everything it printed.
func (m *Member) LogPath() string { return filepath.Join(m.dir, "log") }

// LogTail returns the last lines of that.
func (m *Member) LogTail(lines int) string { return Tail(m.LogPath(), lines) }

// Process is the running process, or the last one.
func (m *Member) Process() *Process { return m.process }

func (m *Member) propertiesPath() string { return filepath.Join(m.dir, "server.properties") }

func (m *Member) configure(properties map[string]string) error {
	quorum, servers := m.cluster.quorum()
	values := map[string]string{
		"process.roles": "broker", "node.id": strconv.Itoa(m.ID), quorum: servers,
		"listeners": "PLAINTEXT://" + m.Addr(), "controller.listener.names": "CONTROLLER", "log.dirs": m.DataDir(),
		"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000",
		"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5",
		"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
		"group.initial.rebalance.delay.ms": "0",
	}
	if m.controller {
		values["process.roles"], values["listeners"] = "controller", "CONTROLLER://"+m.Addr()
	}
	maps.Copy(values, m.cluster.options.Properties)
	maps.Copy(values, properties)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s=%s\n", key, values[key])
	}
	return os.WriteFile(m.propertiesPath(), []byte(text.String()), 0o644)
}

// Format makes its directories those of a new member with its id; with --ignore-formatted those that are formatted stay as they are.
func (m *Member) Format(flags ...string) error {
	args := append([]string{"format", "-t", ClusterID, "-c", m.propertiesPath()}, flags...)
	command := []string{OttlaBinary()}
	if m.Kind == Kafka {
		command = []string{
			"java", "-XX:TieredStopAtLevel=1", "-cp", KafkaJars(m.Version), "-Dlog4j2.configurationFile=" + log4j("tools"), "kafka.tools.StorageTool",
		}
	}
	if m.controller {
		for _, feature := range m.cluster.options.Features {
			args = append(args, "--feature", feature)
		}
		if !m.cluster.options.Static {
			args = append(args, "--initial-controllers", m.cluster.initialControllers())
		}
	}
	command = append(command, args...)
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("format %s: %w\n%s", m.Name(), err, out)
	}
	return nil
}

func (c *Cluster) initialControllers() string {
	var all []string
	for i, m := range c.Controllers {
		all = append(all, fmt.Sprintf("%d@%s:%s", m.ID, m.Addr(), c.directories[i]))
	}
	return strings.Join(all, ",")
}

func log4j(of string) string { return filepath.Join(CompatDir(), "java", "log4j2-"+of+".xml") }

// Start starts it and returns when it answers, a broker when it is listed.
func (m *Member) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return m.await(ctx)
}

// Launch starts it and does not wait.
func (m *Member) Launch() error { return m.launch() }

func (m *Member) launch() error {
	command := []string{OttlaBinary(), "serve", m.propertiesPath()}
	if m.Kind == Kafka {
		heap := fmt.Sprintf("-Xmx%dM", cmp.Or(m.cluster.options.HeapMegabytes, 512))
		command = []string{"java", heap, "-Dlog4j2.configurationFile=" + log4j("server"), "-cp", KafkaJars(m.Version), "kafka.Kafka", m.propertiesPath()}
	}
	process, err := StartProcess(m.Name(), m.LogPath(), nil, m.host.on(command)...)
	m.process = process
	return err
}

func (m *Member) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	begin := time.Now()
	err := until(ctx, m.process.Done(), func(ctx context.Context) error {
		_, err := Probe(ctx, m.Addr())
		return err
	})
	if err == nil && !m.controller {
		err = until(ctx, m.process.Done(), func(ctx context.Context) error { return listedAs(ctx, m.Addr(), int32(m.ID)) })
	}
	if err != nil {
		m.Close()
		return fmt.Errorf("%s did not start: %w\n%s", m.Name(), err, m.LogTail(30))
	}
	Progress("%s (pid %d) answers on %s after %d ms", m.Name(), m.process.Pid(), m.Addr(), time.Since(begin).Milliseconds())
	return nil
}

// Stop ends it with SIGTERM and returns its exit code.
func (m *Member) Stop() (int, error) { return m.process.end(syscall.SIGTERM, startLimit) }

// Kill ends it with SIGKILL.
func (m *Member) Kill() error {
	_, err := m.process.end(syscall.SIGKILL, startLimit)
	return err
}

// Pause suspends it, as a machine that hangs; Resume lets it go on. When Pause returns it does nothing any more.
func (m *Member) Pause() error { return m.process.suspend() }

// Resume ends a Pause.
func (m *Member) Resume() error { return m.process.Signal(syscall.SIGCONT) }

// Close ends it if it still runs: SIGTERM, and SIGKILL if it does not go.
func (m *Member) Close() {
	if m.process == nil {
		return
	}
	_ = m.process.Signal(syscall.SIGCONT)
	_ = m.process.Signal(syscall.SIGTERM)
	select {
	case <-m.process.Done():
	case <-time.After(10 * time.Second): // a broker whose controllers are gone waits for them to let it go
		_ = m.process.Signal(syscall.SIGKILL)
		<-m.process.Done()
	}
}

// listedAs asks whether a broker knows itself as registered and not fenced.
func listedAs(ctx context.Context, addr string, id int32) error {
	brokers, err := brokersAt(ctx, addr)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(brokers, func(b kmsg.MetadataResponseBroker) bool { return b.NodeID == id }) {
		return fmt.Errorf("broker %d does not list itself yet", id)
	}
	return nil
}
