package keyset_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// node returns a key set that only reads on demand, with changes of its configuration.
func node(t testing.TB, pool *pgxpool.Pool, change ...func(*keyset.Config)) *keyset.Set {
	t.Helper()
	c := keyset.Config{Pool: pool, In: schema.For(schema.Default), Every: time.Hour, Unsure: time.Hour, Patience: time.Minute}
	for _, f := range change {
		f(&c)
	}
	c.Pool = tables.AsNode(t, c.Pool, "")
	r := keyset.New(c)
	t.Cleanup(r.Stop)
	return r
}

func often(c *keyset.Config)  { c.Every = 5 * time.Millisecond }
func always(c *keyset.Config) { c.Unsure = time.Nanosecond }

func newest(t testing.TB, r *keyset.Set) *ticket.Key {
	t.Helper()
	k, err := r.Newest(t.Context())
	require.NoError(t, err)
	return k
}

func find(t testing.TB, r *keyset.Set, id string) *ticket.Key {
	t.Helper()
	k, err := r.Find(t.Context(), id)
	require.NoError(t, err)
	return k
}

func rotate(t testing.TB, r *keyset.Set, drop bool) {
	t.Helper()
	require.NoError(t, r.Rotate(t.Context(), drop))
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func count(t testing.TB, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM pawl.ticket_key").Scan(&n))
	return n
}

func TestKeyVerifiesOnOtherNode(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ann, bob := node(t, pool), node(t, pool)
	assert.Equal(t, int64(0), ann.Reads(), "it reads before there is anything to do")
	k := newest(t, ann)
	assert.Truef(t, len(k.Secret) == 32 && newest(t, ann) == k && count(t, pool) == 1,
		"%d bytes, %d keys", len(k.Secret), count(t, pool))
	same := find(t, bob, k.ID)
	assert.True(t, same != nil && string(same.Secret) == string(k.Secret), same)
	assert.True(t, newest(t, bob).ID == k.ID && count(t, pool) == 1, "there are two keys")
	off := time.Until(bob.Now()).Abs()
	assert.Truef(t, off <= time.Minute, "its clock is off by %s", off)
}

// Concurrent nodes without a key wait for the first of them to create one.
func TestConcurrentNodesCreateOneKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE pawl.ticket_key IN SHARE ROW EXCLUSIVE MODE")
	require.NoError(t, err)
	var all sync.WaitGroup
	ids := make([]string, 2)
	for i := range ids {
		r := node(t, pool)
		all.Go(func() {
			if k, err := r.Newest(t.Context()); err != nil {
				t.Error(err)
			} else {
				ids[i] = k.ID
			}
		})
	}
	pgtest.WaitBlockedTimes(t, pool, "LOCK TABLE", 2)
	require.NoError(t, tx.Commit(t.Context()))
	all.Wait()
	assert.Truef(t, ids[0] == ids[1] && count(t, pool) == 1, "%v, %d keys", ids, count(t, pool))
}

func TestKeyLifetime(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	age := func(id string, d time.Duration) {
		exec(t, pool, "UPDATE pawl.ticket_key SET created_at = clock_timestamp() - $2::interval WHERE id = $1", id, d)
	}
	first := newest(t, node(t, pool))
	age(first.ID, keyset.Signs-time.Minute)
	k := newest(t, node(t, pool))
	assert.Equal(t, first.ID, k.ID, "a key of less than a day does not sign")
	age(first.ID, keyset.Signs+time.Minute)
	r := node(t, pool)
	second := newest(t, r)
	assert.Truef(t, second.ID != first.ID && find(t, r, first.ID) != nil && count(t, pool) == 2,
		"after a day: %s, %s, %d keys", first.ID, second.ID, count(t, pool))
	age(first.ID, keyset.Verifies+time.Minute)
	late := node(t, pool, often)
	assert.True(t, find(t, late, first.ID) == nil && find(t, late, second.ID) != nil, "after a day and an hour it verifies")
	assert.Equal(t, 1, count(t, pool), "there keys")
}

// A running node notices, and holders of the key are notified.
func TestDroppedKeyIsGone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r, operator := node(t, pool, often), node(t, pool)
	first := newest(t, r)
	rotate(t, operator, false)
	var second *ticket.Key
	await.Eventually(t, "the new key signs", func() bool {
		second = newest(t, r)
		return second.ID != first.ID
	})
	select {
	case <-first.Gone:
		t.Error("a key that verifies is gone")
	default:
	}
	assert.True(t, find(t, r, first.ID) == first, "it is another one")
	rotate(t, operator, true)
	for _, k := range []*ticket.Key{first, second} {
		await.Receive(t, "it is told", k.Gone)
		assert.Nil(t, find(t, r, k.ID), "a key that was dropped verifies")
	}
	k := newest(t, r)
	assert.Truef(t, k.ID != second.ID && count(t, pool) == 1, "%s signs, %d keys", k.ID, count(t, pool))
	exec(t, pool, "UPDATE pawl.ticket_key SET created_at = clock_timestamp() + interval '1 year'") // the clock was set back
	rotate(t, operator, true)
	assert.Truef(t, operator.Now().Year() >= time.Now().Year() && count(t, pool) == 1 && find(t, node(t, pool), second.ID) == nil,
		"%d keys", count(t, pool))
}

// A node that crashes with the lock does not block the removal of keys.
func TestCrashedNodeDoesNotBlockRotation(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r := node(t, pool)
	first := newest(t, r)
	lost, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lost.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{keyset.BoundSQL, keyset.LockSQL} {
		if _, err := lost.Exec(t.Context(), pgtest.SQL(sql)); err != nil {
			t.Fatal(err)
		}
	}
	rotate(t, r, true)
	await.Receive(t, "the key is gone", first.Gone)
}

func TestUnknownKeysCauseFewReads(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r := node(t, pool)
	newest(t, r)
	before := r.Reads()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for _, id := range []string{uuid.NewString(), "x", "", uuid.Nil.String() + "x"} {
				k, err := r.Find(t.Context(), id)
				assert.Truef(t, k == nil && err == nil, "%v, %v", k, err)
			}
		})
	}
	all.Wait()
	n := r.Reads() - before
	assert.Equal(t, int64(1), n, "it has read times")
	// After that time it reads again and finds the key of another node.
	again := node(t, pool, always)
	newest(t, again)
	rotate(t, r, false)
	assert.NotNil(t, find(t, again, newest(t, r).ID), "a new key is not found")
}

// Concurrent callers share the wait for an unreadable table.
func TestConcurrentCallersShareFailure(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE pawl.ticket_key")
	require.NoError(t, err)
	r := node(t, pool, func(c *keyset.Config) { c.Patience = time.Second })
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = r.Find(t.Context(), uuid.NewString())
			} else {
				_, err = r.Newest(t.Context())
			}
			assert.Equal(t, workflow.Unavailable, workflow.CodeOf(err), err)
		})
	}
	all.Wait()
	assert.Equal(t, int64(1), r.Reads(), "the table was tried times")
}

func TestUnreadableKeysAreUnavailable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r, known := node(t, pool, always), node(t, pool, always)
	k := newest(t, known)
	exec(t, pool, "ALTER TABLE pawl.ticket_key RENAME TO away")
	_, err := r.Newest(t.Context())
	assert.Equal(t, workflow.Unavailable, workflow.CodeOf(err), err)
	_, err = r.Find(t.Context(), k.ID)
	assert.Equal(t, workflow.Unavailable, workflow.CodeOf(err), err)
	assert.True(t, find(t, known, k.ID) == k && newest(t, known) == k, "what is known does not survive a moment")
}
