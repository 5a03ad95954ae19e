package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

// The form of a transition takes a reason: it is there after a dry run and after a refusal, and then in the audit.
func TestATransitionIsSubmittedWithAReason(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything, "boss"))
	id := s.filed("A-1", 10)
	of := "/console/instances/" + id.String()
	const reason = "she called:\r\n<b>100%</b> \"sure\" – ж"
	shown := html.EscapeString(reason)
	v.get(of+"/do/note").want(200, `<textarea id="f-reason" name="reason"`, "Reason, for the audit")
	form := v.form("p/note", "", "reason", reason, "do", "dry")
	v.post(of+"/do/note", form).want(200, "Nothing was written", shown+"</textarea>")
	long := strings.Repeat("x", transitions.MaxReason+1)
	v.fill(of+"/do/note", "p/note", "", "reason", long).want(http.StatusBadRequest, "the reason is longer than 4096 bytes",
		long+"</textarea>")
	v.fill(of+"/do/note", "p/note", "", "reason", "\xff").want(http.StatusBadRequest, "the reason is not valid UTF-8")
	form.Set("do", "submit")
	for range 2 { // a double click
		p := v.post(of+"/do/note", form).want(http.StatusSeeOther)
		assert.Equal(t, of+"?done=2", p.location(), "it leads to")
	}
	form.Set("reason", "another") // with the key of the first
	v.post(of+"/do/note", form).want(http.StatusUnprocessableEntity, "another</textarea>")
	v.get(of).want(200, `<q>`+shown+`</q>`)

	v.fill("/console/bulk", "action", "do note", "id", id.String(), "payload", `{"note":""}`, "reason", "all of them").want(200,
		"Done with 1 of 1")
	v.fill("/console/workflows/claim/do/file", "p/number", "A-2", "p/who", "ann", "p/amount", "7", "reason", "a form on paper").want(303)
	for instance, want := range map[uuid.UUID]string{id: "|" + reason + "|all of them",
		transitions.InstanceID(transitions.DefaultTenant, "claim", "A-2"): "a form on paper"} {
		history, err := s.Engine().Read().History(t.Context(), "", instance, 0, 10)
		require.NoError(t, err)
		var got []string
		for _, e := range history {
			got = append(got, e.Reason)
		}
		assert.Equal(t, want, strings.Join(got, "|"), "the reasons")
	}
}
