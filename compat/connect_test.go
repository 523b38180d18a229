//go:build compat

package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

func connectCases() []appCase {
	return []appCase{
		{name: "connect file to topic to file, worker killed, two workers", run: connectFiles},
		{name: "connect exactly-once source, worker killed", run: connectExactlyOnce},
	}
}

// connectCluster is a Kafka Connect cluster: its workers are JVMs that run ConnectDistributed, as its script does.
type connectCluster struct {
	t        *appT
	id, dir  string
	settings map[string]string
}

type connectWorker struct {
	*harness.Process
	url, id string // the REST address, and the name under which the cluster knows it
	file    string // its properties
}

func newConnect(t *appT, id string, settings map[string]string) *connectCluster {
	return &connectCluster{t: t, id: id, dir: workDir(t.T), settings: settings}
}

// worker writes the properties of a worker and starts it.
func (c *connectCluster) worker(name string) *connectWorker {
	c.t.Helper()
	port, err := harness.FreePort()
	c.t.must(err, "port")
	values := map[string]string{
		"bootstrap.servers": c.t.node.Addr(), "group.id": c.id,
		"config.storage.topic": c.id + "-configs", "config.storage.replication.factor": "1",
		"offset.storage.topic": c.id + "-offsets", "offset.storage.replication.factor": "1", "offset.storage.partitions": "5",
		"status.storage.topic": c.id + "-status", "status.storage.replication.factor": "1", "status.storage.partitions": "3",
		"key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
		"listeners": fmt.Sprintf("http://127.0.0.1:%d", port), "plugin.discovery": "service_load",
		"offset.flush.interval.ms": "300", "session.timeout.ms": "6000", "heartbeat.interval.ms": "300",
		"scheduled.rebalance.max.delay.ms": "1000", "worker.unsync.backoff.ms": "500", "reconnect.backoff.max.ms": "200",
	}
	maps.Copy(values, c.settings)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s=%s\n", key, values[key])
	}
	w := &connectWorker{
		url: fmt.Sprintf("http://127.0.0.1:%d", port), id: fmt.Sprintf("127.0.0.1:%d", port), file: filepath.Join(c.dir, name+".properties"),
	}
	c.t.must(os.WriteFile(w.file, []byte(text.String()), 0o644), "properties")
	c.start(w)
	return w
}

// start starts a worker, for the first time or again, and waits until its REST interface answers.
func (c *connectCluster) start(w *connectWorker) {
	c.t.Helper()
	name := strings.TrimSuffix(filepath.Base(w.file), ".properties")
	p, err := harness.StartProcess(name, filepath.Join(c.dir, name+".log"), nil,
		"java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dlog4j2.configurationFile="+filepath.Join(harness.CompatDir(), "java", "log4j2-server.xml"),
		"-cp", harness.ApplicationsClassPath(), "org.apache.kafka.connect.cli.ConnectDistributed", w.file)
	c.t.must(err, "start a worker")
	w.Process = p
	c.t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL); p.Wait() })
	c.t.eventually("start of "+name, func() error {
		var connectors []string
		return c.rest(w, http.MethodGet, "/connectors", nil, &connectors)
	})
}

