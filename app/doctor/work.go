package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/inspect"
)

// atLeast is a number of things that was counted up to a bound, and says so where it was.
func atLeast(n int64, what string) string {
	if n > inspect.MaxCounted {
		return "more than " + several(inspect.MaxCounted, what)
	}
	return several(n, what)
}

func lookAtInFlight(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	age := k.At.Sub(k.OldestInFlight)
	switch {
	case k.OldestInFlight.IsZero():
		return "no command is in flight", nil, nil
	case age < x.limits.inFlight:
		return fmt.Sprintf("the oldest command in flight is %s old", span(age)), nil, nil
	}
	return "", []Finding{warning("", `find it with the query "Oldest in flight" of docs/queries.md; "ops show" has what it waits for`,
		"the oldest command in flight was asked %s ago", span(age))}, nil
}

func lookAtDue(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.OldestDue.IsZero() || k.At.Sub(k.OldestDue) < x.limits.due {
		return "what is due is begun", nil, err
	}
	return "", []Finding{problem("", "run a node with workers that has the workflow; docs/operations.md, Work that does not start",
		"no node executes what is due: %s, the first since %s", atLeast(k.Due, "command"), span(k.At.Sub(k.OldestDue)))}, nil
}

func lookAtStale(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.OldestStale.IsZero() || k.At.Sub(k.OldestStale) < x.limits.stale {
		return "no lease has run out without being taken over", nil, err
	}
	return "", []Finding{problem("", "run a node with workers that has the workflow; docs/operations.md, A node that died",
		"leases have expired, and no node takes over: %s, the first %s ago", atLeast(k.Stale, "command"),
		span(k.At.Sub(k.OldestStale)))}, nil
}

func lookAtLapsed(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.OldestLapsed.IsZero() || k.At.Sub(k.OldestLapsed) < x.limits.lapsed {
		return "no caller in SQL has left a claim for long", nil, err
	}
	return "", []Finding{warning("", "let the program that claimed them run again; docs/operations.md, Expired SQL claims",
		"claimed in SQL and never ended: %s, the first ran out %s ago", atLeast(k.Lapsed, "key"), span(k.At.Sub(k.OldestLapsed)))}, nil
}

func lookAtStuck(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.Stuck == 0 {
		return "no command waits for an operator", nil, err
	}
	return "", []Finding{problem("", `see "ops stuck", and settle each with "ops resolve", "ops retry" or "ops abandon"`,
		"an operator has to see to %s", atLeast(k.Stuck, "command"))}, nil
}

func lookAtAttempts(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.Attempts <= x.limits.attempts {
		return "few commands were tried often", nil, err
	}
	return "", []Finding{warning("", `see why they fail, with the query "Many attempts" in docs/queries.md`,
		"tried %d times or more: %s, one of them %s", inspect.ManyAttempts, atLeast(k.Attempts, "command"), several(k.MostTried, "time"))}, nil
}

func lookAtExpired(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.OldestExpired.IsZero() || k.At.Sub(k.OldestExpired) < x.limits.expired {
		return "what has expired is removed", nil, err
	}
	return "", []Finding{warning("", `see "ops retention" for who does it; docs/operations.md, Retention behind`,
		"past their time: %s and %s, the first since %s", atLeast(k.Expired, "answer"), atLeast(k.Forgotten, "tombstone"),
		span(k.At.Sub(k.OldestExpired)))}, nil
}

func lookAtDeadMessages(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil || k.DeadMessages == 0 {
		return "every message was consumed", nil, err
	}
	return "", []Finding{warning("", `see "ops inbox list"; then "ops inbox retry" or "ops inbox discard"`,
		"not consumed: %s, the first %s ago", atLeast(k.DeadMessages, "message"), span(k.At.Sub(k.OldestDeadMessage)))}, nil
}

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

// judgeSink says what is wrong with a sink: of what holds it up, the first.
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
			"sink %s has given up %s", s.Name, several(s.DeadLetters, "event")))
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
		found = append(found, warning("", "run a node; one of them does it for all, but those that are told not to",
			"no node does retention: what has expired stays, and no partitions are made"))
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
			"past their age and kept: %s, the first is %s", several(over, "partition"), why))
	}
	return fmt.Sprintf("node %s does it; past their age and kept: %s", s.Node, several(over, "partition")), found, nil
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
		return "", []Finding{warning("outbox", do, "there are partitions for the events of the next %s alone", span(left))}, nil
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
				d.Version+1), "this program is refused: of workflow %s version %d is stored %s", d.Workflow, d.Version, unlike(&d)))
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

// unlike says which members a build is refused for.
func unlike(d *inspect.Definition) string {
	var parts []string
	if len(d.Lacking) > 0 {
		parts = append(parts, "what its data does not have: "+strings.Join(d.Lacking, ", "))
	}
	if len(d.Unreadable) > 0 {
		parts = append(parts, "what it may not be able to read: "+strings.Join(d.Unreadable, ", "))
	}
	return strings.Join(parts, "; ")
}
