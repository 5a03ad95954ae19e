package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The same twice is done once.
func Example_fromGo() {
	driven(func(ctx context.Context, pool *pgxpool.Pool) error {
		if err := run(ctx, pool); err != nil {
			return err
		}
		return run(ctx, pool)
	})

	// Output:
	// requested 1 false
	// requested 1 true
}

func Example_inTransactions() {
	driven(func(ctx context.Context, pool *pgxpool.Pool) error {
		if _, err := pool.Exec(ctx, "CREATE TABLE employee AS SELECT 'Ann' AS name, 30 AS days_left"); err != nil {
			return err
		}
		withSQL := workflow.Define("leave", 3, workflow.Start("request", Requested, request), approve).Final(Approved).Roles("manager")
		eng, err := begin(ctx, pool, withSQL)
		if err != nil {
			return err
		}
		defer eng.Stop(ctx)
		c := transitions.Command{
			Workflow: "leave", Transition: "request", Key: "form-18",
			Payload: []byte(`{"number":"L-18","employee":"Ann","days":5}`),
		}
		for range 2 { // the second is a retry, and must not take the days again
			if err := requestWithDays(ctx, pool, eng, c); err != nil {
				return err
			}
		}
		receipt, err := eng.Submit(ctx, c)
		if err != nil {
			return err
		}
		receipt, err = eng.Submit(ctx, transitions.Command{
			Transition: "approve", Instance: receipt.Instance, Key: "verdict-18", Roles: []string{"manager"},
		})
		if err != nil {
			return err
		}
		if err := receipt.Err(); err != nil {
			return err
		}
		var left int
		if err := pool.QueryRow(ctx, "SELECT days_left FROM employee").Scan(&left); err != nil {
			return err
		}
		fmt.Println("days left:", left)
		return nil
	})

	// Output: days left: 22
}

func Example_await() {
	driven(func(ctx context.Context, pool *pgxpool.Pool) error {
		payroll := &deaf{}
		eng, err := begin(ctx, pool, Version2(payroll))
		if err != nil {
			return err
		}
		defer eng.Stop(ctx)
		c := transitions.Command{
			Workflow: "leave", Transition: "request", Key: "form-20",
			Payload: []byte(`{"number":"L-20","employee":"Ann","days":5}`),
		}
		receipt, err := eng.Submit(ctx, c)
		if err != nil {
			return err
		}
		result, err := finish(ctx, eng, transitions.Command{
			Transition: "approve", Instance: receipt.Instance, Key: "verdict-20", Actor: "mia", Roles: []string{"manager"},
		})
		if err != nil {
			return err
		}
		once := len(payroll.asked) == 2 && payroll.asked[0] == payroll.asked[1]
		fmt.Println(result.State, result.Version, string(result.Result), "asked twice with one key:", once)
		return nil
	})

	// Output: approved 3 "P-20" asked twice with one key: true
}

// driven prints what is wrong.
func driven(drive func(ctx context.Context, pool *pgxpool.Pool) error) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if err := drive(ctx, pool); err != nil {
		fmt.Println(err)
	}
}

func begin(ctx context.Context, pool *pgxpool.Pool, w workflow.Source) (*engine.Engine, error) {
	eng, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{w}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return eng, eng.Start(ctx)
}

// deaf is a payroll whose first answer is lost.
type deaf struct{ asked []string }

func (d *deaf) Book(_ context.Context, key, _ string, _ int) (string, error) {
	if d.asked = append(d.asked, key); len(d.asked) == 1 {
		return "", fmt.Errorf("payroll is down")
	}
	return "P-20", nil
}

func (d *deaf) Cancel(context.Context, string) error { return nil }
