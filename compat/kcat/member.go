package kcat

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"ottla/compat/harness"
	"ottla/compat/suite"
)

// ReadInGroup runs kcat -G. It commits by itself, ten times a second and when it leaves.
func (c *Client) ReadInGroup(ctx context.Context, o suite.MemberOptions, stop <-chan struct{}) ([]suite.Record, error) {
	cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", c.Addr}, memberArgs(o)...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	harness.RecordPid(cmd.Process.Pid)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-stop:
			_ = cmd.Process.Signal(os.Interrupt)
		case <-ended:
		}
	}()
	records, err := readMember(cmd, stdout, o)
	wait := cmd.Wait()
	switch {
	case err != nil:
		return records, fmt.Errorf("%w\n%s", err, last(stderr.String()))
	case o.Die:
		return records, nil
	case wait != nil:
		return records, &suite.KafkaError{Name: errorName(stderr.String()), Message: fmt.Sprintf("kcat: %v", wait)}
	}
	return records, nil
}

func memberArgs(o suite.MemberOptions) []string {
	args := []string{
		"-G", o.Group, "-E", "-u", "-f", format,
		"-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=100",
		"-X", "session.timeout.ms=" + strconv.Itoa(o.SessionMs), "-X", "heartbeat.interval.ms=" + strconv.Itoa(o.SessionMs/10),
	}
	if o.Count > 0 && !o.Die {
		args = append(args, "-c", strconv.Itoa(o.Count))
	}
	return append(append(args, debug()...), o.Topic)
}

// readMember reads what kcat prints to its end. One that is to die is killed when it has printed enough; what it has printed by
// then counts as read, for kcat may have committed it.
func readMember(cmd *exec.Cmd, stdout io.Reader, o suite.MemberOptions) ([]suite.Record, error) {
	var records []suite.Record
	in := bufio.NewReader(stdout)
	for {
		r, err := readRecord(in)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, r)
		if o.OnRecord != nil {
			o.OnRecord(len(records))
		}
		if o.Die && len(records) == o.Count {
			if err := cmd.Process.Kill(); err != nil {
				return records, err
			}
		}
	}
}
