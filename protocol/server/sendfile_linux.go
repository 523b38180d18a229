package server

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"ottla/protocol/wire"
)

const (
	canSendfile      = true
	sendfilePieceMax = 1 << 20 // bytes for which one write deadline is set
)

// sendfile sends a region from the page cache to the socket. The offset is
// explicit: a file is read by many connections at once, and the descriptor's own
// position, which net.TCPConn.ReadFrom moves, is shared.
//
// A truncation during the call shows as a short region (sendfile gives 0 at the
// end of the file) or as a changed generation; what went out may then be half
// old, half new, and only closing the connection makes the peer drop it.
func (c *Conn) sendfile(r wire.Region, fd uintptr) error {
	offset, left := r.Position, r.Length
	for left > 0 {
		piece := min(left, sendfilePieceMax)
		if err := c.writeDeadline(piece); err != nil {
			return err
		}
		var sent int
		var failed error
		err := c.raw.Write(func(socket uintptr) bool {
			sent, failed = sendfilePiece(r, int(socket), int(fd), offset+int64(sent), int(piece)-sent, sent)
			return !errors.Is(failed, unix.EAGAIN)
		})
		c.stats.BytesOut.Add(int64(sent))
		c.stats.SendfileBytes.Add(int64(sent))
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		offset += piece
		left -= piece
	}
	if r.Stale() {
		return wire.ErrStaleRegion
	}
	return nil
}

// sendfilePiece sends until left bytes are gone or the socket is full (EAGAIN),
// and gives how many are gone altogether, done included.
func sendfilePiece(r wire.Region, socket, fd int, offset int64, left, done int) (int, error) {
	for left > 0 {
		if r.Stale() {
			return done, wire.ErrStaleRegion
		}
		n, err := unix.Sendfile(socket, fd, &offset, left)
		if n > 0 {
			done += n
			left -= n
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return done, err
		case n == 0:
			return done, fmt.Errorf("the segment ends %d bytes before its region: %w", left, io.ErrUnexpectedEOF)
		}
	}
	return done, nil
}
