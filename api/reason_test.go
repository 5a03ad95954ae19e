package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A reason is part of the request, is kept while the command is in flight, and is in the audit row and the events.
func TestReasonIsStored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const reason = "she called:\n100% \"sure\" – ж"
	why := []string{"Pawl-Reason", wire.DisplayString(reason)}
	book := func(headers ...string) answer { return s.post("/v1/workflows/delivery/book", "k", `{}`, headers...) }
	a := book(why...)
	a.want(t, 201)
	assert.Equal(t, "true", book(why...).header.Get("Idempotent-Replayed"))
	book().wantProblem(t, 422, workflow.KeyReused)
	id := read[transitions.Result](t, a).Instance
	path := "/v1/instances/" + id.String()
	s.post(path+"/note", "n", `{}`, "Pawl-Reason", "as it is: Köln %41").want(t, 200)
	s.post(path+"/note", "n", `{}`, "Pawl-Reason", wire.DisplayString("as it is: Köln %41")).want(t, 200) // the same text
	item := func(key, reason string) string {
		raw, _ := json.Marshal(reason)
		return fmt.Sprintf(`{"transition":"note","instance":%q,"key":%q,"reason":%s}`, id, key, raw)
	}
	long := strings.Repeat("x", transitions.MaxReason+1)
	bulk := "[" + strings.Join([]string{item("b", reason), item("b", "other"), item("n", "as it is: Köln %41"), item("c", long)}, ",") + "]"
	for i, got := range read[[]wire.BulkResult](t, s.bulk("application/json", bulk, "")) {
		assert.Equalf(t, []int{200, 422, 200, 400}[i], got.Status, "item %d %s", i, got.Body)
	}
	s.deliver(id, "d", "Pawl-Reason", "called").want(t, http.StatusAccepted)
	s.visit().signed("Ida")
	s.deliver(id, "d", "Pawl-Reason", "called", "Prefer", "wait=60").want(t, 200)
	want := []string{reason, "as it is: Köln %41", reason, "called", "called"}
	var history, events []string
	for _, e := range read[wire.History](t, s.get(path+"/history")).Entries {
		history = append(history, e.Reason)
	}
	for _, raw := range s.allEvents("&instance=" + id.String()) {
		var e struct{ Reason string }
		require.NoError(t, json.Unmarshal(raw, &e, json.MatchCaseInsensitiveNames(true)))
		events = append(events, e.Reason)
	}
	assert.Equal(t, want, history)
	assert.Equal(t, strings.ReplaceAll(strings.Join(want, "|"), "\n", " "), strings.Join(events, "|")) // as CloudEvents requires
	for reason, says := range map[string]string{
		long: "the reason is longer than 4096 bytes", `%"%00"`: "the reason contains a NUL", "\xff": "the reason is not valid UTF-8",
		`%"%ff"`: "the reason is not valid UTF-8", `%"open`: "not a Display String", `%"a" trail`: "not a Display String",
	} {
		p := s.post(path+"/note?dry_run=true", "x", `{}`, "Pawl-Reason", reason).wantProblem(t, 400, workflow.InvalidRequest)
		assert.Containsf(t, p.Detail, says, "%.20q", reason)
	}
	s.post(path+"/note", "x", `{}`, "Pawl-Reason", "one", "Pawl-Reason", "two").wantProblem(t, 400, workflow.InvalidRequest)
}
