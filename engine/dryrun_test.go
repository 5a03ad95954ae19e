package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDryRunPredictsSubmit(t *testing.T) {
	t.Parallel()
	pool := database(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	e := newEngine(t, pool, func(c *engine.Config) { c.Now = func() time.Time { return now } })
	submit(t, e, applied("L-1", 100))
	stale := on("pay", "L-1", "stale", 1, "")
	stale.IfVersion = 7
	forgive := transitions.Command{Workflow: "loan", Transition: "forgive", BusinessKey: "L-1", Key: "forgive", Actor: "ann",
		Roles: []string{"boss"}}
	byID := transitions.Command{Instance: loanID("L-1"), Transition: "pay", Key: "by-id", Payload: []byte(`{"amount":1,"do":""}`)}
	again := applied("L-1", 5)
	again.Key = "again"
	for i, c := range []transitions.Command{
		applied("L-2", 50), again, stale, forgive, byID,
		on("pay", "L-1", "ok", 20, ""), on("pay", "L-1", "too much", 1000, ""), on("book", "L-1", "booked", 9, ""),
		on("pay", "L-2", "to the end", 50, ""), on("pay", "L-2", "after the end", 1, ""),
		on("pay", "L-3", "nobody's", 1, ""), on("pay", "L-1", "malformed", -1, ""),
		{Workflow: "loan", Transition: "fly", Key: "k", BusinessKey: "L-1"}, {Workflow: "gift", Transition: "give", Key: "k"},
		{Instance: uuid.New(), Transition: "pay", Key: "k"},
	} {
		t.Run(fmt.Sprint(i, " ", c.Transition, " ", c.Key), func(t *testing.T) {
			before := rowCounts(t, pool)
			dry, dryErr := e.DryRun(t.Context(), c)
			wantMore(t, pool, before, nil)
			c.Key += "!" // a dry run needs no key and takes none
			unkeyed := c
			unkeyed.Key = ""
			again, err := e.DryRun(t.Context(), unkeyed)
			assert.Truef(t, reflect.DeepEqual(again, dry) && fmt.Sprint(err) == fmt.Sprint(dryErr),
				"without a key: got %+v, %v, want %+v, %v", again, err, dry, dryErr)
			done, err := e.Submit(t.Context(), c)
			require.Truef(t, fmt.Sprint(err) == fmt.Sprint(dryErr) && workflow.CodeOf(err) == workflow.CodeOf(dryErr),
				"Submit: %v; the dry run: %v", err, dryErr)
			if err != nil {
				return
			}
			assert.Truef(t, dry.Position == 0 && !dry.Replayed, "a dry run has position %d, replayed %v", dry.Position, dry.Replayed)
			dry.Position, dry.Body = done.Position, transitions.WithPosition(dry.Body, done.Position)
			if done.Refused() { // is final; that of the dry run is not, and is equal otherwise
				assert.NotContainsf(t, string(dry.Body), "inal", "the dry run's refusal is final: %s", dry.Body)
				done.Body = transitions.ProblemOf(done.Err()).Unkept().JSON()
			}
			assert.Equalf(t, done, dry, "the dry run said %s and \nSubmit answered %s and", dry.Body, done.Body)
		})
	}
}

func TestADryRunDoesNotRunTheUsersSQL(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	dry, err := e.DryRun(t.Context(), on("book", "L-1", "", 10, "panic"))
	assert.Truef(t, err == nil && dry.Status == 200 && strings.Contains(string(dry.Body), `"owed":90`), "got %+v, %v", dry, err)
	wantMore(t, pool, before, nil)
}
