// Package store owns the tables instance and command, with paused and horizon: their columns, the writer of each kind of change, the reader
// of a row, and the text of every statement on them. Other packages use its pieces of SQL in their statements; internal/testkit/arch tests
// that none of them names these tables.
//
//	instance.go, command.go, park.go                            the columns, and the commit pipeline's statements
//	reader.go, record.go                                        an instance, a command, by key
//	view.go, stuck.go, keys.go, lists.go, kinds.go, counts.go   queries of operators
//	flights.go, flightsql.go                                    leases on commands in flight: poll, claim, keep, cancel
//	retention.go                                                retention periods
//	paused.go                                                   paused workflows
//	relations.go                                                pieces of SQL for other packages
//
// The package makes no decisions and begins transactions only to read lists. The lock order is in engine/internal/commit/doc.go.
package store
