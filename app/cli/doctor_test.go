package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/doctor"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// What a server has is not for this test to say. What a database has is.
func TestTheDoctorPrintsWhatIsWrongAndWhatToDo(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	if code, _, stderr := run(t.Context(), "migrate", "up", "--database", url); code != 0 {
		t.Fatal(stderr)
	}
	if _, err := pool.Exec(t.Context(), "DROP INDEX pawl.command_due"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t.Context(), "doctor", "--database", url)
	for _, want := range []string{
		"problem  indexes                table command lacks the index command_due: ",
		"                                → CREATE INDEX CONCURRENTLY command_due ON pawl.command USING btree (run_at) WHERE ",
		"warning  retention              no node does retention",
		"ok       connection             database ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if code != flags.ExitBroken || !strings.HasPrefix(stderr, "shop: ") || t.Failed() {
		t.Errorf("exit %d, %s%s", code, stderr, stdout)
	}

	code, stdout, stderr = run(t.Context(), "doctor", "-o", "json", "--database", url)
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != flags.ExitBroken {
		t.Fatalf("exit %d, %v, %s%s", code, err, stderr, stdout)
	}
	if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Check == "indexes" && f.About == "command_due" && f.Severity == doctor.Problem && f.Do != ""
	}) || r.Problems == 0 || r.Schema != "pawl" {
		t.Errorf("%+v", r)
	}
}

func TestTheDoctorTellsOfADatabaseThatIsGone(t *testing.T) {
	code, stdout, stderr := run(t.Context(), "doctor", "--database", "postgres://127.0.0.1:1/x")
	if code != flags.ExitBroken || stderr != "shop: 1 problem, 0 warnings, 0 not seen\n" ||
		!strings.HasPrefix(stdout, "problem  connection  the database does not answer: ") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
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
		if e, ok := errors.AsType[*flags.Exit](verdictOf(&r)); !ok || e.Code != max(want, -want) {
			t.Errorf("%+v: %v", r, e)
		}
	}
	if err := verdictOf(&doctor.Report{}); err != nil {
		t.Error(err)
	}
}
