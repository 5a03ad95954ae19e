// Package natstest runs a real NATS server with JetStream inside a test.
package natstest

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// patience is how long a server may take to come up or go down.
const patience = time.Minute

// Server is a NATS server with JetStream on a port of the loopback address. It
// keeps its port and its data when it is stopped and started again. It is for
// one goroutine.
type Server struct {
	options server.Options
	running *server.Server
}

// New starts a server that keeps its data in a folder.
func New(folder string) (*Server, error) {
	s := &Server{options: server.Options{
		ServerName: "natstest", Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: folder, JetStream: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30, NoLog: true, NoSigs: true,
	}}
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Start is New for a test: the data is in its folder, and the server ends with
// it.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Down)
	return s
}

// Up starts a server that is down; otherwise it does nothing.
func (s *Server) Up() error {
	if s.running != nil {
		return nil
	}
	if err := s.awaitPort(); err != nil {
		return err
	}
	options := s.options
	running, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("natstest: %w", err)
	}
	running.Start()
	if !running.ReadyForConnections(patience) {
		running.Shutdown()
		return errors.New("natstest: the server does not come up")
	}
	s.running = running
	s.options.Port = running.Addr().(*net.TCPAddr).Port
	return nil
}

// awaitPort waits until nobody has the port that the server had: a client that dials
// may be given it meanwhile, even by itself.
func (s *Server) awaitPort() error {
	if s.options.Port == server.RANDOM_PORT {
		return nil
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		listener, err := net.Listen("tcp", s.Addr())
		if err == nil {
			return listener.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("natstest: %w", err)
		}
	}
}

// Down stops a server that is up, and waits until it has stopped; otherwise it
// does nothing.
func (s *Server) Down() {
	if s.running == nil {
		return
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.options.Port) }

// URL is where clients connect to.
func (s *Server) URL() string { return "nats://" + s.Addr() }
