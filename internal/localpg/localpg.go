package localpg

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	loopback = "127.0.0.1"
	role     = "pawl" // the server's superuser
	database = "pawl" // the database of Server.URL
)

// startLimit bounds a start with the binaries at hand, crash recovery included; stopLimit bounds a stop, the last checkpoint included.
const (
	startLimit = 5 * time.Minute
	stopLimit  = 2 * time.Minute
)

// Options say which server to run. The zero value is the user's own lasting server.
type Options struct {
	// Dir is the data folder; it is created if need be and holds a sub-folder per major version of PostgreSQL. Empty
	// means a folder of this user (see UserDir), or a new folder for temporary files if Ephemeral is set.
	Dir string

	// Ephemeral makes a throw-away server: its data need not survive a crash of the machine (fsync,
	// synchronous_commit and full_page_writes are off, unless Settings names fsync: then all three are as PostgreSQL
	// or Settings says; see ThrowAwayDir for where it is). Without a Dir the server is this program's alone; Stop removes
	// its folder, and the server ends with the program. With a Dir it is shared like a lasting one, and the folder stays,
	// to be made anew if its server was not shut down in order.
	Ephemeral bool

	// Settings are extra settings as in postgresql.conf, by name. They take effect when this call starts the server,
	// not when it finds it running.
	Settings map[string]string

	// Log receives a line for each step that takes time. Nil means none.
	Log func(format string, args ...any)
}

// durable reports whether what the server has committed survives a crash of the machine.
func (o *Options) durable() bool {
	_, named := o.Settings["fsync"]
	return named || !o.Ephemeral
}

type logger func(format string, args ...any)

// Server is a running PostgreSQL server that this program may use until it calls Stop.
type Server struct {
	home     string // the folder of this server, free of symbolic links
	private  bool   // this program's alone
	account  *account
	users    *fileLock // held for as long as we use the server
	child    *child    // nil if another program started the server
	freePort func() (int, error)
	port     int
	password string

	stopOnce sync.Once
	stopErr  error
}

// Start finds PostgreSQL (see Find), obtains it if there is none (by download, or, where PAWL_PG_INSTALL is set, as root on
// Debian and its relatives from the system's packages), and returns a server that answers and has the database "pawl". If a
// server runs already in that folder, it is used. Data that a lasting server has made is used by its own major version, and
// refused if that is not here. Cancelling ctx ends the attempt and nothing afterwards. Call Stop when done.
func Start(ctx context.Context, o Options) (*Server, error) {
	log := logger(o.Log)
	if log == nil {
		log = func(string, ...any) {}
	}
	var err error
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
	s := &Server{private: o.Ephemeral && o.Dir == "", freePort: freePort}
	if s.private {
		base := throwAwayBase
		if o.durable() {
			base = tempBase
		}
		s.home, s.users, err = makeRun(ctx, base)
	} else {
		s.home, err = makeHome(bin.home(o.Dir))
	}
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, o, bin, log); err != nil {
		if s.users != nil { // what we started is stopped, what others use is left alone
			err = errors.Join(err, s.Stop())
		}
		return nil, err
	}
	return s, nil
}

// URL returns the connection URL of the database "pawl", password included.
func (s *Server) URL() string { return s.URLFor(database) }

// URLFor returns the connection URL of the named database, which it does not create.
func (s *Server) URLFor(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, s.password),
		Host:     net.JoinHostPort(loopback, strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends this program's use of the server, and the server itself if no other program uses it. A throw-away server's
// folder is removed. Further calls do nothing and return what the first did.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() { s.stopErr = s.stop() })
	return s.stopErr
}

func (s *Server) stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	defer func() { err = errors.Join(err, s.users.close()) }()
	if s.private {
		return errors.Join(s.end(ctx, syscall.SIGQUIT), removeRun(ctx, s.home))
	}
	lock, err := lockFile(ctx, s.path("lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	if last, err := s.users.try(syscall.LOCK_EX); err != nil || !last {
		return err
	}
	return s.end(ctx, syscall.SIGINT)
}

// end stops the server, whoever started it, with the given signal.
func (s *Server) end(ctx context.Context, signal syscall.Signal) error {
	if s.child != nil { // also when it is just starting, without a lock file yet
		if err := s.child.end(ctx, signal); err != nil {
			return err
		}
	}
	if pm, ok := runningIn(s.data()); ok {
		return pm.end(ctx, signal)
	}
	return nil
}
