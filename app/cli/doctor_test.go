package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/doctor"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// Findings about the server vary and are not compared.
func TestDoctorPrintsFindings(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	code, _, stderr := run(t.Context(), "migrate", "up", "--database", url)
	require.Equal(t, 0, code, stderr)
	_, err := pool.Exec(t.Context(), "DROP INDEX pawl.command_due")
	require.NoError(t, err)
	code, stdout, stderr := run(t.Context(), "doctor", "--database", url)
	assert.Equal(t, flags.ExitBroken, code, stderr)
	for _, want := range []string{
		"problem  indexes                table command lacks the index command_due, so queries read the whole table",
		"                                → CREATE INDEX CONCURRENTLY command_due ON pawl.command USING btree (run_at) WHERE ",
		"warning  retention              no node runs retention",
		"ok       connection             database ",
	} {
		assert.Contains(t, stdout, want)
	}
	code, stdout, stderr = run(t.Context(), "doctor", "-o", "json", "--database", url)
	assert.Equal(t, flags.ExitBroken, code, stderr)
	var r doctor.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), stdout)
	assert.Equal(t, "pawl", r.Schema)
	assert.NotZero(t, r.Problems)
	assert.True(t, slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Check == "indexes" && f.About == "command_due" && f.Severity == doctor.Problem && f.Do != ""
	}), stdout)
}

func TestDoctor_DatabaseDown(t *testing.T) {
	code, stdout, stderr := run(t.Context(), "doctor", "--database", "postgres://127.0.0.1:1/x")
	assert.Equal(t, flags.ExitBroken, code)
	assert.Equal(t, "shop: 1 problem, 0 warnings, 0 not seen\n", stderr)
	assert.Regexp(t, "^problem  connection  the database does not answer: ", stdout)
	for _, args := range []string{"--output yaml", "--timeout 0s", "--schema Pawl"} {
		code, stdout, _ := run(t.Context(), strings.Fields("doctor "+args)...)
		assert.Equal(t, flags.ExitUsage, code, args)
		assert.Empty(t, stdout, args)
	}
}

func TestDoctorExitCodes(t *testing.T) {
	for _, c := range []struct {
		report doctor.Report
		code   int
	}{
		{doctor.Report{Warnings: 1}, flags.ExitToDo}, {doctor.Report{Unknown: 1}, flags.ExitToDo},
		{doctor.Report{Warnings: 1, Problems: 1}, flags.ExitBroken},
	} {
		e, _ := errors.AsType[*flags.Exit](verdictOf(&c.report))
		require.NotNil(t, e)
		assert.Equal(t, c.code, e.Code)
	}
	assert.NoError(t, verdictOf(&doctor.Report{}))
}
