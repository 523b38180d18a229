package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// answer is one line from the program.
type answer struct {
	ID       int             `json:"id"`
	Progress *int            `json:"progress"`
	OK       json.RawMessage `json:"ok"`
	Error    *string         `json:"error"`
	Message  string          `json:"message"`
}

// waiter is a call that waits for answers until it is gone.
type waiter struct {
	answers chan answer
	gone    chan struct{}
}

// Process is one running driver program.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	stdin   io.WriteCloser

	mu      sync.Mutex
	nextID  int
	waiting map[int]waiter
	ended   error
}

// StartJava starts the JVM; its standard error goes to a file in dir.
func StartJava(dir string) (*Process, error) {
	return start("java", dir, "java", "-Xmx768m", "-XX:TieredStopAtLevel=1",
		"-Dlog4j2.configurationFile="+filepath.Join(harness.CompatDir(), "java", "log4j2-tools.xml"),
		"-cp", harness.KafkaClassPath(), "Driver")
}

// StartPython starts the Python interpreter of the venv with confluent-kafka.
func StartPython(dir string) (*Process, error) { return StartPythonClient("confluent", dir) }

// StartPythonClient starts the Python interpreter of the venv with one of the clients of compat/python: confluent, pure or aio.
func StartPythonClient(client, dir string) (*Process, error) {
	return start(client, dir, harness.Python(), filepath.Join(harness.CompatDir(), "python", "driver.py"), client)
}

// StartNode starts Node.js with one of the clients of compat/node: kafkajs or platformatic.
func StartNode(client, dir string) (*Process, error) {
	return start(client, dir, harness.NodeJS(), filepath.Join(harness.CompatDir(), "node", "driver.js"), harness.NodeModules(), client)
}

// StartBuilt starts a driver program that install.sh has built into the cache: compat/sarama and the like.
func StartBuilt(name, dir string) (*Process, error) {
	return start(name, dir, filepath.Join(harness.Cache(), "drivers", name))
}

// start starts a driver program under a name; its standard error goes to a file in dir.
func start(name, dir string, argv ...string) (*Process, error) {
	p := &Process{name: name, logPath: filepath.Join(dir, name+"-driver.log"), waiting: map[int]waiter{}}
	stderr, err := os.Create(p.logPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }() // the process holds its own
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stderr = stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s driver: %w", name, err)
	}
	harness.RecordPid(p.cmd.Process.Pid)
	go p.read(stdout)
	return p, nil
}

// read hands out the answers until the program ends.
func (p *Process) read(stdout io.Reader) {
	decoder := json.NewDecoder(bufio.NewReaderSize(stdout, 1<<20))
	var err error
	for {
		var a answer
		if err = decoder.Decode(&a); err != nil {
			break
		}
		p.mu.Lock()
		to, ok := p.waiting[a.ID]
		if a.Progress == nil {
			delete(p.waiting, a.ID)
		}
		p.mu.Unlock()
		if ok {
			select {
			case to.answers <- a:
			case <-to.gone:
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = fmt.Errorf("the %s driver has ended (%w):\n%s", p.name, err, harness.Tail(p.logPath, 20))
	for _, to := range p.waiting {
		close(to.answers)
	}
	p.waiting = nil
}

// closeLimit is how long a program may take to end; one with a client that hangs never does.
const closeLimit = 30 * time.Second

// Close ends the program, by SIGKILL if it does not end by itself.
func (p *Process) Close() error {
	err := p.stdin.Close()
	late := time.AfterFunc(closeLimit, func() {
		harness.Progress("the %s driver (pid %d) does not end; killing it", p.name, p.cmd.Process.Pid)
		_ = p.cmd.Process.Kill()
	})
	defer late.Stop()
	_ = p.cmd.Wait() // its exit code says nothing
	return err
}

// send writes a command and returns where its answers come.
func (p *Process) send(op string, args map[string]any) (int, waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, waiter{}, p.ended
	}
	p.nextID++
	line := maps.Clone(args)
	line["id"], line["op"] = p.nextID, op
	data, err := json.Marshal(line)
	if err != nil {
		return 0, waiter{}, err
	}
	to := waiter{make(chan answer, 1024), make(chan struct{})}
	p.waiting[p.nextID] = to
	if _, err := p.stdin.Write(append(data, '\n')); err != nil {
		return 0, waiter{}, fmt.Errorf("the %s driver takes no command: %w", p.name, err)
	}
	return p.nextID, to, nil
}

// call runs a command and decodes its result into result. progress, if set, gets the numbers in between; closing stop tells the
// command to come to its end.
func (p *Process) call(ctx context.Context, op string, args map[string]any, result any, progress func(int), stop <-chan struct{}) error {
	id, to, err := p.send(op, args)
	if err != nil {
		return err
	}
	defer close(to.gone)
	for {
		select {
		case a, ok := <-to.answers:
			switch {
			case !ok:
				return p.ended
			case a.Progress != nil:
				if progress != nil {
					progress(*a.Progress)
				}
				continue
			case a.Error != nil && *a.Error != "":
				return &suite.KafkaError{Name: *a.Error, Message: a.Message}
			case a.Error != nil:
				return errors.New(a.Message)
			}
			return json.Unmarshal(a.OK, result)
		case <-stop:
			stop = nil
			if _, err := fmt.Fprintf(p.stdin, `{"op":"stop","target":%d}`+"\n", id); err != nil {
				return err
			}
		case <-ctx.Done(): // it hangs; if it comes to itself again, it is to end
			_, _ = fmt.Fprintf(p.stdin, `{"op":"stop","target":%d}`+"\n", id)
			return fmt.Errorf("%s of the %s driver: %w\n%s", op, p.name, ctx.Err(), harness.Tail(p.logPath, 20))
		}
	}
}
