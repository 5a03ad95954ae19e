package fold_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/workflow"
)

// A clerk sees why something cannot be done before filling in a form.
func TestGuardsAreExplainedWithoutAPayload(t *testing.T) {
	p := newPlayer(t)
	for _, e := range written(t, "create_fine 2010-01-10 4000", "appeal_to_judge 2010-02-01").Events {
		p.event(t, e)
	}
	var got []string
	for _, o := range decide.Explain(p.workflow, p.fine, "ann", nil, p.fine.UpdatedAt) {
		for _, r := range o.Reasons {
			if r.Code == workflow.GuardRefused {
				got = append(got, o.Transition+": "+r.Message)
			}
		}
	}
	want := []string{
		"insert_fine_notification: the notice was never sent",
		"add_penalty: the notice was never served, so the 60 days have not begun",
		"raise: the notice was never served, so the 60 days have not begun",
		"raise: the fine was recorded without its maximum, so the office adds the penalty",
		"send_for_credit_collection: there is no enforceable title: neither raised nor ordered",
	}
	assert.Truef(t, slices.Equal(got, want), "got  %q\nwant %q", got, want)
}

func TestPayloadsAreRefusedByField(t *testing.T) {
	const fine = `"case":"A1","on":"2010-01-10","vehicle_class":"A","officer":561`
	tests := []struct {
		transition, payload string
		pointer             string // "" is accepted
	}{
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":0}`, ""},
		{"create_fine", `{` + fine + `,"article":157}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":-1}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":3500,"maximum_cents":-1}`, "/maximum_cents"},
		{"create_fine", `{` + fine + `,"article":409,"amount_cents":1}`, "/article"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":1,"points":21}`, "/points"},
		{"create_fine", `{"case":"A-1","on":"2010-01-10","vehicle_class":"A","officer":1,"article":157,"amount_cents":1}`, "/case"},
		{"create_fine", `{"case":"A1","on":"2010-02-30","vehicle_class":"A","officer":1,"article":157,"amount_cents":1}`, "/on"},
		{"send_fine", `{"on":"2010-01-10","expense_cents":0}`, ""},
		{"send_fine", `{"on":"2010-01-10"}`, "/expense_cents"},
		{"insert_fine_notification", `{"on":"2010-01-10"}`, "/notification_type"},
		{"add_penalty", `{"on":"2010-01-10"}`, "/amount_cents"},
		{"payment", `{"on":"2010-01-10","amount_cents":1}`, ""},
		{"payment", `{"on":"2010-01-10","amount_cents":0,"total_cents":0}`, "/amount_cents"},
		{"payment", `{"on":"2010-01-10","amount_cents":1.5}`, "/amount_cents"},
		{"appeal_to_judge", `{"on":"2010-01-10","dismissal":"GG"}`, "/dismissal"},
		{"receive_result_appeal_from_prefecture", `{"on":"10.1.2010"}`, "/on"},
		{"notify_result_appeal_to_offender", `{"on":"2010-01-10","by":"post"}`, "/by"},
		{"insert_date_appeal_to_prefecture", `{"on":20100110}`, "/on"},
	}
	w := newPlayer(t).workflow
	for _, tt := range tests {
		_, err := w.Named(tt.transition)[0].Decode([]byte(tt.payload))
		if tt.pointer == "" {
			assert.NoErrorf(t, err, "%s %s", tt.transition, tt.payload)
			continue
		}
		e, ok := errors.AsType[*workflow.Error](err)
		assert.Truef(t, ok && e.Code == workflow.InvalidPayload && len(e.Fields) == 1 && e.Fields[0].Pointer == tt.pointer,
			"%s %s: got %+v, want %s refused", tt.transition, tt.payload, err, tt.pointer)
	}
}
