package workflow_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// snippets are declarations, and what the compiler must say about them.
var snippets = map[string]struct{ code, want string }{
	"good": {code: `
		var _ = workflow.Define("order", 1,
			workflow.Start("place", "placed", place).BusinessKey(func(p Place) string { return p.Cart }),
			workflow.On("pay", workflow.From("placed"), "paid", pay).Guard("open", func(*workflow.Call, Order) error { return nil }),
		).Final("paid").Attr("cart", func(o Order) string { return o.Cart })`},
	"another_data": {want: "does not implement workflow.Part[Order]", code: `
		var _ = workflow.Define[Order]("order", 1,
			workflow.Start("place", "placed", place),
			workflow.On("appeal", workflow.From("placed"), "appealed", func(*workflow.Call, *Fine, workflow.None) error { return nil }),
		)`},
	"another_data_inferred": {want: "does not match inferred type", code: `
		var _ = workflow.Define("order", 1,
			workflow.Start("place", "placed", place),
			workflow.Start("appeal", "placed", func(*workflow.Call, *Fine, workflow.None) error { return nil }),
		)`},
	"data_by_value": {want: "does not match", code: `
		var _ = workflow.Start("place", "placed", func(*workflow.Call, Order, Place) error { return nil })`},
	"another_payload": {want: "cannot use", code: `
		var _ = workflow.Start("place", "placed", place).BusinessKey(func(p Pay) string { return "" })`},
	"guard_of_another_data": {want: "cannot use", code: `
		var _ = workflow.On("pay", workflow.From("placed"), "paid", pay).Guard("open", func(*workflow.Call, Fine) error { return nil })`},
	"guard_with_a_payload": {want: "cannot use", code: `
		var _ = workflow.On("pay", workflow.From("placed"), "paid", pay).Guard("open", func(*workflow.Call, Order, Pay) error { return nil })`},
	"attribute_of_another_data": {want: "cannot use", code: `
		var _ = workflow.Define("order", 1, workflow.Start("place", "placed", place)).Attr("city", func(f Fine) string { return "" })`},
	"good_activity": {code: `
		var _ = workflow.Define("order", 1,
			workflow.Start("place", "placed", place),
			workflow.Do("pay", workflow.From("placed"), "paying", "paid", charge, charged).
				Role("clerk").OrElse("placed", func(*workflow.Call, *Order, workflow.Failure) error { return nil }).
				Undo(func(context.Context, *workflow.Attempt, Order, Pay, *Receipt) error { return nil }),
		).Final("paid").Roles("clerk").At("expiry", workflow.From("placed"), func(Order) time.Time { return time.Time{} }, "pay")`},
	"activity_on_another_data": {want: "does not implement workflow.Part[Fine]", code: `
		var _ = workflow.Define[Fine]("fine", 1, workflow.Do("pay", workflow.From("placed"), "paying", "paid", charge, charged))`},
	"work_with_another_result": {want: "does not match", code: `
		var _ = workflow.Do("pay", workflow.From("placed"), "paying", "paid", charge, func(*workflow.Call, *Order, Pay) error { return nil })`},
	"work_on_data_that_it_could_change": {want: "does not match", code: `
		var _ = workflow.Do("pay", workflow.From("placed"), "paying", "paid",
			func(context.Context, *workflow.Attempt, *Order, Pay) (Receipt, error) { return Receipt{}, nil }, charged)`},
	"undo_of_another_result": {want: "cannot use", code: `
		var _ = workflow.Do("pay", workflow.From("placed"), "paying", "paid", charge, charged).
			Undo(func(context.Context, *workflow.Attempt, Order, Pay, *Pay) error { return nil })`},
	"check_without_a_pointer": {want: "cannot use", code: `
		var _ = workflow.Do("pay", workflow.From("placed"), "paying", "paid", charge, charged).
			Check(func(context.Context, *workflow.Attempt, Order, Pay) (Receipt, error) { return Receipt{}, nil })`},
	"timer_on_another_data": {want: "cannot use", code: `
		var _ = workflow.Define("order", 1, workflow.Start("place", "placed", place)).
			At("expiry", workflow.From("placed"), func(Fine) time.Time { return time.Time{} }, "pay")`},
	"not_a_transition": {want: "does not implement workflow.Part[Order]", code: `
		var _ = workflow.Define[Order]("order", 1, other{})
		type other struct{}`},
}

const preamble = `package snippet

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

type (
	Order   struct{ Cart string }
	Place   struct{ Cart string }
	Pay     struct{ Charge string }
	Receipt struct{ ID string }
	Fine    struct{ City string }
)

func place(*workflow.Call, *Order, Place) error { return nil }
func pay(*workflow.Call, *Order, Pay) error     { return nil }

func charge(context.Context, *workflow.Attempt, Order, Pay) (Receipt, error) { return Receipt{}, nil }
func charged(*workflow.Call, *Order, Receipt) error                          { return nil }

var _ = []any{place, pay, charge, charged, Fine{}, time.Now}
`

// The compiler refuses a transition of another workflow, an action that takes
// another payload, a guard on another type of data.
func TestTheCompilerKeepsWorkflowsApart(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	temporary := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(temporary, "overlay.json")}
	for name, s := range snippets {
		file := filepath.Join(temporary, name+".go")
		require.NoError(t, os.WriteFile(file, []byte(preamble+s.code), 0o600))
		overlay.Replace[filepath.Join(here, "internal", "snippets", name, "snippet.go")] = file
		args = append(args, "./internal/snippets/"+name)
	}
	raw, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(temporary, "overlay.json"), raw, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.Error(t, err, "everything compiles")
	said := byPackage(string(out))
	for name, s := range snippets {
		got, refused := said["github.com/pawlhq/pawl/workflow/internal/snippets/"+name]
		assert.Truef(t, refused == (s.want != "") && strings.Contains(got, s.want),
			"%s: want %q, the compiler says %q", name, s.want, got)
	}
}

// byPackage splits the go command's output at its "# package" lines.
func byPackage(out string) map[string]string {
	said := map[string]string{}
	name := ""
	for line := range strings.Lines(out) {
		if after, ok := strings.CutPrefix(line, "# "); ok {
			name = strings.TrimSpace(after)
			continue
		}
		said[name] += line
	}
	return said
}
