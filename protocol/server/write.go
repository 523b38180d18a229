package server

import (
	"fmt"
	"sync"
	"time"

	"ottla/protocol/wire"
)

// writeLoop sends replies in order until the connection is closed or finished,
// and closes the socket.
func (c *Conn) writeLoop() {
	defer c.abandon()
	for {
		batch, over := c.takeReady()
		if over {
			c.fail(nil)
			return
		}
		if batch == nil {
			select {
			case <-c.writerWake:
				continue
			case <-c.closed:
				return
			}
		}
		if _, sent := c.send(batch); !sent {
			return
		}
		signal(c.readerWake)
	}
}

// send sends what takeReady gave. more tells that further replies have become
// ready; sent is false if the connection has failed.
func (c *Conn) send(batch *Request) (more, sent bool) {
	more, err := c.writeBatch(batch)
	if err != nil {
		c.server.options.Logger.Debug("connection closed", "listener", c.listener.Name, "peer", c.socket.RemoteAddr(), "connection", c.id, "reason", err)
		c.fail(err)
		return more, false
	}
	c.touch()
	return more, true
}

// replyNow is what the reader does when the handler is done with a request: what
// stands ready it sends itself, if that is little and it goes to a socket, as waking
// the writer would cost more than the write.
func (c *Conn) replyNow() {
	c.mu.Lock()
	c.handling = nil
	if c.head == nil || !c.head.ready || c.writing {
		c.mu.Unlock()
		return // whoever makes it ready, or sends, sees to it
	}
	if c.raw == nil || !c.littleReady() {
		c.mu.Unlock()
		signal(c.writerWake)
		return
	}
	batch := c.cutReady()
	c.mu.Unlock()
	if more, _ := c.send(batch); more {
		signal(c.writerWake)
	}
}

// littleReady tells that the replies that stand ready fit the buffer in which they
// are put together; mu is held.
func (c *Conn) littleReady() bool {
	total := int64(0)
	for r := c.head; r != nil && r.ready; r = r.next {
		total += r.size
		for i := range r.chunks {
			if region := r.chunks[i].Region; region != nil && region.Source != nil {
				total += region.Length
			}
		}
	}
	return total <= copiedRegionBytes
}

// takeReady takes the replies that stand ready at the head of the queue, linked
// by next, and with them the turn to send, which writeBatch gives back. over is true
// if there are none and none will come.
func (c *Conn) takeReady() (batch *Request, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		return nil, false // the reader will wake us if there is more
	}
	if c.head == nil || !c.head.ready {
		return nil, c.finished && c.head == nil
	}
	return c.cutReady(), false
}

// cutReady is takeReady where there is something to take; mu is held.
func (c *Conn) cutReady() *Request {
	end := c.head
	for end.next != nil && end.next.ready {
		end = end.next
	}
	batch := c.head
	c.head, end.next = end.next, nil
	if c.head == nil {
		c.tail = nil
	}
	c.writing = true
	return batch
}

// abandon is the writer's end: no reply will be sent any more, so those that
// wait are dropped, and done drops those that come.
func (c *Conn) abandon() {
	var ready []*Request
	c.mu.Lock()
	c.dead = true
	for r := c.head; r != nil; {
		next := r.next
		r.next = nil
		if r.ready {
			ready = append(ready, r)
		}
		r = next
	}
	c.head, c.tail = nil, nil
	c.mu.Unlock()
	for _, r := range ready {
		r.releaseReply()
	}
}

// releaseReply gives back the regions of a Fetch reply.
func (r *Request) releaseReply() {
	if r.fetch != nil {
		r.fetch.Release()
	}
	r.fetch, r.chunks, r.bytes = nil, nil, nil
}

// writer puts small pieces together into few writes.
type writer struct {
	conn   *Conn
	buffer []byte
}

var writeBuffers = sync.Pool{New: func() any { return new([writeBufferBytes]byte) }}

// writeBatch sends the replies of a batch and settles them. more tells that others
// have become ready.
func (c *Conn) writeBatch(batch *Request) (more bool, err error) {
	buffer := writeBuffers.Get().(*[writeBufferBytes]byte) //nolint:forcetypeassert // only these are put
	w := writer{conn: c, buffer: buffer[:0]}
	var count int
	var size int64
	for r := batch; r != nil; {
		if err == nil {
			err = w.reply(r)
		}
		r.releaseReply()
		count++
		size += r.size
		next := r.next
		r.next = nil
		r = next
	}
	if err == nil {
		err = w.flush()
	}
	writeBuffers.Put(buffer)
	c.mu.Lock()
	c.outstanding -= count
	c.queuedBytes -= size
	c.writing = false
	more = c.head != nil && c.head.ready
	c.mu.Unlock()
	return more, err
}

// reply sends or buffers one reply.
func (w *writer) reply(r *Request) error {
	if r.closing != nil {
		if err := w.flush(); err != nil {
			return err
		}
		return r.closing
	}
	if r.bytes != nil {
		return w.bytes(r.bytes)
	}
	for _, chunk := range r.chunks {
		var err error
		switch {
		case chunk.Region == nil:
			err = w.bytes(chunk.Bytes)
		case chunk.Region.Source == nil:
			err = w.bytes(chunk.Region.Bytes)
		default:
			err = w.region(*chunk.Region)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bytes sends b, or keeps it for the next write if it is small.
func (w *writer) bytes(b []byte) error {
	if len(w.buffer)+len(b) > cap(w.buffer) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(b) > cap(w.buffer)/2 {
		if err := w.flush(); err != nil {
			return err
		}
		return w.send(b)
	}
	w.buffer = append(w.buffer, b...)
	return nil
}

func (w *writer) flush() error {
	if len(w.buffer) == 0 {
		return nil
	}
	err := w.send(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

func (w *writer) send(b []byte) error {
	c := w.conn
	if err := c.writeDeadline(int64(len(b))); err != nil {
		return err
	}
	n, err := c.socket.Write(b)
	c.stats.BytesOut.Add(int64(n))
	if err != nil {
		c.stats.WriteFailed.Add(1)
		return fmt.Errorf("writing a reply: %w", err)
	}
	return nil
}

func (c *Conn) writeDeadline(bytes int64) error {
	if !c.writeUntil.renew(time.Now(), c.server.options.patience(bytes)) {
		return nil
	}
	return c.socket.SetWriteDeadline(c.writeUntil.until)
}

// region sends a range of a file: by sendfile where the socket and the file can,
// else through the buffer. Small ones always go through the buffer, as they cost
// fewer system calls there.
func (w *writer) region(r wire.Region) error {
	err := w.fileBytes(r)
	if err != nil {
		w.conn.stats.WriteFailed.Add(1)
		return fmt.Errorf("sending %d record bytes: %w", r.Length, err)
	}
	return nil
}

func (w *writer) fileBytes(r wire.Region) error {
	if r.Length > copiedRegionBytes && w.conn.raw != nil {
		if fd, ok := r.Source.Fd(); ok && canSendfile {
			if err := w.flush(); err != nil {
				return err
			}
			return w.conn.sendfile(r, fd)
		}
	}
	for at := int64(0); at < r.Length; {
		if len(w.buffer) == cap(w.buffer) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		used := len(w.buffer)
		n := int(min(r.Length-at, int64(cap(w.buffer)-used)))
		if err := r.ReadAt(w.buffer[used:used+n], at); err != nil {
			return err
		}
		w.buffer = w.buffer[:used+n]
		at += int64(n)
	}
	return nil
}
