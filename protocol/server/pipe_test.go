package server

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipeCarriesBytesBothWays(t *testing.T) {
	a, b := NewPipe()
	data := make([]byte, 3*pipeBytes+17)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			if n, err := ends[0].Write(data); n != len(data) || err != nil {
				t.Errorf("wrote %d: %v", n, err)
			}
			if err := ends[0].(*pipeEnd).CloseWrite(); err != nil { //nolint:forcetypeassert // it is one
				t.Error(err)
			}
		}()
	}
	for _, end := range []net.Conn{b, a} {
		got, err := io.ReadAll(end)
		if !bytes.Equal(got, data) || err != nil {
			t.Errorf("read %d bytes: %v", len(got), err)
		}
	}
}

func TestPipeClose(t *testing.T) {
	a, b := NewPipe()
	if _, err := a.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	got, err := io.ReadAll(b)
	if string(got) != "last words" || err != nil {
		t.Errorf("read %q: %v", got, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing to a closed peer: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading after close: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing after close: %v", err)
	}
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe()
		start := time.Now()
		timedOut := func(what string, after time.Duration, n int, err error) {
			t.Helper()
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != after {
				t.Errorf("%s: %d bytes, %v after %v", what, n, err, time.Since(start))
			}
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: not a timeout: %v", what, err)
			}
		}
		_ = a.SetReadDeadline(start.Add(time.Second))
		n, err := a.Read(make([]byte, 1))
		timedOut("read", time.Second, n, err)
		_ = a.SetWriteDeadline(start.Add(2 * time.Second))
		n, err = a.Write(make([]byte, 2*pipeBytes))
		timedOut("write", 2*time.Second, n, err)
		if n != pipeBytes {
			t.Errorf("wrote %d", n)
		}
		_ = a.SetDeadline(time.Time{})
		go func() { time.Sleep(time.Second); _ = a.SetReadDeadline(time.Unix(1, 0)) }() // wakes a reader that has no deadline
		n, err = a.Read(make([]byte, 1))
		timedOut("kicked", 3*time.Second, n, err)
		if n, err := b.Read(make([]byte, pipeBytes)); n != pipeBytes || err != nil {
			t.Errorf("read %d: %v", n, err)
		}
		_ = a.Close()
		_ = b.Close()
	})
}
