package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inspect"
)

func checkBegin(s *session) error {
	if _, err := version(s.args[1]); err != nil && s.args[1] != "newest" {
		return usage.Errorf("%q is neither a version from 1 on nor \"newest\"", s.args[1])
	}
	return nil
}

func begin(ctx context.Context, s *session) error {
	done := struct {
		Workflow string `json:"workflow"`
		Version  int    `json:"version"`         // 0: the newest
		Begins   int    `json:"begins,omitzero"` // the version that it is now, 0 if none has run yet
	}{Workflow: s.args[0]}
	r := flags.Request{Method: http.MethodDelete, Path: s.path("v1/ops/begins/{0}")}
	if v, err := version(s.args[1]); err == nil {
		done.Version, done.Begins = v, v
		r.Method, r.Body = http.MethodPut, api.Beginning{Version: v}
	}
	if _, err := s.api.Call(ctx, r); err != nil {
		return err
	}
	if done.Version > 0 {
		return s.report(done, "%s: new instances begin with version %d", done.Workflow, done.Version)
	}
	versions, err := call[api.VersionList](ctx, s, flags.Request{Path: s.path("v1/ops/versions")})
	if err != nil {
		return err
	}
	now := ""
	for _, v := range versions.Versions {
		if v.Workflow == done.Workflow && v.Begins {
			done.Begins, now = v.Version, fmt.Sprintf(", now %d", v.Version)
		}
	}
	return s.report(done, "%s: new instances begin with the newest version that a node knows%s", done.Workflow, now)
}

func versionRow(v *inspect.WorkflowVersion) []string {
	var states []string
	for _, s := range v.States {
		states = append(states, fmt.Sprint(s.State, " ", output.Count(s.Count, !s.Exact)))
	}
	begins := ""
	switch {
	case v.Said:
		begins = "new ones, as set"
	case v.Begins:
		begins = "new ones"
	}
	return []string{v.Workflow, fmt.Sprint(v.Version), output.OrNone(begins), output.Count(v.Open, !v.Exact),
		output.OrNone(strings.Join(states, ", ")), output.OrNone(strings.Join(v.Nodes, ", ")), output.OrNone(strings.Join(v.NodesWithout, ", "))}
}

func checkMigrate(s *session) error {
	for _, text := range s.args[1:] {
		if _, err := version(text); err != nil {
			return err
		}
	}
	return nil
}

func migrateInstances(ctx context.Context, s *session) error {
	from, _ := version(s.args[1])
	to, _ := version(s.args[2])
	rate, _ := s.Flags().GetInt64("rate")
	r := flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/migrations"),
		Body: api.NewMigration{Workflow: s.args[0], From: from, To: to, PerSecond: int(rate), Reason: s.text("reason")}}
	if s.enabled("dry-run") {
		r.Query = url.Values{"dry_run": {"true"}}
		p, err := call[inspect.MigrationPreview](ctx, s, r)
		if err != nil {
			return err
		}
		return s.print(&p, func(w io.Writer) error { return printPreview(w, &p) })
	}
	m, err := call[inspect.Migration](ctx, s, r)
	if err == nil {
		err = s.warnOfNoNode(ctx, &m)
	}
	if err == nil && !s.enabled("background") {
		err = s.awaitMigration(ctx, &m)
	}
	if err != nil {
		return err
	}
	return s.print(&m, func(w io.Writer) error { return printMigration(w, &m) })
}

// warnOfNoNode prints a warning if no node serves that could execute the migration.
func (s *session) warnOfNoNode(ctx context.Context, m *inspect.Migration) error {
	list, err := call[api.VersionList](ctx, s, flags.Request{Path: s.path("v1/ops/versions")})
	if err != nil {
		return err
	}
	known := map[string]int{} // number of the two versions by node
	for _, v := range list.Versions {
		if v.Workflow != m.Workflow || v.Version != m.From && v.Version != m.To {
			continue
		}
		for _, node := range v.Nodes {
			if known[node]++; known[node] == 2 {
				return nil
			}
		}
	}
	s.PrintErrf("migration %d waits: no node serves that knows both versions; it continues when one does\n", m.ID)
	return nil
}

// pollInterval is the time between requests for the progress of a migration.
const pollInterval = 500 * time.Millisecond

