package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/workflow"
)

// The floor is what a careful program does without an engine: one transaction
// for each command, statement by statement. It gets every advantage: it decides
// nothing, hashes nothing, checks nothing, and numbers its transitions from a
// sequence, so that no two of them wait for the log's head.
const (
	floorClaim = `INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at)
		VALUES ($1, $2, $3, $4, 'processing', $5, $6, $7, $8, $9)`
	floorLock   = `SELECT state, version, data, chain FROM {pawl}.instance WHERE tenant = $1 AND id = $2 FOR UPDATE`
	floorUpdate = `UPDATE {pawl}.instance SET state = $3, version = $4, bucket = $4::bigint / 4, data = $5, chain = $6, updated_at = $7
		WHERE tenant = $1 AND id = $2`
	floorAudit = `INSERT INTO {pawl}.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor,
			payload, data, key, at, hash)
		VALUES ($1, $2, $3, nextval('` + sequence + `'), $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING position`
	floorEmit = `INSERT INTO {pawl}.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at,
			business_key)
		VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, $10)`
	floorFinish = `UPDATE {pawl}.command SET status = 'succeeded', version = $4, code = 200, state = $5, finished_at = $6, expires_at = $7
		WHERE tenant = $1 AND scope = $2 AND key = $3`
)

// floorStatements are prepared on every connection, under their names.
var floorStatements = map[string]string{"claim": floorClaim, "lock": floorLock, "update": floorUpdate,
	"audit": floorAudit, "emit": floorEmit, "finish": floorFinish}

func floorScenario(name string, connections int, oneRow bool) *scenario {
	return &scenario{name: name, offLog: true, open: func(ctx context.Context, e *env) ([]caller, error) {
		return e.connections(ctx, connections, func(conn *pgx.Conn, i int) (caller, error) {
			f := &floor{conn: conn, number: i + 1, transition: flipping, specimen: e.flip, orders: share(e.orders, i, connections)}
			if oneRow {
				f.transition, f.specimen, f.orders = noting, e.note, e.orders[:1]
			}
			for name, sql := range floorStatements {
				if _, err := conn.Prepare(ctx, name, e.db.in(sql)); err != nil {
					return nil, fmt.Errorf("prepare %s: %w", name, err)
				}
			}
			return f.call, nil
		})
	}}
}

// connections makes callers with a connection each, until the round ends.
func (e *env) connections(ctx context.Context, n int, of func(conn *pgx.Conn, i int) (caller, error)) ([]caller, error) {
	list := make([]caller, n)
	for i := range list {
		conn, err := e.db.connectAs(ctx, poolName)
		if err != nil {
			return nil, err
		}
		e.later(func() error { return conn.Close(context.Background()) })
		if list[i], err = of(conn, i); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// floor is one connection's caller.
type floor struct {
	conn       *pgx.Conn
	number     int
	transition string
	specimen   *specimen
	orders     []order
	n          int
}

// call does one command. Watching a context for its end costs pgx a little for
// every statement, so it is not given one that ends.
func (f *floor) call(ctx context.Context) (int, error) {
	o := &f.orders[f.n%len(f.orders)]
	f.n++
	return 1, f.command(context.WithoutCancel(ctx), o, commandKey(f.number, f.n))
}

func (f *floor) command(ctx context.Context, o *order, key string) (err error) {
	tx, err := f.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback(ctx))
		}
	}()
	now, scope := time.Now(), workflowName+":"+o.id.String()
	if _, err = tx.Exec(ctx, "claim", tenant, scope, key, filler(f.n), workflowName, f.transition, o.id, actor, now); err != nil {
		return err
	}
	version, to, err := f.transit(ctx, tx, o, key, now)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, "finish", tenant, scope, key, version, string(to), now, now.Add(replayFor)); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// transit makes the transition: the instance, its audit row, its event.
func (f *floor) transit(ctx context.Context, tx pgx.Tx, o *order, key string, now time.Time) (version int64, to workflow.State, err error) {
	var from workflow.State
	var position int64
	var data string
	var chain []byte
	if err := tx.QueryRow(ctx, "lock", tenant, o.id).Scan(&from, &version, &data, &chain); err != nil {
		return 0, "", err
	}
	to = from
	if f.transition == flipping {
		to = flipped(from)
	}
	version++
	s := f.specimen
	if _, err := tx.Exec(ctx, "update", tenant, o.id, string(to), version, s.data, filler(f.n), now); err != nil {
		return 0, "", err
	}
	if err := tx.QueryRow(ctx, "audit", tenant, o.id, version, workflowName, f.transition, string(from), string(to), actor,
		s.payload, s.data, key, now, filler(f.n)).Scan(&position); err != nil {
		return 0, "", err
	}
	_, err = tx.Exec(ctx, "emit", tenant, position, s.eventType, workflowName, o.id, version, f.transition, string(to), now, o.key)
	return version, to, err
}

// filler stands for a SHA-256.
func filler(n int) []byte {
	var b [32]byte
	for i := range b {
		b[i] = byte(n*31 + i*97)
	}
	return b[:]
}
