package transitions

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func TestWithPositionAddsLastMember(t *testing.T) {
	t.Parallel()
	body := append(make([]byte, 0, 100), `{"version":1}`...)
	for position, want := range map[int64]string{
		0: `{"version":1}`, 1: `{"version":1,"position":1}`, 1<<63 - 1: `{"version":1,"position":9223372036854775807}`,
	} {
		if got := WithPosition(body, position); string(got) != want {
			t.Errorf("%d: got %s, want %s", position, got, want)
		} else if cap(got) > len(got) {
			t.Errorf("%d: who appends to it writes where others do", position)
		}
	}
	assert.Nil(t, WithPosition(nil, 7), "no body")
	assert.Equalf(t, `{"version":1}`, string(body), "the stored body was changed to %s", body)
}

func TestReceiptOfRefusalReturnsError(t *testing.T) {
	t.Parallel()
	refusal := ProblemOf(&workflow.Error{Code: workflow.IllegalTransition, Message: "not now", State: open, Allowed: []string{"add"}})
	r := Receipt{Status: refusal.Status, Body: refusal.JSON()}
	_, err := r.Result()
	for _, err := range []error{r.Err(), err} {
		want := &workflow.Error{Code: workflow.IllegalTransition, Message: "not now", State: open, Allowed: []string{"add"}}
		assert.Equal(t, want, err)
	}
	assert.True(t, r.Refused() && !(Receipt{Status: 201}).Refused(), "a refusal is not told from an answer")
}

func TestUnreadableResultIsInternalError(t *testing.T) {
	t.Parallel()
	wantCode(t, Receipt{Status: 409, Body: []byte(`{`)}.Err(), workflow.Internal)
	_, err := Receipt{Status: 200, Body: []byte(`[]`)}.Result()
	wantCode(t, err, workflow.Internal)
	assert.NoError(t, (Receipt{Status: 200, Instance: uuid.Nil}).Err(), "got")
}
