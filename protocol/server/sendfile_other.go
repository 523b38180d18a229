//go:build !linux

package server

import (
	"errors"

	"ottla/protocol/wire"
)

// Elsewhere than on Linux, record bytes are read and written.
const canSendfile = false

func (c *Conn) sendfile(wire.Region, uintptr) error {
	return errors.ErrUnsupported // never called
}