// awaitMigration shows the progress of a migration until its end.
func (s *session) awaitMigration(ctx context.Context, m *inspect.Migration) (err error) {
	meter := progress.New(s.ErrOrStderr(), "migrate "+m.Workflow, "instances", m.Expected)
	defer meter.Stop()
	held := ""
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for m.EndedAt.IsZero() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		r := flags.Request{Path: []string{"v1", "ops", "migrations", strconv.FormatInt(m.ID, 10)}}
		if *m, err = call[inspect.Migration](ctx, s, r); err != nil {
			return err
		}
		meter.Set(m.Migrated + m.Skipped + m.Rejected)
		if m.Held != "" && m.Held != held {
			s.PrintErrf("%d wait: %s\n", m.Left(), m.Held)
			held = m.Held
		}
	}
	return nil
}

func checkStopMigration(s *session) error {
	if id, err := strconv.ParseInt(s.args[0], 10, 64); err != nil || id < 1 {
		return usage.Errorf("%q is not the number of a migration", s.args[0])
	}
	return nil
}

func stopMigration(ctx context.Context, s *session) error {
	m, err := call[inspect.Migration](ctx, s, flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/migrations/{0}/stop"),
		Body: reason{s.text("reason")}})
	if err != nil {
		return err
	}
	return s.print(&m, func(w io.Writer) error { return printMigration(w, &m) })
}

func printPreview(w io.Writer, p *inspect.MigrationPreview) error {
	header := []string{"state", "goes on in", ">instances", ">migrated", ">wait", ">rejected", ">overdue"}
	err := output.Table(w, header, p.States, func(s *inspect.MigrationState) []string {
		return []string{string(s.State), output.OrNone(string(s.To)), fmt.Sprint(s.Count), fmt.Sprint(s.Migrated), fmt.Sprint(s.Waiting),
			fmt.Sprint(s.Rejected), fmt.Sprint(s.Overdue)}
	})
	if err == nil && len(p.NodesWithout) > 0 {
		_, err = fmt.Fprintf(w, "\nnothing is migrated: these nodes serve and do not know version %d: %s\n", p.To,
			strings.Join(p.NodesWithout, ", "))
	}
	if err != nil {
		return err
	}
	return printRefusals(w, p.Refusals)
}

func printMigration(w io.Writer, m *inspect.Migration) error {
	lines := [][2]string{{"migration", fmt.Sprintf("%d of %s, version %d to version %d", m.ID, m.Workflow, m.From, m.To)},
		{"state", migrationState(m)},
		{"migrated", fmt.Sprint(m.Migrated)}, {"skipped", fmt.Sprint(m.Skipped)}, {"rejected", fmt.Sprint(m.Rejected)}}
	if err := output.Lines(w, 10, lines); err != nil {
		return err
	}
	return printRefusals(w, m.Refusals)
}

func migrationRow(m *inspect.Migration) []string {
	left := max(m.Expected-m.Migrated-m.Skipped-m.Rejected, m.Waiting, 0)
	if !m.EndedAt.IsZero() && m.StoppedAt.IsZero() {
		left = m.Waiting // it is complete: Expected was an estimate
	}
	return []string{fmt.Sprint(m.ID), output.Moment(m.CreatedAt), m.Workflow, fmt.Sprint(m.From), fmt.Sprint(m.To), fmt.Sprint(m.Migrated),
		fmt.Sprint(m.Skipped), fmt.Sprint(m.Rejected), fmt.Sprint(left), migrationState(m)}
}

func migrationState(m *inspect.Migration) string {
	switch {
	case !m.StoppedAt.IsZero() && m.StopReason != "":
		return "stopped by " + m.StoppedBy + ": " + m.StopReason
	case !m.StoppedAt.IsZero():
		return "stopped by " + m.StoppedBy
	case !m.EndedAt.IsZero() && m.Held != "":
		return "ended: " + m.Held
	case !m.EndedAt.IsZero():
		return "ended"
	case m.Held != "":
		return "held: " + m.Held
	}
	return "under way"
}

func printRefusals(w io.Writer, list []inspect.MigrationRefusal) error {
	header := []string{"state", ">instances", "one of them", "reason"}
	return output.Part(w, "rejected", false, header, list, func(r *inspect.MigrationRefusal) []string {
		reason, one := r.Reason, r.Instance.String()
		if reason == "" {
			reason, one = "other reasons", ""
		}
		return []string{output.OrNone(string(r.State)), fmt.Sprint(r.Count), output.OrNone(one), reason}
	})
}
