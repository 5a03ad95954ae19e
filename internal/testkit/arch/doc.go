// Package arch keeps the house in order by its tests: they hold the import matrix and
// check the imports of every file against it, which package names which table, and how
// tests are written.
package arch
