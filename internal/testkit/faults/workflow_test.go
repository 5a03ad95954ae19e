package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// tally is the data of the workflow that most tests use: something that counts.
type tally struct {
	N   int    `json:"n"`
	Tag string `json:"tag,omitempty"`
}

type open struct {
	Name string `json:"name" validate:"required"`
}

type add struct {
	By int `json:"by"`
}

type tag struct {
	Tag string `json:"tag"`
}

// write says what the transition's own SQL shall do.
type write struct {
	What string `json:"what"`
}

// counterWith is the workflow "counter", version 1. gate is called by the
// transition "wait", in the middle of its decision.
func counterWith(gate func()) workflow.Source {
	live := workflow.From("live")
	return workflow.Define("counter", 1,
		workflow.Start("open", "live", func(_ *workflow.Call, d *tally, _ open) error { return nil }).
			BusinessKey(func(p open) string { return p.Name }),
		workflow.Start("make", "live", func(_ *workflow.Call, d *tally, _ workflow.None) error { return nil }),
		workflow.On("add", live, workflow.Stay, func(_ *workflow.Call, d *tally, p add) error {
			if p.By < 0 {
				return workflow.Refuse("only up")
			}
			d.N += p.By
			return nil
		}),
		workflow.On("announce", live, workflow.Stay, func(c *workflow.Call, d *tally, p add) error {
			d.N += p.By
			c.Emit("counter.grown", d)
			return nil
		}),
		// The tag is an attribute, and an attribute is jsonb.
		workflow.On("tag", live, workflow.Stay, func(_ *workflow.Call, d *tally, p tag) error {
			d.Tag = p.Tag
			if p.Tag == "nul" {
				d.Tag = "a\x00b"
			}
			return nil
		}),
		workflow.On("wait", live, workflow.Stay, func(_ *workflow.Call, d *tally, _ workflow.None) error {
			gate()
			d.N++
			return nil
		}),
		engine.InTx(workflow.On("write", live, workflow.Stay, func(_ *workflow.Call, d *tally, _ write) error {
			d.N++
			return nil
		}), ledger),
		workflow.On("end", live, "done", func(_ *workflow.Call, _ *tally, _ workflow.None) error { return nil }),
	).Final("done").Attr("tag", func(d tally) string {
		if d.Tag == "bytes" {
			return "\xff"
		}
		return d.Tag
	})
}

// counter is the workflow without a gate.
var counter = counterWith(func() {})

// gated returns the workflow with a gate that stays closed until open is called. entered is closed by the first "wait".
func gated() (w workflow.Source, entered <-chan struct{}, open func()) {
	reached, gate := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(reached) })
	return counterWith(func() { enter(); <-gate }), reached, func() { close(gate) }
}

const ledgerTable = `CREATE TABLE ledger (what text PRIMARY KEY CHECK (what <> 'forbidden'))`

var errLedger = errors.New("the ledger is closed")

// ledger is the SQL of the transition "write".
func ledger(ctx context.Context, tx pgx.Tx, _ tally, p write) error {
	switch p.What {
	case "error":
		return errLedger
	case "panic":
		panic(errLedger)
	case "refuse":
		if _, err := tx.Exec(ctx, `INSERT INTO ledger VALUES ('undone')`); err != nil {
			return err
		}
		return workflow.Refuse("the ledger refuses")
	case "swallow":
		_, _ = tx.Exec(ctx, `INSERT INTO nowhere VALUES (1)`)
		return nil
	case "commit":
		return tx.Commit(ctx)
	case "rollback":
		return tx.Rollback(ctx)
	case "sleep":
		_, err := tx.Exec(ctx, `SELECT pg_sleep(600)`)
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO ledger VALUES ($1)`, p.What)
	return err
}

// opening is the command that opens a counter.
func opening(name string) transitions.Command {
	return transitions.Command{Workflow: "counter", Transition: "open", Key: "open " + name, Payload: fmt.Appendf(nil, `{"name":%q}`, name)}
}

// onCounter is a command on the counter that was opened with the name.
func onCounter(name, transition, key, payload string) transitions.Command {
	return transitions.Command{Workflow: "counter", Transition: transition, BusinessKey: name, Key: key, Payload: []byte(payload)}
}
