package pawl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// orders places n orders and cancels them, and returns their ids.
func orders(t *testing.T, url string, n int) []string {
	t.Helper()
	d, err := openDatabase(t.Context(), url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := schema.Migrate(t.Context(), d.pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Pool: d.pool, Workflows: []workflow.Source{order.Workflow(provider.New())}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer e.Stop(t.Context())
	var commands []transitions.Command
	for i := range n {
		commands = append(commands,
			transitions.Command{Workflow: "order", Transition: "place", Key: fmt.Sprint("place-", i),
				Payload: fmt.Appendf(nil, `{"customer":"c","cart":"%d","total":1,"currency":"EUR"}`, i)},
			transitions.Command{Workflow: "order", Transition: "cancel", Key: "cancel", BusinessKey: fmt.Sprint("c:", i),
				Payload: []byte(`{"reason":"out of stock"}`)})
	}
	var ids []string
	for i, r := range e.SubmitMany(t.Context(), commands) {
		if r.Err != nil || r.Receipt.Refused() {
			t.Fatal(i, r.Err, string(r.Receipt.Body))
		}
		if i%2 == 0 {
			ids = append(ids, r.Receipt.Instance.String())
		}
	}
	return ids
}

func tamper(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	tag, err := conn.Exec(t.Context(), sql, args...)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
}

func TestVerifyNamesTheFirstBrokenRow(t *testing.T) {
	url := pgtest.URL(t)
	ids := orders(t, url, 3)
	code, stdout, stderr := run(t.Context(), "verify", "--database", url)
	if code != 0 || stdout != "intact: 6 rows of 3 instances of tenant default\n" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}

	tamper(t, url, `UPDATE pawl.audit SET actor = 'x' WHERE instance = $1 AND version = 2`, ids[1])
	broken := "instance " + ids[1] + ", version 2: the row was changed, or the one before it\n"
	code, stdout, stderr = run(t.Context(), "verify", "--database", url)
	if code != 1 || stdout != "broken: "+broken || stderr != "shop: 1 of 3 chains broken, first "+broken {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr = run(t.Context(), "verify", "--database", url, "--instance", ids[1]); code != 1 || !strings.Contains(stderr, broken) {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, stdout, _ = run(t.Context(), "verify", "--database", url, "--instance", ids[0]); code != 0 || stdout != "intact: 2 rows of 1 instances of tenant default\n" {
		t.Errorf("exit %d, %q", code, stdout)
	}
}

func TestVerifyFindsAGapInTheLog(t *testing.T) {
	url := pgtest.URL(t)
	orders(t, url, 1)
	tamper(t, url, `UPDATE pawl.log SET head = 3`)
	code, stdout, _ := run(t.Context(), "verify", "--database", url)
	if code != 1 || !strings.HasPrefix(stdout, "broken: the log: the log's head is 3") {
		t.Errorf("exit %d, %q", code, stdout)
	}
}

func TestVerifyOfWhatIsNotThereFails(t *testing.T) {
	url := pgtest.URL(t)
	orders(t, url, 1)
	code, _, stderr := run(t.Context(), "verify", "--database", url, "--instance", "00000000-0000-8000-8000-000000000000")
	if code != 1 || !strings.Contains(stderr, "instance_not_found") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	var out bytes.Buffer
	if err := (&verification{out: &out, tenant: "t"}).report(transitions.Verification{}); err != nil || out.String() != "intact: 0 rows of 0 instances of tenant t\n" {
		t.Errorf("an empty tenant: %v, %q", err, out.String())
	}
}
