package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/inspect"
)

// atLeast formats a count that may have reached its bound.
func atLeast(n int64, what string) string {
	if n > inspect.MaxCounted {
		return "more than " + several(inspect.MaxCounted, what)
	}
	return several(n, what)
}

// onKeys returns a check on the counts of keys. judge returns a finding, or the zero value.
func onKeys(fine string, judge func(x *exam, k *inspect.Keys) Finding) func(context.Context, *exam) (string, []Finding, error) {
	return func(ctx context.Context, x *exam) (string, []Finding, error) {
		k, err := x.standing(ctx)
		if err != nil {
			return "", nil, err
		}
		return fine, onlyFound([]Finding{judge(x, k)}), nil
	}
}

// overdue returns the age of the oldest entry if it has reached the limit, or else zero.
func overdue(k *inspect.Keys, oldest time.Time, limit time.Duration) time.Duration {
	if age := k.At.Sub(oldest); !oldest.IsZero() && age >= limit {
		return age
	}
	return 0
}

var lookAtInFlight = onKeys("no command is in flight for long", func(x *exam, k *inspect.Keys) (f Finding) {
	if age := overdue(k, k.OldestInFlight, x.limits.inFlight); age > 0 {
		f = warning("", `find it with the query "Oldest in flight" of docs/queries.md; "ops show" has what it waits for`,
			"the oldest command in flight was submitted %s ago", span(age))
	}
	return f
})

var lookAtDue = onKeys("due commands are started", func(x *exam, k *inspect.Keys) (f Finding) {
	if age := overdue(k, k.OldestDue, x.limits.due); age > 0 {
		f = problem("", "run a node with workers that has the workflow; docs/operations.md, Work that does not start",
			"no node starts due commands: %s, the first for %s", atLeast(k.Due, "command"), span(age))
	}
	return f
})

var lookAtStale = onKeys("no expired lease waits for a node", func(x *exam, k *inspect.Keys) (f Finding) {
	if age := overdue(k, k.OldestStale, x.limits.stale); age > 0 {
		f = problem("", "run a node with workers that has the workflow; docs/operations.md, A node that died",
			"leases have expired, and no node takes over: %s, the first %s ago", atLeast(k.Stale, "command"), span(age))
	}
	return f
})

var lookAtLapsed = onKeys("no claim of an SQL caller has expired long ago", func(x *exam, k *inspect.Keys) (f Finding) {
	if age := overdue(k, k.OldestLapsed, x.limits.lapsed); age > 0 {
		f = warning("", "let the program that claimed them run again; docs/operations.md, Expired SQL claims",
			"claimed in SQL and never finished: %s, the first expired %s ago", atLeast(k.Lapsed, "key"), span(age))
	}
	return f
})

var lookAtStuck = onKeys("no command waits for an operator", func(_ *exam, k *inspect.Keys) (f Finding) {
	if k.Stuck > 0 {
		f = problem("", `see "ops stuck", and settle each with "ops resolve", "ops retry" or "ops abandon"`,
			"waiting for an operator: %s", atLeast(k.Stuck, "command"))
	}
	return f
})

var lookAtAttempts = onKeys("few commands have many attempts", func(x *exam, k *inspect.Keys) (f Finding) {
	if k.Attempts > x.limits.attempts {
		f = warning("", `see why they fail, with the query "Many attempts" in docs/queries.md`,
			"tried %d times or more: %s, one of them %s", inspect.ManyAttempts, atLeast(k.Attempts, "command"), several(k.MostTried, "time"))
	}
	return f
})

var lookAtExpired = onKeys("expired keys are removed", func(x *exam, k *inspect.Keys) (f Finding) {
	if age := overdue(k, k.OldestExpired, x.limits.expired); age > 0 {
		f = warning("", `see "ops retention" for its node; docs/operations.md, Retention behind`,
			"expired and not removed: %s and %s, the first for %s", atLeast(k.Expired, "answer"), atLeast(k.Forgotten, "tombstone"), span(age))
	}
	return f
})

var lookAtDeadMessages = onKeys("no message is dead", func(_ *exam, k *inspect.Keys) (f Finding) {
	if k.DeadMessages > 0 {
		f = warning("", `see "ops inbox list"; then "ops inbox retry" or "ops inbox discard"`,
			"not consumed: %s, the first %s ago", atLeast(k.DeadMessages, "message"), span(k.At.Sub(k.OldestDeadMessage)))
	}
	return f
})

