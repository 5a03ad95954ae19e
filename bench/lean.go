package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/workflow"
)

// The lean floor is what a team would write by hand for one workflow: tables with no
// more than it needs, six statements in a transaction for each command. It has the
// same payload and data, and keeps what it did under the caller's key. It has no
// tenants, no chain, no expiry, no lists and no order of the log, which [floor] has
// because its rows are the engine's.
const leanTables = `
CREATE TABLE {pawl}.lean_order (id uuid PRIMARY KEY, number text NOT NULL UNIQUE, state text NOT NULL, version int NOT NULL,
	data jsonb NOT NULL, updated_at timestamptz NOT NULL);
CREATE TABLE {pawl}.lean_key (key text PRIMARY KEY, request_hash bytea NOT NULL, response jsonb,
	created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE {pawl}.lean_history (order_id uuid NOT NULL, version int NOT NULL, transition text NOT NULL, from_state text NOT NULL,
	to_state text NOT NULL, actor text NOT NULL, payload jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (order_id, version));
CREATE TABLE {pawl}.lean_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type text NOT NULL, order_id uuid NOT NULL,
	version int NOT NULL, payload jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());`

// fillLean has the orders that the engine has placed.
const fillLean = `INSERT INTO {pawl}.lean_order SELECT id, business_key, state, version, data, updated_at FROM {pawl}.instance`

// leanStatements are prepared on every connection, under their names.
var leanStatements = map[string]string{
	"claim":  `INSERT INTO {pawl}.lean_key (key, request_hash) VALUES ($1, $2)`,
	"lock":   `SELECT state, version, data FROM {pawl}.lean_order WHERE id = $1 FOR UPDATE`,
	"update": `UPDATE {pawl}.lean_order SET state = $2, version = $3, data = $4, updated_at = now() WHERE id = $1`,
	"history": `INSERT INTO {pawl}.lean_history (order_id, version, transition, from_state, to_state, actor, payload)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
	"emit":   `INSERT INTO {pawl}.lean_outbox (type, order_id, version, payload) VALUES ($1, $2, $3, $4)`,
	"finish": `UPDATE {pawl}.lean_key SET response = $2 WHERE key = $1`,
}

func leanScenario(name string, connections int) *scenario {
	return &scenario{name: name, lean: true, open: func(ctx context.Context, e *env) ([]caller, error) {
		return e.connections(ctx, connections, func(conn *pgx.Conn, i int) (caller, error) {
			l := &lean{conn: conn, number: i + 1, specimen: e.flip, orders: share(e.orders, i, connections)}
			for name, sql := range leanStatements {
				if _, err := conn.Prepare(ctx, name, e.db.in(sql)); err != nil {
					return nil, fmt.Errorf("prepare %s: %w", name, err)
				}
			}
			return l.call, nil
		})
	}}
}

// lean is one connection's caller.
type lean struct {
	conn     *pgx.Conn
	number   int
	specimen *specimen
	orders   []order
	n        int
}

// call does one command.
func (l *lean) call(ctx context.Context) (int, error) {
	o := &l.orders[l.n%len(l.orders)]
	l.n++
	ctx = context.WithoutCancel(ctx)
	return 1, pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error { return l.command(ctx, tx, o, commandKey(l.number, l.n)) })
}

func (l *lean) command(ctx context.Context, tx pgx.Tx, o *order, key string) error {
	if _, err := tx.Exec(ctx, "claim", key, filler(l.n)); err != nil {
		return err
	}
	var from workflow.State
	var version int
	var data string
	if err := tx.QueryRow(ctx, "lock", o.id).Scan(&from, &version, &data); err != nil {
		return err
	}
	to, s := flipped(from), l.specimen
	version++
	answer := fmt.Sprintf(`{"order":"%s","state":"%s","version":%d,"at":"%s"}`, o.id, to, version, time.Now().UTC().Format(time.RFC3339Nano))
	_, updated := tx.Exec(ctx, "update", o.id, string(to), version, string(s.data))
	_, noted := tx.Exec(ctx, "history", o.id, version, flipping, string(from), string(to), actor, string(s.payload))
	_, emitted := tx.Exec(ctx, "emit", s.eventType, o.id, version, string(s.data))
	_, finished := tx.Exec(ctx, "finish", key, answer)
	return errors.Join(updated, noted, emitted, finished)
}

// verifyLean checks that n transitions have been committed.
func (d *database) verifyLean(ctx context.Context, n int64) error {
	var keys, entries, events, versions int64
	err := d.admin.QueryRow(ctx, d.in(`SELECT (SELECT count(response) FROM {pawl}.lean_key), (SELECT count(*) FROM {pawl}.lean_history),
		(SELECT count(*) FROM {pawl}.lean_outbox), (SELECT coalesce(sum(version - 1), 0) FROM {pawl}.lean_order)`)).
		Scan(&keys, &entries, &events, &versions)
	if err == nil && (keys != n || entries != n || events != n || versions != n) {
		err = fmt.Errorf("the tables do not hold what was claimed to be committed: %d transitions, but found %d keys, %d entries, %d events "+
			"and %d versions", n, keys, entries, events, versions)
	}
	return err
}
