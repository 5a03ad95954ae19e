// Package pgtest gives each test a PostgreSQL database of its own, empty or prepared once for all tests of its package.
//
// The server is the one that DATABASE_URL names (its role must be allowed to create databases) or, without one, a
// throw-away server of package localpg. That server is shared by all test packages of a user that run at the same time;
// it is started by the first test that needs it and stopped by the last package that ends.
//
// A package opts in with
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// or [MainWith], and a test asks for a database with [URL] or [Pool]. Databases are dropped when their test ends. Those of a process
// that was killed are dropped by the next process that uses the server: every process holds an advisory lock that its
// databases are named after, so PostgreSQL itself knows which owners are gone, also those of other machines.
package pgtest
