package harness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// probePause is how long a probe waits between two tries. It polls another process, which has no other way to say that it is
// ready; nothing is decided by how long it takes.
const probePause = 2 * time.Millisecond

// call sends one request on a connection of its own and decodes the response into it.
func call(ctx context.Context, addr string, req kmsg.Request) (kmsg.Response, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("compat-probe")).AppendRequest(nil, req, 1)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:])&0xffffff)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	if len(body) < 4 {
		return nil, errors.New("response shorter than its header")
	}
	resp := req.ResponseKind()
	return resp, resp.ReadFrom(body[4:])
}

// Probe asks once for the API versions and returns how many APIs the node lists.
func Probe(ctx context.Context, addr string) (int, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	resp, err := call(ctx, addr, req)
	if err != nil {
		return 0, err
	}
	versions := resp.(*kmsg.ApiVersionsResponse)
	if versions.ErrorCode != 0 {
		return 0, fmt.Errorf("ApiVersions answered error %d", versions.ErrorCode)
	}
	return len(versions.ApiKeys), nil
}

// listed asks whether the node is listed among the brokers, that is registered and not fenced.
func listed(ctx context.Context, addr string) error {
	brokers, err := brokersAt(ctx, addr)
	if err == nil && len(brokers) == 0 {
		err = errors.New("no broker is registered yet")
	}
	return err
}

// brokersAt are the brokers that a node lists.
func brokersAt(ctx context.Context, addr string) ([]kmsg.MetadataResponseBroker, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 1
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := call(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.MetadataResponse).Brokers, nil
}

// until repeats try until it succeeds, ctx ends, or stop is closed.
func until(ctx context.Context, stop <-chan struct{}, try func(context.Context) error) error {
	ticker := time.NewTicker(probePause)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-stop:
			return fmt.Errorf("the process has ended; the last answer was: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("%w; the last answer was: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
