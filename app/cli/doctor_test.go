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

// Only findings about the database are compared; those about the server vary.
func TestTheDoctorPrintsWhatIsWrongAndWhatToDo(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	if code, _, stderr := run(t.Context(), "migrate", "up", "--database", url); code != 0 {
		t.Fatal(stderr)
	}
	_, err := pool.Exec(t.Context(), "DROP INDEX pawl.command_due")
	require.NoError(t, err)
	code, stdout, stderr := run(t.Context(), "doctor", "--database", url)
	for _, want := range []string{
		"problem  indexes                table command lacks the index command_due: ",
		"                                → CREATE INDEX CONCURRENTLY command_due ON pawl.command USING btree (run_at) WHERE ",
		"warning  retention              no node does retention",
		"ok       connection             database ",
	} {
		assert.Contains(t, stdout, want, "there is no")
	}
	assert.Truef(t, code == flags.ExitBroken && strings.HasPrefix(stderr, "shop: ") && !t.Failed(),
		"exit %d, %s%s", code, stderr, stdout)

	code, stdout, stderr = run(t.Context(), "doctor", "-o", "json", "--database", url)
	var r doctor.Report
	err = json.Unmarshal([]byte(stdout), &r)
	require.Truef(t, err == nil && code == flags.ExitBroken, "exit %d, %v, %s%s", code, err, stderr, stdout)
	assert.Truef(t, slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Check == "indexes" && f.About == "command_due" && f.Severity == doctor.Problem && f.Do != ""
	}) && r.Problems != 0 && r.Schema == "pawl", "%+v", r)
}

func TestTheDoctorTellsOfADatabaseThatIsGone(t *testing.T) {
	code, stdout, stderr := run(t.Context(), "doctor", "--database", "postgres://127.0.0.1:1/x")
	assert.Truef(t, code == flags.ExitBroken && stderr == "shop: 1 problem, 0 warnings, 0 not seen\n" &&
		strings.HasPrefix(stdout, "problem  connection  the database does not answer: "),
		"exit %d, %s%s", code, stdout, stderr)
	for _, args := range []string{"--output yaml", "--timeout 0s", "--schema Pawl"} {
		if code, stdout, stderr := run(t.Context(), append([]string{"doctor"}, strings.Fields(args)...)...); code != 2 || stdout != "" {
			t.Errorf("%s: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
}

func TestTheVerdictOfAReportIsItsExitCode(t *testing.T) {
	for want, r := range map[int]doctor.Report{
		flags.ExitToDo:   {Warnings: 1},
		-flags.ExitToDo:  {Unknown: 1},
		flags.ExitBroken: {Warnings: 1, Problems: 1},
	} {
		e, ok := errors.AsType[*flags.Exit](verdictOf(&r))
		assert.Truef(t, ok && e.Code == max(want, -want), "%+v: %v", r, e)
	}
	assert.NoError(t, verdictOf(&doctor.Report{}))
}
