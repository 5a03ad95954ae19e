package apikey

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

func tableOf(db Database) *Table { return NewTable(db, schema.For(schema.Default)) }

// reader returns a key of acme with the right to read.
func reader(name string) Key {
	return Key{Tenant: "acme", Name: name, Actor: "ann", CreatedBy: "boss (test)", Roles: []string{"clerk"},
		Grants: auth.Grants{{Right: auth.Read}}}
}

func (t *Table) make(tb testing.TB, k Key) (Key, string) {
	tb.Helper()
	made, text, err := t.Create(tb.Context(), k)
	require.NoError(tb, err)
	return made, text
}

func wantCode(t *testing.T, what string, err error, code workflow.Code) {
	t.Helper()
	assert.Truef(t, err != nil && workflow.CodeOf(err) == code, "%s: %v, not %s", what, err, code)
}

func TestTableDoesNotStoreText(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	table := tableOf(tables.AsNode(t, pool, ""))
	want := reader("first")
	want.ExpiresAt = time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	want.Grants = append(want.Grants, auth.Grant{Right: auth.Submit,
		Target: auth.Target{Workflow: "order", BusinessKey: "a b", Transition: "pay"}})
	made, text := table.make(t, want)
	k, err := table.Get(t.Context(), "acme", made.ID)
	if err != nil || k.Name != "first" || k.Actor != "ann" || k.CreatedBy != "boss (test)" || !slices.Equal(k.Roles, want.Roles) ||
		k.Grants.String() != "read submit:order#a%20b/pay" || !k.ExpiresAt.Equal(want.ExpiresAt) || k.CreatedAt.IsZero() || k.hash != made.hash {
		t.Errorf("%+v, %v", k, err)
	}
	for _, tenant := range []string{"other", "acm"} {
		_, err = table.Get(t.Context(), tenant, made.ID)
		wantCode(t, tenant, err, workflow.NotFound)
	}
	_, err = table.Get(t.Context(), "", made.ID)
	assert.NoError(t, err)
	for _, id := range []string{"", "x", newID(), made.ID + "0", "é23456789012"} {
		_, err = table.Get(t.Context(), "", id)
		wantCode(t, id, err, workflow.NotFound)
	}
	var row string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT k::text || encode(hash, 'escape') FROM pawl.api_key AS k").Scan(&row))
	assert.NotContains(t, row, text[beforeSecret:beforeChecksum], "the secret is in the table")
}

func TestCreateRejectsInvalidKeys(t *testing.T) {
	t.Parallel()
	table := tableOf(tables.AsNode(t, pgtest.Pool(t), ""))
	for name, change := range map[string]func(*Key){
		"no tenant":          func(k *Key) { k.Tenant = "" },
		"a long tenant":      func(k *Key) { k.Tenant = strings.Repeat("t", 65) },
		"no name":            func(k *Key) { k.Name = "" },
		"a name with a NUL":  func(k *Key) { k.Name = "a\x00" },
		"no actor":           func(k *Key) { k.Actor = "" },
		"Pawl's own actor":   func(k *Key) { k.Actor = "pawl:timer" },
		"a consumer's actor": func(k *Key) { k.Actor = "inbox:payments" },
		"an empty role":      func(k *Key) { k.Roles = []string{""} },
		"many roles":         func(k *Key) { k.Roles = slices.Repeat([]string{"r"}, MaxRoles+1) },
		"no grants":          func(k *Key) { k.Grants = nil },
		"many grants":        func(k *Key) { k.Grants = slices.Repeat(k.Grants, MaxGrants+1) },
		"an end in the past": func(k *Key) { k.ExpiresAt = time.Now().Add(-time.Second) },
		"an end far away":    func(k *Key) { k.ExpiresAt = time.Now().AddDate(9000, 0, 0) },
	} {
		k := reader("k")
		change(&k)
		_, _, err := table.Create(t.Context(), k)
		wantCode(t, name, err, workflow.InvalidRequest)
	}
}

// A repeated request does not create a second key.
func TestKeyNameIsUnique(t *testing.T) {
	t.Parallel()
	table := tableOf(tables.AsNode(t, pgtest.Pool(t), ""))
	first, _ := table.make(t, reader("k"))
	_, _, err := table.Create(t.Context(), reader("k"))
	wantCode(t, "again", err, workflow.Conflict)
	assert.ErrorContains(t, err, first.ID, "it does not say which")
	other := reader("k")
	other.Tenant = "other"
	table.make(t, other)
	for range 2 { // the second time is a no-op
		k, err := table.Revoke(t.Context(), "acme", first.ID, "ann")
		assert.Truef(t, err == nil && !k.RevokedAt.IsZero() && k.RevokedBy == "ann" && k.revision == 1, "%+v, %v", k, err)
	}
	table.make(t, reader("k"))
	_, err = table.Revoke(t.Context(), "other", first.ID, "eve")
	wantCode(t, "another tenant", err, workflow.NotFound)
}

