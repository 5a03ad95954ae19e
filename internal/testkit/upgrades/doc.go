// Package upgrades tests that this build continues the database of each release, with all kinds of work in flight.
//
// The folder testdata has one dump for each release, as plain SQL, with the tables of that release and their content. The test also creates
// such a database with this build, to detect omissions before a release. docs/contributing/release.md describes how to create a dump.
package upgrades
