package decide

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of these tests: an expense claim.
const (
	open     workflow.State = "open"
	approved workflow.State = "approved"
	rejected workflow.State = "rejected"
	paid     workflow.State = "paid"
	dropped  workflow.State = "dropped"
)

type expense struct {
	Filer  string `json:"filer"`
	Number string `json:"number"`
	Total  int64  `json:"total"`
	Lines  []int  `json:"lines,omitempty"`
}

type filing struct {
	Number string `json:"number" validate:"required"`
	Total  int64  `json:"total" validate:"min=0"`
}

type line struct {
	Amounts []int  `json:"amounts"`
	Do      string `json:"do"` // what else the action shall do
}

// errSpent is one value that the workflow returns again and again.
var errSpent = workflow.Refuse("the budget is spent")

func file(c *workflow.Call, d *expense, p filing) error {
	d.Filer, d.Number, d.Total = c.Actor(), p.Number, p.Total
	c.Because("filed " + p.Number)
	return nil
}

func add(c *workflow.Call, d *expense, p line) error {
	for _, n := range p.Amounts {
		d.Total += int64(n)
		d.Lines = append(d.Lines, n)
	}
	switch p.Do {
	case "refuse":
		return workflow.Refuse("line %d is not allowed", len(d.Lines))
	case "refuse always alike":
		return errSpent
	case "fail plainly":
		return errors.New("no receipt attached")
	case "panic":
		panic("secret of the house: " + d.Number)
	case "emit":
		c.Emit("expense.grown", map[string]int64{"total": d.Total})
		c.Emit("expense.audit", nil)
	case "emit its own":
		c.Emit("expense.add", nil)
	case "emit twice":
		c.Emit("expense.grown", 1)
		c.Emit("expense.grown", 2)
	case "return":
		c.Return(map[string]int64{"total": d.Total})
	case "stray":
		c.Goto("nowhere")
	case "change the payload":
		p.Amounts[0] = 999
	}
	return nil
}

func decide(c *workflow.Call, d *expense, p struct {
	Verdict string `json:"verdict" validate:"oneof=yes no wait"`
}) error {
	switch p.Verdict {
	case "no":
		c.Goto(rejected)
	case "wait":
		c.Goto(workflow.Stay)
	}
	return nil
}

func nothing(*workflow.Call, *expense, workflow.None) error { return nil }

func hasTotal(_ *workflow.Call, d expense) error {
	if d.Total == 0 {
		return workflow.Refuse("there is nothing to decide")
	}
	return nil
}

func definition(version int, more ...workflow.Part[expense]) *workflow.Definition[expense] {
	parts := []workflow.Part[expense]{
		workflow.Start("file", open, file).BusinessKey(func(p filing) string { return p.Number }),
		workflow.Start("register", open, file).BusinessKey(func(p filing) string { return p.Number }).RefuseExisting(),
		workflow.Start("open-house", open, nothing).Role("boss"),
		workflow.Start("draft", open, nothing),
		workflow.On("add", workflow.From(open, rejected), workflow.Stay, add),
		workflow.On("decide", workflow.From(open), approved, decide).Or(rejected, workflow.Stay).
			Role("boss").NotBy("file", "add").Guard("there is a total", hasTotal),
		workflow.On("pay", workflow.From(approved), paid, nothing).Role("cashier", "boss").NotBy("decide"),
		workflow.On("drop", workflow.From(open), dropped, nothing).NotBy("file"),
		workflow.On("drop", workflow.From(approved, rejected), dropped, nothing).Role("boss"),
	}
	return workflow.Define("expense", version, append(parts, more...)...).
		Final(paid, dropped).Roles("boss", "cashier").Attr("filer", func(d expense) string { return d.Filer })
}

func built(t testing.TB, s workflow.Source) *workflow.Workflow {
	t.Helper()
	w, err := s.Build()
	require.NoError(t, err)
	return w
}

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	madeUp = uuid.MustParse("01936b0e-0000-7000-8000-000000000001")
)

func fixedID() uuid.UUID { return madeUp }

// prepared makes a command of the expense workflow ready.
func prepared(t testing.TB, w *workflow.Workflow, c transitions.Command) *Prepared {
	t.Helper()
	if c.Key == "" {
		c.Key = "k-1"
	}
	if c.Workflow == "" {
		c.Workflow = "expense"
	}
	p, err := Prepare(c, w, fixedID)
	require.NoError(t, err, c.Transition)
	return p
}

// expenseIn is an instance that was filed by ann with a total.
func expenseIn(s workflow.State, version int64, total string) *transitions.Instance {
	return &transitions.Instance{
		Tenant: "default", ID: transitions.InstanceID("default", "expense", "E-1"), Workflow: "expense", Definition: 1, BusinessKey: "E-1",
		State: s, Version: version, Data: []byte(`{"filer":"ann","number":"E-1","total":` + total + `}`),
		Attributes: map[string]string{"filer": "ann"}, Actors: map[string][]string{"file": {"ann"}},
		Open: s != paid && s != dropped, CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon.Add(-time.Minute),
	}
}

// onE1 is a command on that instance.
func onE1(transition, payload, actor string, roles ...string) transitions.Command {
	return transitions.Command{Transition: transition, BusinessKey: "E-1", Payload: []byte(payload), Actor: actor, Roles: roles}
}

func clone(i *transitions.Instance) *transitions.Instance {
	c := *i
	c.Data = slices.Clone(i.Data)
	c.Attributes, c.Actors = maps.Clone(i.Attributes), maps.Clone(i.Actors)
	for k, v := range c.Actors {
		c.Actors[k] = slices.Clone(v)
	}
	c.Links.Effects = slices.Clone(i.Links.Effects)
	if i.Links.InFlight != nil {
		ref := *i.Links.InFlight
		c.Links.InFlight = &ref
	}
	return &c
}

func wantCode(t testing.TB, err error, want workflow.Code) {
	t.Helper()
	assert.Equal(t, want, workflow.CodeOf(err), err)
}

// workflowNamed is a workflow of another name with the transition add.
func workflowNamed(t testing.TB, name string) *workflow.Workflow {
	t.Helper()
	return built(t, workflow.Define(name, 1,
		workflow.Start("draft", open, nothing),
		workflow.On("add", workflow.From(open), workflow.Stay, add),
		workflow.On("drop", workflow.From(open), dropped, nothing),
	).Final(dropped))
}