func lookAtSinks(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	list, err := x.engine.Admin().Sinks(ctx, "")
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	for i := range list {
		found = append(found, x.judgeSink(&list[i], k.At)...)
	}
	return fmt.Sprintf("none of %s is behind", several(len(list), "sink")), found, nil
}

// judgeSink returns the first reason why a sink does not deliver, and its dead letters.
func (x *exam) judgeSink(s *inspect.SinkInfo, now time.Time) (found []Finding) {
	behind := ""
	if s.Lag > 0 {
		behind = fmt.Sprintf("; not arrived: %s, the first of them %s old", several(s.Lag, "transition"), span(now.Sub(s.Oldest)))
	}
	switch {
	case s.Paused != nil:
		found = append(found, warning(s.Name, dof(`"ops sinks resume %s" when the reason is gone`, s.Name),
			"sink %s is paused since %s by %s%s", s.Name, span(now.Sub(s.Paused.At)), s.Paused.By, behind))
	case s.Node == "" || s.LeaseEnds.Before(now):
		found = append(found, problem(s.Name, dof(`run a node that has this sink, or give it up with "ops sinks forget %s"`, s.Name),
			"no node delivers to sink %s%s", s.Name, behind))
	case s.Stuck > 0:
		found = append(found, problem(s.Name, dof(`see "ops sinks show %s", which has the failure of each tenant`, s.Name),
			"sink %s is blocked for %s%s", s.Name, several(s.Stuck, "tenant"), behind))
	case s.Failures > 0:
		found = append(found, warning(s.Name, "mend the receiver; nothing is lost meanwhile",
			"the receiver of sink %s has failed %s in a row (%s)%s", s.Name, several(s.Failures, "time"),
			strings.Join(strings.Fields(s.Failure), " "), behind))
	case s.Lag > 0 && now.Sub(s.Oldest) >= x.limits.lag:
		found = append(found, warning(s.Name, "docs/operations.md, Growing lag", "sink %s is behind%s", s.Name, behind))
	}
	if s.DeadLetters > 0 {
		found = append(found, warning(s.Name, dof(`see "ops sinks dead %s"; then "ops sinks redrive %[1]s" or "ops sinks skip %[1]s"`, s.Name),
			"sink %s has dead letters: %s", s.Name, several(s.DeadLetters, "event")))
	}
	return found
}

func lookAtRetention(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	s, err := x.engine.Admin().Retention(ctx)
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	if s.Node == "" || s.Until != nil && s.Until.Before(k.At) {
		found = append(found, warning("", "run a node with retention enabled",
			"no node runs retention: expired data stays, and no partitions are created"))
	}
	over, why := 0, ""
	for i := range s.Partitions {
		if p := &s.Partitions[i]; p.Over && p.Held != "" {
			over++
			if why == "" {
				why = fmt.Sprintf("%s for %s", p.Name, p.Held)
			}
		}
	}
	if over > x.limits.held {
		found = append(found, warning("", `see "ops retention"; docs/operations.md, Disk growing`,
			"expired partitions that are still needed: %s, the first is %s", several(over, "partition"), why))
	}
	return fmt.Sprintf("node %s runs it; expired partitions that are still needed: %s", s.Node, several(over, "partition")), found, nil
}

func lookAtPartitions(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	s, err := x.engine.Admin().Retention(ctx)
	if err != nil {
		return "", nil, err
	}
	until := k.At
	for i := range s.Partitions {
		p := &s.Partitions[i]
		if strings.HasPrefix(p.Name, "outbox_") && !p.Detached && !p.From.After(until) && p.To.After(until) {
			until = p.To
		}
	}
	do := dof("SELECT %s.make_partitions(), as the owner of the tables; a node that runs does it by itself", x.schemaOf())
	switch left := until.Sub(k.At); {
	case left <= 0:
		return "", []Finding{problem("outbox", do, "a partition for current events is missing: commands wait to create it, or fail")}, nil
	case left < x.limits.ahead:
		return "", []Finding{warning("outbox", do, "there are partitions only for the events of the next %s", span(left))}, nil
	default:
		return fmt.Sprintf("there are partitions for the events of the next %s", span(left)), nil, nil
	}
}

