package workflow_test

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

type receipt struct {
	Key    string `json:"key" validate:"required"`
	Amount int    `json:"amount"`
}

func TestAResultOfAnotherShapeDoesNotFit(t *testing.T) {
	w, err := workflow.Define("w", 1,
		workflow.Start("begin", "begun", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
		workflow.Do("pay", workflow.From("begun"), "paying", "paid",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (receipt, error) {
				return receipt{}, nil
			},
			func(*workflow.Call, *struct{}, receipt) error { return nil },
		).OrElse("unpaid", func(*workflow.Call, *struct{}, workflow.Failure) error { return nil }),
	).Final("paid", "unpaid").Build()
	if err != nil {
		t.Fatal(err)
	}
	work := w.Named("pay")[0].Work
	if err := work.Fits([]byte(`{"key":"k","amount":3}`)); err != nil {
		t.Error(err)
	}
	for _, result := range []string{``, `null`, `[]`, `"x"`, `{}`, `{"key":""}`, `{"key":"k","amount":"3"}`, `{"key":"k","more":1}`,
		`{"key":`} {
		if err := work.Fits([]byte(result)); workflow.CodeOf(err) != workflow.InvalidPayload {
			t.Errorf("%s: %v", result, err)
		}
	}
}