func TestRotationKeepsUsedText(t *testing.T) {
	t.Parallel()
	table := tableOf(tables.AsNode(t, pgtest.Pool(t), ""))
	made, _ := table.make(t, reader("k"))
	rotate := func(r Rotation) (Key, error) {
		r.By = "boss"
		k, _, err := table.Rotate(t.Context(), "acme", made.ID, r)
		return k, err
	}
	first, err := rotate(Rotation{Overlap: time.Hour})
	assert.Truef(t, err == nil && first.former == made.hash && first.hash != made.hash && first.RotatedBy == "boss" &&
		!first.FormerEnds.Before(time.Now().Add(59*time.Minute)) && !first.RotatedAt.IsZero(),
		"%+v, %v", first, err)
	_, err = rotate(Rotation{Overlap: time.Hour}) // as a caller without the response would
	wantCode(t, "again", err, workflow.Conflict)
	lost, err := rotate(Rotation{Lost: true})
	assert.Truef(t, err == nil && lost.former == made.hash && lost.hash != first.hash && lost.FormerEnds.Equal(first.FormerEnds),
		"%+v, %v", lost, err)
	now, err := rotate(Rotation{})
	assert.Truef(t, err == nil && now.former == (Hash{}) && now.FormerEnds.IsZero() && now.hash != lost.hash && now.revision == 3,
		"%+v, %v", now, err)
	_, err = rotate(Rotation{Overlap: MaxOverlap + 1})
	wantCode(t, "too long", err, workflow.InvalidRequest)
	_, err = rotate(Rotation{Overlap: time.Hour})
	assert.NoError(t, err)
	k, err := table.Revoke(t.Context(), "", made.ID, "ann")
	assert.Truef(t, err == nil && k.former == (Hash{}) && k.FormerEnds.IsZero(), "%+v, %v", k, err)
	_, err = rotate(Rotation{Lost: true})
	wantCode(t, "revoked", err, workflow.Conflict)
}

// A node that crashes while it changes a key does not block revocations.
func TestCrashedNodeDoesNotBlockRevocation(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	table := tableOf(tables.AsNode(t, pool, ""))
	made, _ := table.make(t, reader("k"))
	lost, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lost.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = lost.Exec(t.Context(), pgtest.SQL(orderSQL))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	_, err = table.Revoke(ctx, "acme", made.ID, "ann")
	require.NoError(t, err)
}

func TestListPagesKeys(t *testing.T) {
	t.Parallel()
	table := tableOf(tables.AsNode(t, pgtest.Pool(t), ""))
	var want []string
	for _, tenant := range []string{"acme", "other"} {
		for _, name := range []string{"a", "b", "c"} {
			k := reader(name)
			k.Tenant = tenant
			made, _ := table.make(t, k)
			want = append(want, made.ID)
		}
	}
	for tenant, want := range map[string][]string{"": want, "acme": want[:3], "other": want[3:], "no": nil} {
		var got []string
		for f := (Filter{Tenant: tenant, Limit: 2}); ; {
			page, more, err := table.List(t.Context(), f)
			require.Truef(t, err == nil && (!more || len(page) == 2), "%v %v %v", page, more, err)
			for _, k := range page {
				got = append(got, k.ID)
			}
			if !more {
				break
			}
			f.After = page[len(page)-1]
		}
		assert.Truef(t, slices.Equal(got, want), "%q: %q, not %q", tenant, got, want)
	}
}

// The recurring queries of each node use indexes, even with the statistics of empty tables, as they
// are planned each time.
func TestPollsUseIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t)
	for i, sql := range []string{`INSERT INTO pawl.api_key (id, tenant, name, actor, roles, grants, hash, created_at, created_by, revision)
		SELECT lpad(n::text, 12, '0'), 't' || n % 10, 'n' || n, 'a', '{}', '{read}', sha256('x'), now(), 'a', n
		FROM generate_series(1, 20000) AS n`, "ANALYZE pawl.api_key"} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
		explainAll(t, pool, []string{"full, with the statistics of an empty one", "full"}[i])
	}
}

func explainAll(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ids := []string{"000000000007", newID()}
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"changed": {changedSQL, []any{int64(19990), maxChanged}},
		"asked":   {askedSQL, []any{ids}},
		"newest":  {newestSQL, nil},
		"get":     {getSQL, []any{ids[0], "t7"}},
		"named":   {namedSQL, []any{"t7", "n7"}},
		"list":    {listSQL, []any{"t7", "t7", time.Time{}, "", 100}},
		"all":     {listSQL, []any{"", "", time.Time{}, "", 100}},
		"used":    {usedSQL, []any{ids, []time.Time{time.Now(), time.Now()}}},
	} {
		for _, step := range pgtest.Explain(t, pool, "", q.sql, q.args...) {
			assert.Falsef(t, step.Relation == "api_key" && step.Type == "Seq Scan", "%s, %s: %+v", table, name, step)
		}
	}
}

// A restored table counts its changes again, so the cache is cleared.
func TestRestoredTableClearsCache(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	here, _ := start(t, pool, Config{Every: time.Millisecond})
	there, _ := start(t, pool, Config{Every: time.Millisecond})
	first, _ := here.make(t, reader("first"))
	second, text := here.make(t, reader("second"))
	_, seen := here.make(t, reader("seen"))
	sees := there.want(t, seen)
	_, err := here.Revoke(t.Context(), "acme", first.ID, "ann")
	require.NoError(t, err)
	_, err = here.Revoke(t.Context(), "acme", sees.Proof.By, "ann")
	require.NoError(t, err)
	await.Receive(t, "the other node has seen both changes", sees.Ended)
	open := there.want(t, text)
	_, err = pool.Exec(t.Context(), "UPDATE pawl.api_key SET revision = 0, revoked_at = NULL, revoked_by = NULL")
	require.NoError(t, err)
	await.Receive(t, "what is open ends", open.Ended)
	open = there.want(t, text)
	if _, err := here.Revoke(t.Context(), "acme", second.ID, "ann"); err != nil { // change 1 again
		t.Fatal(err)
	}
	await.Receive(t, "what is open ends", open.Ended)
	there.wantRefused(t, text, auth.Revoked)
	there.want(t, seen) // as in the table
}