func lookAtDefinitions(ctx context.Context, x *exam) (string, []Finding, error) {
	list, err := x.engine.Admin().Definitions(ctx)
	if err != nil {
		return "", nil, err
	}
	mine := map[string]bool{}
	for _, d := range list {
		mine[d.Workflow] = mine[d.Workflow] || d.Given
	}
	var found []Finding
	given := 0
	for _, d := range list {
		of := fmt.Sprintf("%s %d", d.Workflow, d.Version)
		switch {
		case d.Changed:
			found = append(found, problem(of, dof("give the changed one version %d, and keep this one", d.Version+1),
				"workflow %s of this program is not what ran here as version %d: no node starts with it", d.Workflow, d.Version))
		case len(d.Lacking)+len(d.Unreadable) > 0:
			found = append(found, problem(of, dof("give the changed one version %d and keep this one, or declare the change with DataChanged",
				d.Version+1), "the database refuses this program: stored data of workflow %s, version %d, has %s", d.Workflow, d.Version, unlike(&d)))
		case d.Given:
			given++
		case mine[d.Workflow]:
			open, err := x.openOf(ctx, d.Workflow, d.Version)
			if err != nil {
				return "", found, err
			}
			if open > 0 {
				found = append(found, warning(of, "add that version to the program, in addition to the newer ones",
					"about %s of workflow %s on version %d, which this program does not have: it cannot change them",
					several(open, "open instance"), d.Workflow, d.Version))
			}
		}
	}
	return fmt.Sprintf("%s ran here, %d of them this program's", several(len(list), "definition"), given), found, nil
}

// unlike lists the members for which a build is refused.
func unlike(d *inspect.Definition) string {
	var parts []string
	if len(d.Lacking) > 0 {
		parts = append(parts, "members that it does not have: "+strings.Join(d.Lacking, ", "))
	}
	if len(d.Unreadable) > 0 {
		parts = append(parts, "members that it may not be able to read: "+strings.Join(d.Unreadable, ", "))
	}
	return strings.Join(parts, "; ")
}

func lookAtMigrations(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	list, err := x.engine.Admin().Migrations(ctx)
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	open := 0
	judged := map[string]bool{} // workflows, with the version that instances left: the newest migration counts
	for i := range list {
		m := &list[i]
		of := fmt.Sprintf("%s %d", m.Workflow, m.From)
		if m.EndedAt.IsZero() {
			open++
			found = append(found, x.judgeMigration(m, k.At)...)
		}
		if m.Rejected > 0 && !judged[of] {
			left, err := x.openOf(ctx, m.Workflow, m.From)
			if err != nil {
				return "", found, err
			}
			if left > 0 {
				found = append(found, warning(aboutMigration(m),
					`see the reasons in "ops migrations -o json"; change the plan and migrate again, or handle each instance`,
					"not migrated from version %d of workflow %s to %d: %s; about %s of version %d", m.From, m.Workflow, m.To,
					several(m.Rejected, "instance"), several(left, "open instance"), m.From))
			}
		}
		judged[of] = true
	}
	return fmt.Sprintf("%s running, none delayed", several(open, "migration")), found, nil
}

func aboutMigration(m *inspect.Migration) string { return fmt.Sprint(m.ID) }

// judgeMigration returns the first reason why a migration does not progress.
func (x *exam) judgeMigration(m *inspect.Migration, now time.Time) []Finding {
	what := fmt.Sprintf("the migration of workflow %s from version %d to %d, with about %s left,",
		m.Workflow, m.From, m.To, several(m.Left(), "instance"))
	switch late, age := now.Sub(m.Next), now.Sub(m.CreatedAt); {
	case late >= x.limits.stale:
		return []Finding{problem(aboutMigration(m),
			dof("run a node that has both versions and the plan, or end it with \"ops stop-migration %d\"", m.ID),
			"%s has no node since %s", what, span(late))}
	case m.Held != "":
		return []Finding{warning(aboutMigration(m), "docs/operations.md, Migration held up", "%s waits: %s", what, m.Held)}
	case age >= x.limits.migration:
		return []Finding{warning(aboutMigration(m), "docs/operations.md, Migration held up", "%s was requested %s ago", what, span(age))}
	}
	return nil
}

// openOf estimates the number of open instances of a version.
func (x *exam) openOf(ctx context.Context, workflow string, version int) (int64, error) {
	open := true
	c, err := x.engine.Read().Counts(ctx, inspect.CountFilter{Workflow: workflow, Definition: version, Open: &open})
	return c.Total, err
}
