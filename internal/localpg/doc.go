// Package localpg runs a private PostgreSQL server for the program that asks for one, so that a fresh machine needs
// nothing set up: it finds (or obtains) the binaries, keeps a data folder of its own and listens on a free port of the
// loopback interface only.
//
// # Who decides what
//
// A server belongs to a folder, its home. Everything that several programs must agree on is decided by two locks (flock)
// on files in that folder, which the kernel releases when a program ends, however it ends:
//
//   - "lock", exclusive, held only while a program starts, adopts or stops the server;
//   - "users", shared, held by every program for as long as it uses the server.
//
// So of two programs that start at the same moment one starts the server and the other adopts it, and the last one out
// (whose attempt at an exclusive lock on "users" succeeds) stops it. When the program that started the server is killed,
// the server goes on, and the next program adopts it.
//
// A server that is found running may be older than the binaries, after an upgrade of the package. Such a server is restarted if no
// other program uses it; see upgrade.go.
//
// A throw-away server ([Options.Ephemeral] without a Dir) has one owner and ends with it: on Linux by a parent-death
// signal, elsewhere when the next throw-away server is started, which also removes the folders of owners that are gone.
//
// # What is in the home
//
//	lock, users   the two locks
//	password      the server's random password, readable by its owner only
//	data/         PostgreSQL's data folder; when we are root it belongs to the server's account, and the password too
//	server.log    what the server prints; server.log.old is the run before
package localpg
