// Package streamtest has helpers for tests of streams: sockets of a fixed size, and malformed messages of clients.
package streamtest

import (
	"context"
	"net"
)

// Sockets of a fixed size, for tests of readers that do not read. A kernel that
// is left alone lets a socket's buffers grow to many megabytes, and each does it
// in its own way.
const (
	socketBuffer = 64 << 10
	// SocketsHold is more than the buffers of two sockets of that size hold, in bytes, while neither end reads: the kernel may double both and
	// counts in pages.
	SocketsHold = 1 << 20
)

// Listener accepts sockets that hold little of what is written to them.
type Listener struct{ net.Listener }

func (l Listener) Accept() (net.Conn, error) {
	socket, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return socket, socket.(*net.TCPConn).SetWriteBuffer(socketBuffer)
}

// Dial opens a socket that holds little of what is not read from it.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	socket, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return socket, socket.(*net.TCPConn).SetReadBuffer(socketBuffer)
}
