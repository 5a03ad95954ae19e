package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func tracedPool(t *testing.T, pool *pgxpool.Pool) (*pgxpool.Pool, *pgtest.Queries) {
	t.Helper()
	q := &pgtest.Queries{}
	return poolWith(t, pool, q), q
}

// The pipeline's own statements go past the tracer; the server says when each of
// its sessions began the newest.
func TestAnIdleNodeAsksTheDatabaseOnceASecond(t *testing.T) {
	t.Parallel()
	pool := database(t)
	traced, queries := tracedPool(t, pool)
	e := newEngine(t, traced, with(parcels(func(context.Context, *workflow.Attempt) (track, error) { return track{}, nil })))
	r := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	accepted := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance})
	require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "2"})))
	await.Pass("what was announced is announced; from here on, nothing happens", 1500*time.Millisecond)
	idles(t, pool, queries, 4*time.Second)
}

// idles advances the clock and requires one query per second, and none of the pipeline. A busy machine may still execute earlier work, so
// there are several tries.
func idles(t *testing.T, pool *pgxpool.Pool, queries *pgtest.Queries, quiet time.Duration) {
	t.Helper()
	for range 4 {
		pipeline, settled, begun := newestOfPipeline(t, pool), queries.Count(""), time.Now()
		await.Pass("nothing happens", quiet)
		asked, took, after := queries.List()[settled:], time.Since(begun), newestOfPipeline(t, pool)
		n := len(asked)
		if n > 0 && n <= int(took/time.Second)+1 && after == pipeline {
			return
		}
		t.Logf("%d queries in %s:\n%s\nthe pipeline's sessions before and after:\n%s\n%s", n, took, strings.Join(asked, "\n"), pipeline, after)
	}
	t.Error("it is never idle")
}

func newestOfPipeline(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return query[string](t, pool, `SELECT coalesce(string_agg(application_name || ' ' || query_start, ', ' ORDER BY application_name), '')
		FROM pg_stat_activity
		WHERE datname = current_database() AND (application_name LIKE 'pawl committer%' OR application_name LIKE 'pawl retry lane%')`)
}

func TestAWorkflowIsPausedOnEveryNode(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var nodes []*engine.Engine
	for range 2 {
		nodes = append(nodes, newEngine(t, pool, with(parcels(func(context.Context, *workflow.Attempt) (track, error) { return track{}, nil }))))
	}
	pack := func(e *engine.Engine, key string) error {
		_, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: key})
		return err
	}
	var tries int
	packAnew := func(e *engine.Engine) error {
		tries++
		return pack(e, fmt.Sprint("try ", tries))
	}
	require.NoError(t, pack(nodes[1], "before"))
	require.NoError(t, nodes[0].Admin().PauseWorkflow(t.Context(), "", "parcel", "ann", "a strike"))
	wantCode(t, pack(nodes[0], "here"), workflow.Paused)
	eventually(t, "the other node knows", func() bool { return workflow.CodeOf(packAnew(nodes[1])) == workflow.Paused })
	assert.NoError(t, pack(nodes[1], "before"), "what was done before is not replayed")
	list, err := nodes[1].Admin().PausedWorkflows(t.Context(), "")
	assert.Truef(t, err == nil && len(list) == 1 && list[0].Actor == "ann" && list[0].Reason == "a strike", "paused are %+v, %v", list, err)
	// Of a key that was refused nothing was kept: it can be used again.
	require.NoError(t, nodes[1].Admin().ResumeWorkflow(t.Context(), "", "parcel"))
	eventually(t, "both go on", func() bool { return pack(nodes[0], "here") == nil && packAnew(nodes[1]) == nil })
}

var eventually = await.Eventually
