// Package localpg runs a private PostgreSQL server, so that a fresh machine needs no setup. It finds, installs or downloads the
// binaries, keeps a data folder and listens on a free loopback port.
//
// Programs share the server of a folder, its home, by two file locks in it: lock is held while a program starts, adopts or stops the
// server, and users is held shared by every program that uses it. The last one stops the server. The next program adopts the server of a
// killed one, or restarts it if its programs were upgraded and no other program uses it.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	loopback = "127.0.0.1"
	role     = "pawl" // the server's superuser
	database = "pawl" // the database of Server.URL

	startLimit = 5 * time.Minute // with the binaries at hand, crash recovery included
	stopLimit  = 2 * time.Minute // the last checkpoint included
)

// Options select a server. The zero value is the user's own lasting server.
type Options struct {
	// Dir has a home for each major version of PostgreSQL. Defaults to UserDir("postgres").
	Dir string

	// Ephemeral turns fsync, synchronous_commit and full_page_writes off, unless Settings has fsync. With Dir, data is created anew
	// after a crash. Without it, the server is private, and it and its temporary folder end with Stop or the program.
	Ephemeral bool

	// Settings are extra settings as in postgresql.conf. They take effect when this call starts the server.
	Settings map[string]string

	// Log receives a line for each step that takes time, unless it is nil.
	Log func(format string, args ...any)
}

// durable reports whether committed data survives a crash of the machine.
func (o *Options) durable() bool {
	_, named := o.Settings["fsync"]
	return named || !o.Ephemeral
}

type logger func(format string, args ...any)

// Server is a running PostgreSQL server that this program may use until it calls Stop.
type Server struct {
	home     string // without symbolic links
	account  *account
	users    fileLock
	remove   func() error // stops a private server and removes its home; nil for a shared one
	freePort func() (int, error)
	port     int
	password string
	stop     func() error
}

func newServer(home string, remove func() error) (*Server, error) {
	home, err := filepath.EvalSymlinks(home) // programs recognise the server by it
	s := &Server{home: home, remove: remove, freePort: freePort}
	s.stop = sync.OnceValue(s.end)
	return s, err
}

// Start finds or obtains PostgreSQL, and returns a server that answers and has the database "pawl". It uses the server that runs in the
// folder, or else starts one. A lasting server is only run by the major version that created its data.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	log := logger(o.Log)
	if log == nil {
		log = func(string, ...any) {}
	}
	if o.Dir == "" && !o.Ephemeral {
		if o.Dir, err = UserDir("postgres"); err != nil {
			return nil, err
		}
	}
	bin, err := findOrObtain(ctx, o.homes(), log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var remove func() error
	home := bin.home(o.Dir)
	switch {
	case o.Dir != "":
		err = makeFolder(home)
	case o.durable():
		home, remove, err = makeRun(os.TempDir())
	default:
		home, remove, err = makeRun(throwAwayBase())
	}
	if err != nil {
		return nil, err
	}
	s, err := newServer(home, remove)
	if err == nil {
		err = s.start(ctx, o, bin, log)
	}
	if err != nil { // a server that other programs use keeps running
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// homes lists the folders with data of a lasting server.
func (o Options) homes() (homes []string) {
	for major := oldestMajor; major <= newestMajor && !o.Ephemeral; major++ {
		home := binaries{major: major}.home(o.Dir)
		if _, err := os.Stat(filepath.Join(home, "data")); err == nil {
			homes = append(homes, home)
		}
	}
	return homes
}

// Exists reports whether the lasting private server that Start uses by default has data.
func Exists() (bool, error) {
	dir, err := UserDir("postgres")
	return err == nil && len(Options{Dir: dir}.homes()) > 0, err
}

// URL returns the connection URL of the database "pawl", password included.
func (s *Server) URL() string { return s.URLFor(database) }

// URLFor returns the connection URL of the named database, which it does not create.
func (s *Server) URLFor(database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", role, s.password, loopback, s.port, url.PathEscape(database))
}

// Stop ends this program's use of the server. The last program stops the server, and removes a private one. Further calls return the
// first result.
func (s *Server) Stop() error { return s.stop() }

func (s *Server) end() (err error) {
	if s.users.File != nil {
		defer func() { err = errors.Join(err, s.users.Close()) }()
	}
	switch {
	case s.remove != nil:
		return s.remove()
	case s.users.File == nil: // the start failed early
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	lock, err := lockFile(ctx, s.path("lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if pm, running := runningIn(s.data()); running && s.users.try(syscall.LOCK_EX) {
		return pm.end(ctx, syscall.SIGINT)
	}
	return nil
}
