package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// An old snapshot keeps all versions of an instance. To find it, to lock it and to move it on takes as many pages as without.
func TestUpdateInstance_FewPages(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t)
	snapshot, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = snapshot.Rollback(context.Background()) }()
	_, err = snapshot.Exec(t.Context(), "SELECT FROM pawl.instance")
	require.NoError(t, err)
	pg, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	require.NoError(t, err)
	defer func() { _ = pg.Close(context.Background()) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := pg.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off") // as the pipeline does

	p := pages{t, rows.NewConn(pg.PgConn())}
	var n int
	inst := &transitions.Instance{}
	fill(reflect.ValueOf(inst).Elem(), &n)
	inst.Tenant, inst.ID, inst.Version, inst.Links = "t", uuid.New(), 1, transitions.Links{}
	inst.Attributes, inst.Data = nil, []byte(`{"text":"`+strings.Repeat("x", 400)+`"}`)
	created := Created()
	require.NoError(t, created.Add("t", inst))
	queue(p.conn, rows.OneTenant, InsertInstances, append([][]byte{[]byte("t")}, created.Params(rows.OneTenant)...), nil)
	p.send()

	const most, kept = 60, 4000
	check := func(when string) {
		t.Helper()
		for range 2*perBucket + 1 { // so that it comes into another bucket
			for name, got := range p.move(inst) {
				assert.Truef(t, got <= most, "%s, at version %d, %s: %d pages were read", when, inst.Version, name, got)
			}
		}
	}
	check("a new instance")
	exec(fmt.Sprintf(`ALTER TABLE pawl.instance SET (autovacuum_enabled = off);
		DO $$ BEGIN FOR v IN %[1]d..%[2]d LOOP
			UPDATE pawl.instance SET version = v + 1, bucket = (v + 1) / %[4]d, updated_at = clock_timestamp()
				WHERE tenant = 't' AND id = '%[3]s' AND bucket = v / %[4]d;
		END LOOP; END $$`, inst.Version, inst.Version+kept-1, inst.ID, perBucket))
	inst.Version += kept
	var size int
	row := pool.QueryRow(t.Context(), "SELECT pg_relation_size('pawl.instance') / current_setting('block_size')::int")
	err = row.Scan(&size)
	require.Truef(t, err == nil && size >= 2*most, "the versions are kept on %d pages, %v", size, err)
	check("4,000 versions")
	exec("VACUUM ANALYZE pawl.instance")
	check("after a vacuum")
}

// pages counts what statements of the pipeline look at.
type pages struct {
	t    *testing.T
	conn *rows.Conn
}

func (p *pages) send() {
	p.t.Helper()
	if err := p.conn.Send(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// of executes a statement, and counts the pages of tables and indexes that it looks at.
func (p *pages) of(form rows.Form, write func(*rows.Builder), params ...[][]byte) int {
	p.t.Helper()
	b := rows.For(form)
	write(b)
	s := b.Statement()
	s.SQL = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + pgtest.SQL(s.SQL)
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	p.conn.Queue(&s, slices.Concat(params...), func(r *rows.Row) error { return json.Unmarshal(r.Bytes(), &plans) })
	p.send()
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// move moves an instance on twice, alone and in a group, and tells what each statement has looked at.
func (p *pages) move(inst *transitions.Instance) map[string]int {
	p.t.Helper()
	tenant, ids := [][]byte{[]byte("t")}, InstanceIDs()
	ids.Tenant("t")
	ids.UUID(inst.ID)
	one := [][]byte{binary.BigEndian.AppendUint64(nil, 1)}
	key := [][]byte{inst.ID[:], []byte("scope"), []byte("key")}
	found := map[string]int{
		"read": p.of(rows.Single, ReadBoth, tenant, key),
		"lock": p.of(rows.OneTenant, func(b *rows.Builder) { LockInstances(b, SkipLocked) }, tenant, ids.Params(rows.OneTenant)),
	}
	found["change"] = p.of(rows.Single, ChangeInstance, tenant, ChangeParams(p.next(inst)))
	found["change in a group"] = p.of(rows.OneTenant, ChangeInstances, tenant, p.next(inst).Params(rows.OneTenant), one)
	return found
}

// next is the change to the next version of an instance, from where it is.
func (p *pages) next(inst *transitions.Instance) *Rows[Changed] {
	p.t.Helper()
	c, tenant, ids := Changed{Instance: inst, Before: inst.Version}, [][]byte{[]byte("t")}, InstanceIDs()
	ids.Tenant("t")
	ids.UUID(inst.ID)
	queue(p.conn, rows.OneTenant, func(b *rows.Builder) { LockInstances(b, SkipLocked) }, append(tenant, ids.Params(rows.OneTenant)...),
		func(r *rows.Row) error {
			_, _, c.Row = r.Int8(), r.Bool(), r.TID()
			return r.Err()
		})
	p.send()
	inst.Version, inst.UpdatedAt = inst.Version+1, inst.UpdatedAt.Add(time.Second)
	changed := Changes()
	if err := changed.Add("t", &c); err != nil {
		p.t.Fatal(err)
	}
	return changed
}
