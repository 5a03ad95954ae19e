package workflow_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	work := w.Named("pay")[0].Work
	assert.NoError(t, work.Fits([]byte(`{"key":"k","amount":3}`)))
	for _, result := range []string{``, `null`, `[]`, `"x"`, `{}`, `{"key":""}`, `{"key":"k","amount":"3"}`, `{"key":"k","more":1}`,
		`{"key":`} {
		if err := work.Fits([]byte(result)); workflow.CodeOf(err) != workflow.InvalidPayload {
			t.Errorf("%s: %v", result, err)
		}
	}
}