// rest asks the REST interface of a worker.
func (c *connectCluster) rest(w *connectWorker, method, path string, body, result any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(c.t.ctx, method, w.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, w.LogTail(5))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// create creates a connector and waits until it and its task run.
func (c *connectCluster) create(w *connectWorker, name string, config map[string]string) {
	c.t.Helper()
	c.insist(w, "/connectors/"+name+"/config", config)
}

// insist puts something until a worker takes it. It says 409 while the workers rebalance.
func (c *connectCluster) insist(w *connectWorker, path string, body any) {
	c.t.Helper()
	c.t.eventually("PUT "+path, func() error {
		err := c.rest(w, http.MethodPut, path, body, nil)
		if err != nil && !strings.Contains(err.Error(), "409") {
			c.t.Fatal(err)
		}
		return err
	})
}

type connectStatus struct {
	Connector struct {
		State  string `json:"state"`
		Worker string `json:"worker_id"`
	} `json:"connector"`
	Tasks []struct {
		ID     int    `json:"id"`
		State  string `json:"state"`
		Worker string `json:"worker_id"`
		Trace  string `json:"trace"`
	} `json:"tasks"`
}

// placed waits until connectors and tasks run and are spread over the workers as evenly as can be: nothing else is a balance.
func (c *connectCluster) placed(names []string, on ...*connectWorker) {
	c.t.Helper()
	c.t.eventually("placing", func() error {
		connectors, tasks := map[string]int{}, map[string]int{}
		for _, name := range names {
			var s connectStatus
			if err := c.rest(on[0], http.MethodGet, "/connectors/"+name+"/status", nil, &s); err != nil {
				return err
			}
			if s.Connector.State != "RUNNING" || len(s.Tasks) != 1 || s.Tasks[0].State != "RUNNING" {
				return fmt.Errorf("%s: %+v", name, s)
			}
			connectors[s.Connector.Worker]++
			tasks[s.Tasks[0].Worker]++
		}
		for _, w := range on {
			if connectors[w.id] != len(names)/len(on) || tasks[w.id] != len(names)/len(on) {
				return fmt.Errorf("connectors %v, tasks %v", connectors, tasks)
			}
		}
		return nil
	})
}

// committed waits until the offsets of a connector, as the REST interface tells them, say that much.
func (c *connectCluster) committed(w *connectWorker, name, field string, want int) {
	c.t.Helper()
	c.t.eventually("offsets of "+name, func() error {
		var got struct {
			Offsets []struct {
				Offset map[string]int `json:"offset"`
			} `json:"offsets"`
		}
		if err := c.rest(w, http.MethodGet, "/connectors/"+name+"/offsets", nil, &got); err != nil {
			return err
		}
		if len(got.Offsets) != 1 || got.Offsets[0].Offset[field] != want {
			return fmt.Errorf("%+v, want %s %d", got, field, want)
		}
		return nil
	})
}

// pipe is a file that is read into a topic and written into another file.
type pipe struct {
	c            *connectCluster
	topic        string
	source, sink string
	written      []string
}

func (c *connectCluster) pipe(topic string) *pipe {
	return &pipe{c: c, topic: topic, source: filepath.Join(c.dir, topic+"-source.txt"), sink: filepath.Join(c.dir, topic+"-sink.txt")}
}

// write appends numbered lines to the source file.
func (p *pipe) write(n int) {
	p.c.t.Helper()
	text := readText(p.c.t, n)
	f, err := os.OpenFile(p.source, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	p.c.t.must(err, "source file")
	for _, line := range text {
		line = fmt.Sprintf("%d %s", len(p.written), line)
		p.written = append(p.written, line)
		_, err := fmt.Fprintln(f, line)
		p.c.t.must(err, "source file")
	}
	p.c.t.must(f.Close(), "source file")
}

func (p *pipe) create(w *connectWorker, more map[string]string) {
	p.c.t.Helper()
	source := map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": p.source, "topic": p.topic,
	}
	maps.Copy(source, more)
	p.c.create(w, p.topic+"-source", source)
	p.c.create(w, p.topic+"-sink", map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": p.sink, "topics": p.topic,
	})
}

// arrived compares the sink file with what was written, once everything is there. From line certain on, a crash may have made a run
// of lines come twice; before it, nothing may.
func (p *pipe) arrived(certain int) {
	p.c.t.Helper()
	p.c.t.eventually("sink file of "+p.topic, func() error {
		data, err := os.ReadFile(p.sink)
		if err != nil {
			return err
		}
		return checkReplayed(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), p.written, certain)
	})
}

// checkReplayed checks that got is want, in order and whole, save that it may go back to a line from certain on and come on again.
func checkReplayed(got, want []string, certain int) error {
	next := 0
	for i, line := range got {
		if next < len(want) && line == want[next] {
			next++
			continue
		}
		back := slices.Index(want[:next], line)
		if back < 0 {
			return fmt.Errorf("line %d of the sink is %q, want %q", i, line, want[min(next, len(want)-1)])
		}
		if back < certain {
			return fmt.Errorf("line %d of the sink goes back to line %d; %d were committed", i, back, certain)
		}
		next = back + 1
	}
	if next != len(want) {
		return fmt.Errorf("%d of %d lines have arrived", next, len(want))
	}
	return nil
}

