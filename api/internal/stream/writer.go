package stream

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// chunk is how many bytes are gathered for one write to a socket.
	chunk = 64 << 10
	// closeWait is how long the end of a connection may take: to write the close
	// frame, and then until the peer answers it.
	closeWait = 5 * time.Second
)

// buffers holds buffers of a chunk, so that a connection has one only while it
// writes.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk)
	return &b
}}

// writer is the only one that writes to a connection's socket. The exception is
// gorilla's answer to a breach of RFC 6455, which it writes while it reads; a
// net.Conn keeps concurrent writes whole, all of ours are whole frames, and the
// connection is lost by then.
type writer struct {
	socket   net.Conn
	out      <-chan outgoing
	cancel   context.CancelCauseFunc
	timeout  time.Duration
	ping     time.Duration
	written  map[*pump]int64 // up to where each subscription was written
	unsent   []byte          // the rest of a frame that a failed write has begun
	deadline *time.Timer     // of the peer's answer to the close frame
}

// run writes until the context ends or the socket fails; then it closes the
// connection, for the reason that the context's cause gives.
func (w *writer) run(ctx context.Context) {
	ping := time.NewTicker(w.ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case m := <-w.out:
			err = w.put(m)
		case <-ping.C:
			err = w.write(appendFrame(nil, framePing, nil))
		case <-ctx.Done():
			w.close(context.Cause(ctx))
			return
		}
		if err != nil {
			w.cancel(closingAfter(err))
			w.close(context.Cause(ctx))
			return
		}
	}
}

// put writes what a pump or the reader has.
func (w *writer) put(m outgoing) error {
	if m.pump == nil || m.ended {
		delete(w.written, m.pump)
		return w.write(m.frame)
	}
	buffer := buffers.Get().(*[]byte)
	b := append((*buffer)[:0], m.frame...)
	defer func() {
		if cap(b) <= 2*chunk { // one with a huge event in it is not kept
			*buffer = b
			buffers.Put(buffer)
		}
	}()
	for e, more := range m.pump.selected.from(m.batch.Events) {
		if len(b) > 0 && len(b)+len(e.CloudEvent) > chunk {
			if err := w.write(b); err != nil {
				return err
			}
			b = b[:0]
			w.written[m.pump] = e.Position - 1
		}
		b = appendEvent(b, m.pump.head, e, more)
	}
	if m.caughtUp {
		b = append(b, answerFrame("caught_up", m.pump.id, "position", m.batch.Last)...)
	}
	if len(b) > 0 {
		if err := w.write(b); err != nil {
			return err
		}
	}
	w.written[m.pump] = m.batch.Last
	return nil
}

// write writes whole frames. When it fails inside of one, the rest of that one
// is kept: nothing else can follow it.
func (w *writer) write(b []byte) error {
	if err := w.socket.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	n, err := w.socket.Write(b)
	if err != nil {
		w.unsent = bytes.Clone(b[n:frameEnd(b, n)])
	}
	return err
}

// close sends a close frame, if the socket accepts it, and gives the peer a moment to answer. Frames written before reach a peer that keeps
// reading.
func (w *writer) close(cause error) {
	why, ok := errors.AsType[*closing](cause)
	if !ok {
		why = goingAway // the server's own context ended
	}
	reason := why.reason
	if resume := "resume after "; len(w.written) > 0 && (why == tooSlow || why == ended) {
		if why == ended {
			resume = reason + "; " + resume
		}
		reason = resume + strconv.FormatInt(w.resume(), 10)
	}
	var err error = gone
	if why != gone {
		if err = w.socket.SetWriteDeadline(time.Now().Add(min(closeWait, w.timeout))); err == nil {
			_, err = w.socket.Write(appendClose(w.unsent, why.code, reason))
		}
	}
	if err != nil {
		_ = w.socket.Close()
		return
	}
	w.deadline = time.AfterFunc(closeWait, func() { _ = w.socket.Close() })
}

// resume returns the position from which every subscription can continue without a gap. There is at least one subscription.
func (w *writer) resume() int64 { return slices.Min(slices.Collect(maps.Values(w.written))) }

// hangUp closes the socket. It is called when nothing else uses it any more.
func (w *writer) hangUp() {
	if w.deadline != nil {
		w.deadline.Stop()
	}
	_ = w.socket.Close()
}
