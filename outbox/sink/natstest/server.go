// Package natstest runs a NATS server with JetStream in tests.
package natstest

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const patience = time.Minute

// Server is a NATS server with JetStream on a loopback port. It keeps its port and its data across
// restarts. It is not safe for concurrent use.
type Server struct {
	options server.Options
	running *server.Server
}

// New starts a server with its data in folder. change may edit its options.
func New(folder string, change ...func(*server.Options)) (*Server, error) {
	s := &Server{options: server.Options{
		ServerName: "natstest", Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: folder, JetStream: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30, NoLog: true, NoSigs: true,
	}}
	for _, c := range change {
		c(&s.options)
	}
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Start calls New for a test, with a temporary folder and a cleanup.
func Start(t testing.TB, change ...func(*server.Options)) *Server {
	t.Helper()
	s, err := New(t.TempDir(), change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Down)
	return s
}

// Up starts the server unless it is running.
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
		return errors.New("natstest: the server does not start")
	}
	s.running = running
	s.options.Port = running.Addr().(*net.TCPAddr).Port
	return nil
}

// awaitPort waits until the server's former port is free; clients may have been assigned it
// meanwhile.
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

// Down stops the server, if it is running, and waits until it has stopped.
func (s *Server) Down() {
	if s.running == nil {
		return
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

// Addr returns host and port of the server.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.options.Port) }

// URL returns the URL for clients.
func (s *Server) URL() string { return "nats://" + s.Addr() }