func connectFiles(t *appT) {
	c := newConnect(t, "connect", nil)
	one := c.worker("connect-1")
	for _, topic := range []string{"connect-configs", "connect-offsets", "connect-status"} {
		t.eventually("configs of "+topic, func() error { // the worker answers before it has made them
			if got, err := ownConfigs(t, topic); err != nil || got != "cleanup.policy=compact" {
				return fmt.Errorf("configs %q (%w)", got, err)
			}
			return nil
		})
	}
	t.topic("pipe-a", 1)
	a, b := c.pipe("pipe-a"), c.pipe("pipe-b") // pipe-b is made by the worker's producer
	a.write(300)
	b.write(100)
	a.create(one, nil)
	b.create(one, nil)
	a.arrived(300)
	b.arrived(100)
	c.placed([]string{"pipe-a-source", "pipe-a-sink", "pipe-b-source", "pipe-b-sink"}, one)
	for _, p := range []*pipe{a, b} {
		size, err := os.Stat(p.source)
		t.must(err, "source file")
		c.committed(one, p.topic+"-source", "position", int(size.Size()))
		c.committed(one, p.topic+"-sink", "kafka_offset", len(p.written))
	}

	// Killed while it works, and started again.
	a.write(300)
	t.eventually("the flow", func() error {
		if t.ends("pipe-a", 1)[0] <= 300 {
			return fmt.Errorf("nothing new")
		}
		return nil
	})
	t.must(one.Signal(syscall.SIGKILL), "kill")
	one.Wait()
	a.write(100)
	c.start(one)
	a.arrived(300)

	// A second worker takes its share; when the first goes, it has everything.
	two := c.worker("connect-2")
	names := []string{"pipe-a-source", "pipe-a-sink", "pipe-b-source", "pipe-b-sink"}
	c.placed(names, one, two)
	a.write(100)
	b.write(100)
	a.arrived(300)
	b.arrived(100)
	t.must(one.Signal(syscall.SIGTERM), "stop")
	one.Wait()
	c.placed(names, two)
	a.write(50)
	b.write(50)
	a.arrived(300)
	b.arrived(100)
	c.offsets(two, b)
	t.must(two.Signal(syscall.SIGTERM), "stop")
	if code := two.Wait(); code != 143 {
		t.Errorf("the worker's exit code is %d\n%s", code, two.LogTail(10))
	}
}

// offsets stops a sink, sets its offset back by REST, and then removes its offsets: each time it reads on from there.
func (c *connectCluster) offsets(w *connectWorker, p *pipe) {
	c.t.Helper()
	path := "/connectors/" + p.topic + "-sink"
	steps := []struct {
		method string
		body   any
		from   int
	}{
		{http.MethodPatch, map[string]any{"offsets": []any{map[string]any{
			"partition": map[string]any{"kafka_topic": p.topic, "kafka_partition": 0},
			"offset":    map[string]any{"kafka_offset": len(p.written) - 20},
		}}}, len(p.written) - 20},
		{http.MethodDelete, nil, 0},
	}
	for _, step := range steps {
		c.insist(w, path+"/stop", nil)
		c.t.eventually("stop of the sink", func() error {
			var s connectStatus
			err := c.rest(w, http.MethodGet, path+"/status", nil, &s)
			if err == nil && (s.Connector.State != "STOPPED" || len(s.Tasks) > 0) {
				err = fmt.Errorf("%+v", s)
			}
			return err
		})
		c.t.must(os.Truncate(p.sink, 0), "empty the sink file")
		c.t.eventually("offsets of the sink", func() error { return c.rest(w, step.method, path+"/offsets", step.body, nil) })
		c.insist(w, path+"/resume", nil)
		c.t.eventually("sink file", func() error {
			data, err := os.ReadFile(p.sink)
			if want := strings.Join(p.written[step.from:], "\n") + "\n"; err == nil && string(data) != want {
				err = fmt.Errorf("%d bytes in the sink, want %d", len(data), len(want))
			}
			return err
		})
	}
}

// connectExactlyOnce kills a worker with a source of exactly-once support: the topic holds every line once, for readers of what is
// committed.
func connectExactlyOnce(t *appT) {
	c := newConnect(t, "connect-once", map[string]string{"exactly.once.source.support": "enabled"})
	w := c.worker("connect-once-1")
	p := c.pipe("pipe-once")
	p.write(200)
	t.topic("pipe-once", 1)
	source := map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": p.source, "topic": p.topic,
		"exactly.once.support": "required", "transaction.boundary": "poll",
	}
	c.create(w, "once-source", source)
	topic := t.tail("pipe-once", true)
	arrived := func(records []suite.Record) error {
		var got []string
		for _, r := range records {
			got = append(got, string(r.Value))
		}
		return checkReplayed(got, p.written, len(p.written))
	}
	t.becomes(topic, arrived)
	p.write(400)
	t.becomes(topic, func(records []suite.Record) error {
		if len(records) <= 200 {
			return fmt.Errorf("nothing new")
		}
		return nil
	})
	t.must(w.Signal(syscall.SIGKILL), "kill")
	w.Wait()
	p.write(100)
	c.start(w)
	t.becomes(topic, arrived)
}
