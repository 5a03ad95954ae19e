// Package wire has what goes over HTTP and WebSocket between a node and those who submit, read and follow, as Go types: what
// package api writes and package client reads. It links neither.
package wire
