package fold_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/workflow"
)

func TestDefinitionHasNoMistakes(t *testing.T) {
	w, err := fines.Workflow.Build()
	require.NoError(t, err)
	assert.Truef(t, len(w.States) == 12 && len(w.Steps) == 16 && len(w.Finals) == 3,
		"%d states, %d transitions, %d finals; want 12, 16, 3", len(w.States), len(w.Steps), len(w.Finals))
}

func TestCaseIsCreatedOnce(t *testing.T) {
	p := newPlayer(t)
	c, err := written(t, "create_fine 2010-01-10 4000").Events[0].Command()
	require.NoError(t, err)
	if d, err := p.command(c); err != nil || d.Code != 201 {
		t.Fatal(d.Code, err)
	}
	c.Key = "another intent"
	d, err := p.command(c)
	assert.Truef(t, err == nil && d.Code == 200 && d.After == nil && strings.Contains(string(d.Body), `"existing":true`),
		"a second creation is answered %d %s %v, want the case that exists", d.Code, d.Body, err)
}

func TestAttributesFindFines(t *testing.T) {
	p := newPlayer(t)
	p.event(t, written(t, "create_fine 2010-01-10 4000").Events[0])
	got := p.fine.Attributes
	assert.Truef(t, got["article"] == "157" && got["officer"] == "561", "attributes %v, want article 157 and officer 561", got)
}

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
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":3500,"points":0,"dismissal":"§"}`, ""},
		{"create_fine", `{` + fine + `,"article":157}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":null}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":-1}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":100000001}`, "/amount_cents"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":3500,"maximum_cents":14300}`, ""},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":3500,"maximum_cents":-1}`, "/maximum_cents"},
		{"create_fine", `{` + fine + `,"article":409,"amount_cents":1}`, "/article"},
		{"create_fine", `{` + fine + `,"amount_cents":1}`, "/article"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":1,"points":21}`, "/points"},
		{"create_fine", `{` + fine + `,"article":157,"amount_cents":1,"dismissal":"NIL"}`, "/dismissal"},
		{"create_fine", `{"case":"A-1","on":"2010-01-10","vehicle_class":"A","officer":1,"article":157,"amount_cents":1}`, "/case"},
		{"create_fine", `{"case":"A1","on":"2010-02-30","vehicle_class":"A","officer":1,"article":157,"amount_cents":1}`, "/on"},
		{"create_fine", `{"case":"A1","on":"2010-02-03","vehicle_class":"X","officer":1,"article":157,"amount_cents":1}`, "/vehicle_class"},
		{"create_fine", `{"case":"A1","on":"2010-02-03","vehicle_class":"A","article":157,"amount_cents":1}`, "/officer"},
		{"send_fine", `{"on":"2010-01-10","expense_cents":0}`, ""},
		{"send_fine", `{"on":"2010-01-10"}`, "/expense_cents"},
		{"send_fine", `{"expense_cents":1}`, "/on"},
		{"insert_fine_notification", `{"on":"2010-01-10","notification_type":"P"}`, ""},
		{"insert_fine_notification", `{"on":"2010-01-10","notification_type":"P","last_sent":"N"}`, ""},
		{"insert_fine_notification", `{"on":"2010-01-10"}`, "/notification_type"},
		{"insert_fine_notification", `{"on":"2010-01-10","notification_type":"C","last_sent":"X"}`, "/last_sent"},
		{"add_penalty", `{"on":"2010-01-10","amount_cents":0}`, ""},
		{"add_penalty", `{"on":"2010-01-10"}`, "/amount_cents"},
		{"payment", `{"on":"2010-01-10","amount_cents":1}`, ""},
		{"payment", `{"on":"2010-01-10","amount_cents":0,"total_cents":0}`, "/amount_cents"},
		{"payment", `{"on":"2010-01-10","amount_cents":1,"total_cents":-1}`, "/total_cents"},
		{"payment", `{"on":"2010-01-10","amount_cents":1.5}`, "/amount_cents"},
		{"send_appeal_to_prefecture", `{"on":"2010-01-10"}`, ""},
		{"appeal_to_judge", `{"on":"2010-01-10","dismissal":"GG"}`, "/dismissal"},
		{"receive_result_appeal_from_prefecture", `{"on":"10.1.2010"}`, "/on"},
		{"notify_result_appeal_to_offender", `{"on":"2010-01-10","by":"post"}`, "/by"},
		{"insert_date_appeal_to_prefecture", `{"on":20100110}`, "/on"},
		{"send_for_credit_collection", `{}`, "/on"},
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

func TestDateAddsDays(t *testing.T) {
	assert.Equal(t, fines.Date("2012-03-01"), fines.Date("2012-02-28").Add(2))
	defer func() {
		assert.NotNil(t, recover(), "adding to what is no date did not panic")
	}()
	fines.Date("2012-2-28").Add(1)
}
