package workflow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

type bill struct {
	Sum int `json:"sum"`
}

type billing struct {
	Amount int    `json:"amount" validate:"min=1"`
	Note   string `json:"note,omitempty"`
}

type billingInText struct {
	Amount string `json:"amount"`
}

func billed[P any](*workflow.Call, *bill, P) error { return nil }

func asked[P any](context.Context, *workflow.Attempt, bill, P) (int, error) { return 0, nil }

func answered(*workflow.Call, *bill, int) error { return nil }

func bills(change func(d *workflow.Definition[bill]), parts ...workflow.Part[bill]) *workflow.Definition[bill] {
	d := workflow.Define("bill", 1, append([]workflow.Part[bill]{
		workflow.Start("open", "opened", billed[billing]),
		workflow.On("remind", workflow.From("opened"), workflow.Stay, billed[workflow.None]),
	}, parts...)...).Final("paid").Roles("clerk", "boss")
	if change == nil {
		return d.After("due", workflow.From("opened"), time.Hour, "remind")
	}
	change(d)
	return d
}

func payPart(options func(*workflow.Activity[bill, workflow.None, int])) workflow.Part[bill] {
	a := workflow.Do("pay", workflow.From("opened"), "paying", "paid", asked[workflow.None], answered).
		OrElse("opened", func(*workflow.Call, *bill, workflow.Failure) error { return nil })
	if options != nil {
		options(a)
	}
	return a
}

func TestDifferences(t *testing.T) {
	stored, err := bills(nil, payPart(nil)).Build()
	require.NoError(t, err)
	text, err := json.Marshal(stored.Describe())
	require.NoError(t, err)
	timer := func(d *workflow.Definition[bill]) { d.After("due", workflow.From("opened"), 2*time.Hour, "remind") }
	for name, c := range map[string]struct {
		now  *workflow.Definition[bill]
		want []string
	}{
		"nothing":      {bills(nil, payPart(nil)), nil},
		"an attribute": {bills(nil, payPart(nil)).Attr("sum", func(bill) string { return "" }), nil},
		"a timer's time": {bills(timer, payPart(nil)),
			[]string{`timer "due": after was "1h0m0s", is "2h0m0s"`}},
		"a timer less": {bills(func(*workflow.Definition[bill]) {}, payPart(nil)), []string{`timer "due" is gone`}},
		"a timer more": {bills(nil, payPart(nil)).After("late", workflow.From("opened"), time.Hour, "remind"), []string{`timer "late" is new`}},
		"a transition": {bills(nil, payPart(nil), workflow.On("drop", workflow.From("opened"), "paid", billed[workflow.None])),
			[]string{`transition "drop" is new`}},
		"a state": {bills(nil, payPart(nil), workflow.On("drop", workflow.From("opened"), "dropped", billed[workflow.None])).Final("dropped"),
			[]string{`state "dropped" is new`, `transition "drop" is new`}},
		"a role": {bills(nil, payPart(nil)).Roles("auditor"), []string{`roles was ["clerk","boss"], is ["clerk","boss","auditor"]`}},
		"an activity's retries": {bills(nil, payPart(func(a *workflow.Activity[bill, workflow.None, int]) { a.Retry(workflow.Retry{Attempts: 3}) })),
			[]string{`transition "pay": activity/retry/attempts was 10, is 3`}},
		"an activity's timeout": {bills(nil, payPart(func(a *workflow.Activity[bill, workflow.None, int]) { a.Timeout(2 * time.Minute) })),
			[]string{`transition "pay": activity/timeout was "`}},
		"who may": {bills(nil, payPart(func(a *workflow.Activity[bill, workflow.None, int]) { a.Role("boss") })),
			[]string{`transition "pay": roles is new: ["boss"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := c.now.Build()
			require.NoError(t, err)
			got, err := w.Differences(text)
			assert.Truef(t, err == nil && (w.Hash == stored.Hash) == (len(c.want) == 0),
				"%q, %v, the same hash: %t", got, err, w.Hash == stored.Hash)
			for _, want := range c.want {
				assert.Truef(t, slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }),
					"%q has no line %q", got, want)
			}
			assert.Falsef(t, len(c.want) == 0 && len(got) > 0, "%q", got)
		})
	}
	_, err = stored.Differences([]byte("{"))
	assert.Error(t, err, "half a description is compared")
}

func TestDifferences_Payload(t *testing.T) {
	build := func(start workflow.Part[bill]) *workflow.Workflow {
		w, err := workflow.Define("bill", 1, start).Final("opened").Build()
		require.NoError(t, err)
		return w
	}
	text, err := json.Marshal(build(workflow.Start("open", "opened", billed[billing])).Describe())
	require.NoError(t, err)
	got, err := build(workflow.Start("open", "opened", billed[billingInText])).Differences(text)
	require.NoError(t, err)
	for _, want := range []string{`transition "open": payload/amount/type was "integer", is ["string"`, `transition "open": payload/note is gone`} {
		assert.Truef(t, slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }),
			"%q has no line %q", got, want)
	}
}
