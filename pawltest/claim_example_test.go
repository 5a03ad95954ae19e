package pawltest_test

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

// A claim, as docs/what-a-workflow-can-say.md shows it.

type Claim struct {
	Notes []string `json:"notes,omitempty"`
	Score int      `json:"score"`
}

type Scored struct {
	Score int `json:"score"`
}

const (
	Checking   workflow.State = "checking"
	DocsWanted workflow.State = "docs_wanted"
	DocsOK     workflow.State = "docs_ok"
	Unscored   workflow.State = "unscored"
	Review     workflow.State = "review"
	Cleared    workflow.State = "cleared"
	Suspended  workflow.State = "suspended"
	Deciding   workflow.State = "deciding"
	Settled    workflow.State = "settled"
	Lapsed     workflow.State = "lapsed"
)

var claim = workflow.Define("claim", 1,
	workflow.Start("file", Checking, record("filed")),
	workflow.On("documents", workflow.From(DocsWanted), DocsOK, record("documents")),
	workflow.On("score", workflow.From(Unscored), Review, score).Or(Cleared),
	workflow.On("clear", workflow.From(Review), Cleared, record("cleared")),
	workflow.On("suspend", workflow.From(Checking), Suspended, record("suspended")),
	workflow.On("resume", workflow.From(Suspended), workflow.Last(Checking), record("resumed")),
	workflow.On("lapse", workflow.From(Checking), Lapsed, record("lapsed")).Internal(),
	workflow.Auto("pay", workflow.From(Deciding), Settled, recorded("paid")).Guard("has a low score", lowScore),
	workflow.On("decide", workflow.From(Deciding), Settled, record("decided")).NotBy("clear").Since("resume"),
).
	Regions(Checking,
		workflow.Region("documents", DocsWanted, DocsOK).Done(DocsOK),
		workflow.Region("fraud", Unscored, Review, Cleared).Done(Cleared)).
	Joined(Checking, workflow.All, Deciding, recorded("joined")).
	Final(Settled, Lapsed).
	After("patience", workflow.From(DocsWanted), 30*24*time.Hour, "lapse")

func record(text string) func(*workflow.Call, *Claim, workflow.None) error {
	return func(c *workflow.Call, d *Claim, _ workflow.None) error { return recorded(text)(c, d) }
}

func recorded(text string) func(*workflow.Call, *Claim) error {
	return func(_ *workflow.Call, d *Claim) error {
		d.Notes = append(d.Notes, text)
		return nil
	}
}

func score(c *workflow.Call, d *Claim, p Scored) error {
	d.Score = p.Score
	if p.Score < 10 {
		c.Goto(Cleared)
	}
	return nil
}

func lowScore(_ *workflow.Call, d Claim) error {
	if d.Score >= 10 {
		return workflow.Refuse("the score is %d", d.Score)
	}
	return nil
}

func Example_compositeStates() {
	sim := pawltest.Run(pawltest.Example, claim)
	c := sim.Start("claim", "file", nil)
	fmt.Println(c.State())
	c.Do("suspend", nil)
	fmt.Println(c.State())
	c.Do("resume", nil)
	c.Do("score", Scored{5})
	fmt.Println(c.State())
	c.Do("documents", nil)
	fmt.Println(c.State(), pawltest.Data[Claim](c).Notes)

	late := sim.Start("claim", "file", nil)
	_, err := late.Try("lapse", nil)
	fmt.Println(err)
	sim.Skip(30 * 24 * time.Hour)
	fmt.Println(late.State())

	// Output:
	// checking(docs_wanted,unscored)
	// suspended;checking=docs_wanted,unscored
	// checking(docs_wanted,cleared)
	// settled [filed suspended resumed documents joined paid]
	// illegal_transition: "lapse" is not possible in state "checking(docs_wanted,unscored)"; allowed are: documents, score, suspend
	// lapsed
}
