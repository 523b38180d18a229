package node

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestAdviceOnAFullDisk(t *testing.T) {
	full := fmt.Errorf("cannot begin: %w", &fs.PathError{Op: "write", Path: "/data/x", Err: syscall.ENOSPC})
	if got := withAdvice(full); !errors.Is(got, syscall.ENOSPC) || !strings.HasPrefix(got.Error(), full.Error()) || !strings.Contains(got.Error(), "one MiB will do") {
		t.Errorf("%v", got)
	}
	if other := errors.New("no"); withAdvice(other) != other {
		t.Error("advice where none was wanted")
	}
}
