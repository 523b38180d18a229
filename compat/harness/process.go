package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Process is one program that was started, with its output in a file.
type Process struct {
	Name    string
	LogPath string

	cmd  *exec.Cmd
	done chan struct{}
}

// StartProcess starts argv with standard output and error appended to logPath. The process gets a process group of its
// own, so that a Ctrl-C at the terminal reaches only the test, which then ends it.
func StartProcess(name, logPath string, env []string, argv ...string) (*Process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the process holds its own
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	// The suite's own OTTLA_ variables would be properties to the server.
	inherited := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OTTLA_") })
	cmd.Env = append(inherited, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	RecordPid(cmd.Process.Pid)
	p := &Process{Name: name, LogPath: logPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the exit status is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// RecordPid appends a process id to the file named by OTTLA_COMPAT_PIDS, if set: run.sh ends those that are left when the
// test program itself was ended half-way.
func RecordPid(pid int) {
	path := os.Getenv("OTTLA_COMPAT_PIDS")
	if path == "" {
		return
	}
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
		_, _ = fmt.Fprintln(f, pid)
		_ = f.Close()
	}
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to exactly this process.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has already ended: %w", p.Name, os.ErrProcessDone)
	default:
	}
	return p.cmd.Process.Signal(s)
}

// suspend sends SIGSTOP and waits until no thread runs: on a busy machine some go on for a while.
func (p *Process) suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if p.stands() {
			return nil
		}
	}
	return fmt.Errorf("%s does not stand after SIGSTOP", p.Name)
}

// stands tells whether every thread is stopped, or within the kernel, from where it comes back stopped.
func (p *Process) stands() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		_, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
		if !strings.ContainsAny(state[:1], "TtDZX") {
			return false
		}
	}
	return true
}

// Wait waits for the end and returns the exit code; 128+n after signal n, as a shell says it.
func (p *Process) Wait() int {
	<-p.done
	state := p.cmd.ProcessState
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// end sends a signal and returns the exit code. A process that has not ended by limit is killed; 0 is no limit.
func (p *Process) end(signal syscall.Signal, limit time.Duration) (int, error) {
	if err := p.Signal(signal); err != nil {
		return 0, fmt.Errorf("%s to %s: %w\n%s", signal, p.Name, err, p.LogTail(20))
	}
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case <-p.done:
	case <-late:
		_ = p.Signal(syscall.SIGKILL)
		return p.Wait(), fmt.Errorf("%s did not end by %s within %s\n%s", p.Name, signal, limit, p.LogTail(20))
	}
	code := p.Wait()
	Progress("%s (pid %d) ended by %s, exit %d", p.Name, p.Pid(), signal, code)
	return code, nil
}

// LogTail returns the last n lines of the process's log.
func (p *Process) LogTail(n int) string { return Tail(p.LogPath, n) }

// Tail returns the last n lines of a file, or the error text of reading it.
func Tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
