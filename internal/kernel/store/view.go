package store

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// viewSQL reads an instance with its timers, scheduled commands and stuck commands, including those of its children, each by its index. Its
// lists have the names of their Go types' fields. Parameters: tenant, id, first scope of a timer, first scope after those, limit of each.
var viewSQL = `SELECT ` + instanceSelect + `,
	(SELECT json_agg(json_build_object('Name', substr(t.scope, length($3::text) + 1), 'Transition', t.transition, 'Due', t.run_at)
			ORDER BY t.run_at, t.scope)
		FROM (SELECT c.scope, c.transition, coalesce(c.run_at, c.claimed_at) AS run_at FROM {pawl}.command c
			WHERE c.tenant = $1 AND c.scope >= $3 AND c.scope < $4 AND c.phase = 'scheduled' AND c.phase || '' = 'scheduled'
			ORDER BY c.scope LIMIT $5) AS t)::text,
	(SELECT json_agg(json_build_object('Transition', s.transition, 'Scope', s.scope, 'Key', s.key, 'Actor', s.actor, 'Due', s.run_at)
			ORDER BY s.run_at, s.scope, s.key)
		FROM (SELECT c.transition, c.scope, c.key, c.actor, coalesce(c.run_at, c.claimed_at) AS run_at FROM {pawl}.command c
			WHERE c.tenant = $1 AND c.instance = $2 AND c.phase = 'scheduled' AND NOT starts_with(c.scope, '` + transitions.Reserved + `')
			ORDER BY c.run_at LIMIT $5) AS s)::text,
	(SELECT json_agg(json_build_object('Transition', k.transition, 'Undo', k.phase = 'undoing', 'Scope', k.scope, 'Key', k.key,
			'Stuck', k.stuck, 'Failure', coalesce(k.failure, ''), 'Failures', k.failures, 'Since', k.updated_at)
			ORDER BY k.updated_at, k.scope, k.key)
		FROM (SELECT * FROM {pawl}.command c WHERE c.tenant = $1 AND c.instance = $2 AND c.stuck IS NOT NULL LIMIT $5) AS k)::text,
	(SELECT json_agg(json_build_object('Instance', k.instance, 'Workflow', k.workflow, 'BusinessKey', coalesce(i.business_key, ''),
			'Transition', k.transition, 'Undo', k.phase = 'undoing', 'Scope', k.scope, 'Key', k.key,
			'Stuck', k.stuck, 'Failure', coalesce(k.failure, ''), 'Failures', k.failures, 'Since', k.updated_at)
			ORDER BY k.updated_at, k.scope, k.key)
		FROM (SELECT * FROM {pawl}.command c WHERE c.tenant = $1 AND c.parent = $2 AND c.stuck IS NOT NULL LIMIT $5) AS k` +
	BusinessKey("$1", "k.instance") + `)::text
FROM (` + newest("*", "$1", "$2") + `) i`

// View reads an instance with its timers, scheduled and stuck commands. Error: InstanceNotFound.
func (q *Reader) View(ctx context.Context, tenant string, id uuid.UUID) (inspect.View, error) {
	first := decide.TimerScope(id, "")
	read := func(r *rows.Row) (inspect.View, error) { return readView(r, tenant) }
	return oneInstance(ctx, q.pool, id, read, q.in(viewSQL), tenant, id, first, afterScopes(first), inspect.MaxWaiting+1)
}

func readView(r *rows.Row, tenant string) (v inspect.View, err error) {
	if v.Instance, err = mustInstance(r, tenant); err != nil {
		return v, err
	}
	if v.Timers, v.MoreTimers, err = atMost[inspect.Timer](r.Bytes()); err != nil {
		return v, err
	}
	if v.Scheduled, v.MoreScheduled, err = atMost[inspect.ScheduledCommand](r.Bytes()); err != nil {
		return v, err
	}
	if v.Stuck, v.MoreStuck, err = atMost[inspect.StuckCommand](r.Bytes()); err != nil {
		return v, err
	}
	if v.StuckChildren, v.MoreChildren, err = atMost[inspect.StuckChild](r.Bytes()); err != nil {
		return v, err
	}
	for i := range v.Stuck {
		v.Stuck[i].Describe()
	}
	for i := range v.StuckChildren {
		v.StuckChildren[i].Describe()
	}
	for i := range v.Timers {
		v.Timers[i].Due = v.Timers[i].Due.UTC()
	}
	for i := range v.Scheduled {
		v.Scheduled[i].Due = v.Scheduled[i].Due.UTC()
	}
	return v, nil
}

// atMost reads a JSON list that may be NULL or have one entry too many.
func atMost[T any](raw []byte) (list []T, more bool, err error) {
	if raw == nil {
		return nil, false, nil
	}
	if err := json.Unmarshal(raw, &list, json.RejectUnknownMembers(true)); err != nil {
		return nil, false, err
	}
	if len(list) > inspect.MaxWaiting {
		return list[:inspect.MaxWaiting], true, nil
	}
	return list, false, nil
}
