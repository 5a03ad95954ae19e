package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const chainsSQL = `
SELECT coalesce(i.id, a.instance), coalesce(i.version, 0), i.chain, coalesce(a.version, 0), coalesce(a.position, 0), coalesce(a.workflow, ''),
	coalesce(a.transition, ''), coalesce(a.from_state, ''), coalesce(a.to_state, ''), coalesce(a.actor, ''), coalesce(a.reason, ''),
	a.payload::text, a.data::text, a.payload_digest, a.data_digest, coalesce(a.scope, ''), coalesce(a.key, ''),
	coalesce(a.at, 'epoch'), a.hash,
	coalesce(i.version = a.version AND (i.state <> a.to_state OR i.data::text <> a.data::text), false)
FROM (SELECT id, version, chain, state, data FROM pawl.instance WHERE tenant = $1 AND ($2::uuid IS NULL OR id = $2)) i
FULL JOIN (SELECT * FROM pawl.audit WHERE tenant = $1 AND ($2::uuid IS NULL OR instance = $2)) a ON a.instance = i.id
ORDER BY 1, 4`

const logSQL = `
SELECT coalesce((SELECT head FROM pawl.log WHERE tenant = $1), 0), count(*), count(DISTINCT position),
	coalesce(min(position), 0), coalesce(max(position), 0)
FROM pawl.audit WHERE tenant = $1`

// Verify recomputes the chains of an instance, or of all instances of the
// tenant for the zero id, and names the first broken row of each. A position is
// no part of the chain; it must grow with the version. For a whole tenant it also
// checks that positions are gapless from 1 to the log's head; a gap is reported
// with the zero instance. progress, which may be nil, is called with the rows
// checked so far.
func (t *Table) Verify(ctx context.Context, tenant string, instance uuid.UUID, progress func(entries int64)) (transitions.Verification, error) {
	var one *uuid.UUID
	if instance != uuid.Nil {
		one = &instance
	}
	found, err := t.q.Query(ctx, t.chains, tenant, one)
	if err != nil {
		return transitions.Verification{}, fmt.Errorf("read audit chains: %w", err)
	}
	v := verifier{tenant: tenant}
	for found.Next() {
		if err := v.read(found); err != nil {
			found.Close()
			return v.out, fmt.Errorf("read audit chains: %w", err)
		}
		if progress != nil && v.out.Entries%10_000 == 0 {
			progress(v.out.Entries)
		}
	}
	if err := found.Err(); err != nil {
		return v.out, fmt.Errorf("read audit chains: %w", err)
	}
	v.finish()
	if one == nil {
		if err := t.verifyLog(ctx, &v); err != nil {
			return v.out, err
		}
	}
	return v.out, nil
}

func (t *Table) verifyLog(ctx context.Context, v *verifier) error {
	found, err := t.q.Query(ctx, t.log, v.tenant)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	var head, count, distinct, first, last int64
	_, err = pgx.ForEachRow(found, []any{&head, &count, &distinct, &first, &last}, func() error {
		if count != head || distinct != head || last != head || (head > 0 && first != 1) {
			v.out.Broken = append(v.out.Broken, transitions.Break{Reason: fmt.Sprintf(
				"the log's head is %d, but there are %d rows with %d positions from %d to %d", head, count, distinct, first, last)})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// verifier walks rows ordered by instance and version.
type verifier struct {
	tenant string
	out    transitions.Verification

	id      uuid.UUID
	open    bool
	broken  bool
	exists  bool // the instance itself
	version int64
	chain   []byte
	strayed bool // its state or data is not what its last row says
	seen    int64
	last    int64 // the position of the row before
	prev    [32]byte
}

func (v *verifier) read(row pgx.Rows) error {
	var (
		id                                     uuid.UUID
		version                                int64
		chain, payloadDigest, dataDigest, hash []byte
		e                                      = transitions.Entry{Tenant: v.tenant}
		from, to                               string
		strayed                                bool
	)
	err := row.Scan(&id, &version, &chain, &e.Version, &e.Position, &e.Workflow, &e.Transition, &from, &to, &e.Actor, &e.Reason,
		&e.Payload, &e.Data, &payloadDigest, &dataDigest, &e.Scope, &e.Key, &e.At, &hash, &strayed)
	if err != nil {
		return err
	}
	if !v.open || id != v.id {
		v.finish()
		*v = verifier{tenant: v.tenant, out: v.out, id: id, open: true, exists: chain != nil, version: version, chain: chain}
		v.out.Instances++
	}
	if hash == nil {
		return nil // an instance without any audit row; finish says so
	}
	v.out.Entries++
	e.Instance, e.From, e.To = id, workflow.State(from), workflow.State(to)
	v.check(&e, digest(e.Payload, payloadDigest), digest(e.Data, dataDigest), hash)
	v.strayed = v.strayed || strayed
	return nil
}

func (v *verifier) check(e *transitions.Entry, payload, data [32]byte, hash []byte) {
	v.seen++
	want := link(v.prev, e, payload, data)
	switch {
	case v.broken:
	case e.Version != v.seen:
		v.report(v.seen, fmt.Sprintf("the row of version %d is missing", v.seen))
	case !bytes.Equal(want[:], hash):
		v.report(e.Version, "the row was changed, or the one before it")
	case e.Position <= v.last:
		v.report(e.Version, fmt.Sprintf("the row's position is %d, but the one before it has %d", e.Position, v.last))
	}
	v.prev, v.last = want, e.Position
}

func (v *verifier) finish() {
	switch {
	case !v.open || v.broken:
	case !v.exists:
		v.report(v.seen, "the instance of these rows is missing")
	case v.seen != v.version:
		v.report(min(v.seen, v.version)+1, fmt.Sprintf("the instance is at version %d, but its last row is of version %d", v.version, v.seen))
	case !bytes.Equal(v.prev[:], v.chain):
		v.report(v.seen, "the instance does not hold the hash of its last row")
	case v.strayed:
		v.report(v.seen, "the instance's state or data is not what its last row says")
	}
}

func (v *verifier) report(version int64, reason string) {
	v.broken = true
	v.out.Broken = append(v.out.Broken, transitions.Break{Instance: v.id, Version: version, Reason: reason})
}

// digest is that of the content, or the one that redaction left of it.
func digest(content, kept []byte) [32]byte {
	if content == nil && len(kept) == 32 {
		return [32]byte(kept)
	}
	return sha256.Sum256(content)
}
