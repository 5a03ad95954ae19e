// Package tables gives each test a database with Pawl's tables, by way of package pgtest, which knows nothing of them.
package tables

import (
	"cmp"
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// AsNode is [pgtest.AsRole] with the rights of a node on the tables in a schema; "" is the default one.
func AsNode(t testing.TB, pool *pgxpool.Pool, name string) *pgxpool.Pool {
	t.Helper()
	return pgtest.AsRole(t, pool, func(owner *pgxpool.Pool, role string) error {
		_, err := schema.Grant(t.Context(), owner, cmp.Or(name, schema.Default), role)
		return err
	})
}

// Main is [pgtest.Main] for tests whose databases begin with the tables, empty, in the default schema.
func Main(m *testing.M) {
	pgtest.MainWith(m, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := schema.Migrate(ctx, pool, schema.Default)
		return err
	})
}
