package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/workflow"
)

// MaxSchedules is the maximum number of schedules of a tenant.
const MaxSchedules = 200_000

// maxExtra is the maximum number of runs that trigger and backfill have requested and that are not submitted yet.
const maxExtra = 5 * schedule.MaxBackfill

// Hook writes the row of a schedule in the transaction of its transition.
type Hook struct {
	in        func(sql string) string
	calendars schedule.Calendars
}

// NewHook returns a Hook; in inserts the schema's name into a statement.
func NewHook(in func(sql string) string, c schedule.Calendars) Hook { return Hook{in, c} }

// RunTx implements commit.Hook.
func (h Hook) RunTx(ctx context.Context, tx pgx.Tx, p *decide.Prepared, d *decide.Decision) error {
	var s schedule.Schedule
	if err := json.Unmarshal(d.Entry.Data, &s); err != nil {
		return err
	}
	switch p.Transition {
	case schedule.Delete:
		_, err := tx.Exec(ctx, h.in("DELETE FROM {pawl}.schedule WHERE tenant = $1 AND name = $2"), p.Tenant, s.Name)
		return err
	case schedule.Trigger:
		return h.request(ctx, tx, p.Tenant, s.Name, d, []extra{{fmt.Sprintf("trigger %d", d.Entry.Version), d.Entry.At}})
	case schedule.Backfill:
		list, err := s.Between(h.calendars, *s.Filled)
		if err != nil {
			return err
		}
		extras := make([]extra, len(list))
		for i, nominal := range list {
			extras[i] = extra{schedule.Key(nominal), nominal}
		}
		return h.request(ctx, tx, p.Tenant, s.Name, d, extras)
	}
	if p.Transition == schedule.Create {
		if err := h.limit(ctx, tx, p.Tenant); err != nil {
			return err
		}
	}
	return h.put(ctx, tx, p.Tenant, &s, d)
}

func (h Hook) limit(ctx context.Context, tx pgx.Tx, tenant string) error {
	var n int
	err := tx.QueryRow(ctx, h.in("SELECT count(*) FROM (SELECT FROM {pawl}.schedule WHERE tenant = $1 LIMIT $2) AS all_of_it"), tenant,
		MaxSchedules).Scan(&n)
	if err == nil && n >= MaxSchedules {
		return workflow.Refuse("the tenant has %d schedules, which is the maximum; delete some", n)
	}
	return err
}

// putSQL writes a schedule. Its runs count from now on; requested runs and the list of the newest runs stay. Parameters: tenant, name,
// instance, revision, plan, paused, now, next nominal time, time at which that is due.
const putSQL = `
INSERT INTO {pawl}.schedule AS s (tenant, name, instance, revision, plan, paused, last_at, next_at, due_at)
VALUES ($1, $2, $3, $4, $5::json, $6, $7, $8, $9)
ON CONFLICT (tenant, name) DO UPDATE SET instance = excluded.instance, revision = excluded.revision, plan = excluded.plan,
	paused = excluded.paused, last_at = excluded.last_at, held_at = NULL, next_at = excluded.next_at,
	due_at = CASE WHEN s.extra IS NULL THEN excluded.due_at ELSE excluded.last_at END`

func (h Hook) put(ctx context.Context, tx pgx.Tx, tenant string, s *schedule.Schedule, d *decide.Decision) error {
	times, err := s.Spec.Times(h.calendars)
	if err != nil {
		return err
	}
	plan, err := json.Marshal(s.Plan, json.Deterministic(true))
	if err != nil {
		return err
	}
	var next, due time.Time
	paused := d.Entry.To == schedule.Paused
	if !paused {
		if next = times.Next(d.Entry.At); !next.IsZero() {
			due = next.Add(times.Delay(s.Name, next))
		}
	}
	_, err = tx.Exec(ctx, h.in(putSQL), tenant, s.Name, d.Entry.Instance, d.Entry.Version, string(plan), paused, d.Entry.At, timeOrNull(next),
		timeOrNull(due))
	return err
}

// requestSQL adds runs. Parameters: tenant, name, revision, runs, now, the maximum.
const requestSQL = `
UPDATE {pawl}.schedule SET revision = $3, due_at = $5, extra = (SELECT json_agg(e) FROM (
	SELECT e FROM json_array_elements(coalesce(extra, '[]')) AS e UNION ALL SELECT e FROM json_array_elements($4::json) AS e) AS runs)
WHERE tenant = $1 AND name = $2 AND coalesce(json_array_length(extra), 0) < $6`

func (h Hook) request(ctx context.Context, tx pgx.Tx, tenant, name string, d *decide.Decision, list []extra) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	done, err := tx.Exec(ctx, h.in(requestSQL), tenant, name, d.Entry.Version, string(text), d.Entry.At, maxExtra)
	if err == nil && done.RowsAffected() == 0 {
		return workflow.Refuse("%d requested runs are not submitted yet; try again when there are fewer", maxExtra)
	}
	return err
}
