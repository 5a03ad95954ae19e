// Package upgrades holds the test that a database of a release goes on under this build, with work of every kind in flight.
//
// What is in testdata are dumps: one for each release, plain SQL that psql takes too, with the tables as the migrations of that release
// made them, and what stood in them. The test makes such a database anew each time, too, so it does not wait for a release to find
// out that something is missing. docs/contributing/release.md says how a dump is made.
package upgrades
