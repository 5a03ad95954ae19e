package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const aReason = "she called:\n100% \"sure\" – ж"

// reasons are those of an instance's history, and holds those of its events against them.
func (s *server) reasons(id uuid.UUID) (list []string) {
	s.t.Helper()
	for _, e := range read[wire.History](s.t, s.get("/v1/instances/"+id.String()+"/history")).Entries {
		list = append(list, e.Transition+": "+e.Reason)
	}
	var told []string
	for _, raw := range s.allEvents("&instance=" + id.String()) {
		var e struct {
			Type   string `json:"type"`
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			s.t.Fatal(err)
		}
		told = append(told, strings.TrimPrefix(e.Type, "delivery.")+": "+e.Reason)
	}
	oneLine := strings.ReplaceAll(strings.Join(list, "|"), "\n", " ") // as CloudEvents has it
	if strings.Join(told, "|") != oneLine {
		s.t.Errorf("the events say %q, the history %q", told, list)
	}
	return list
}

func wantReasons(t *testing.T, got []string, want ...string) {
	t.Helper()
	assert.Equalf(t, strings.Join(want, "|"), strings.Join(got, "|"), "got %q, want %q", got, want)
}

// A reason is part of the request: with another one, or none, the key is used.
func TestACommandTakesAReason(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	why := []string{"Pawl-Reason", wire.DisplayString(aReason)}
	book := func(headers ...string) answer { return s.post("/v1/workflows/delivery/book", "k", `{}`, headers...) }
	a := book(why...)
	a.want(t, 201)
	again := book(why...)
	assert.Truef(t, again.status == 201 && string(again.body) == string(a.body) && again.header.Get("Idempotent-Replayed") == "true",
		"the replay: %d %s %v", again.status, again.body, again.header)
	book().wantProblem(t, 422, workflow.KeyReused)
	book("Pawl-Reason", "another").wantProblem(t, 422, workflow.KeyReused)
	id := read[transitions.Result](t, a).Instance
	of := "/v1/instances/" + id.String()
	s.post(of+"/note?dry_run=true", "dry", `{}`, why...).want(t, 200)
	s.post(of+"/note", "n", `{}`, "Pawl-Reason", "as it is: Köln %41").want(t, 200)
	s.post(of+"/note", "n", `{}`, "Pawl-Reason", wire.DisplayString("as it is: Köln %41")).want(t, 200) // the same text
	s.post(of+"/note", "none", `{}`, "Pawl-Reason", "").want(t, 200)
	s.post(of+"/note", "none", `{}`).want(t, 200)
	item := func(key, reason string) string {
		raw, _ := json.Marshal(reason)
		return fmt.Sprintf(`{"transition":"note","instance":%q,"key":%q,"reason":%s}`, id, key, raw)
	}
	bulk := "[" + item("b", aReason) + "," + item("b", aReason) + "," + item("b", "other") + "," + item("none", "") + "," +
		item("n", "as it is: Köln %41") + "]"
	for i, want := range []int{200, 200, 422, 200, 200} {
		got := read[[]wire.BulkResult](t, s.bulk("application/json", bulk, ""))[i]
		assert.Equalf(t, want, got.Status, "item %d %s", i, got.Body)
	}
	wantReasons(t, s.reasons(id), "book: "+aReason, "note: as it is: Köln %41", "note: ", "note: "+aReason)
}

// It is kept while the command is in flight, or waits for its time.
func TestACommandInFlightKeepsItsReason(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	why := []string{"Pawl-Reason", aReason[:10]}
	id := s.booked()
	later := append(why, "Pawl-Not-Before", inAnHour())
	of := "/v1/instances/" + id.String()
	s.post(of+"/note", "later", `{}`, later...).want(t, http.StatusAccepted)
	s.post(of+"/note", "later", `{}`, later[2:]...).wantProblem(t, 422, workflow.KeyReused)
	s.comes("later")
	s.post(of+"/note", "later", `{}`, append(later, "Prefer", "wait=60")...).want(t, 200)

	s.deliver(id, "d", why...).want(t, http.StatusAccepted)
	s.deliver(id, "d").wantProblem(t, 422, workflow.KeyReused)
	s.visit().failed(workflow.Final(errNobody))
	s.deliver(id, "d", append(why, "Prefer", "wait=60")...).wantProblem(t, 409, workflow.ActivityFailed)
	s.deliver(id, "e", why...).want(t, http.StatusAccepted)
	s.visit().signed("Ida")
	s.deliver(id, "e", append(why, "Prefer", "wait=60")...).want(t, 200)
	wantReasons(t, s.reasons(id), "book: ", "note: she called", "deliver.accepted: she called", "deliver.failed: nobody opens",
		"deliver.accepted: she called", "deliver: she called")
}

var errNobody = fmt.Errorf("nobody opens")

func TestAReasonThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.booked()
	of := "/v1/instances/" + id.String() + "/note"
	long := strings.Repeat("x", transitions.MaxReason+1)
	for reason, says := range map[string]string{
		long:         "the reason is longer than 4096 bytes",
		`%"%00"`:     "the reason contains a NUL",
		"\xff":       "the reason is not valid UTF-8",
		`%"%ff"`:     "the reason is not valid UTF-8",
		`%"open`:     "not a Display String",
		`%"a" trail`: "not a Display String",
	} {
		for _, query := range []string{"", "?dry_run=true"} {
			assert.Containsf(t, s.post(of+query, "k", `{}`, "Pawl-Reason", reason).wantProblem(t, 400, workflow.InvalidRequest).Detail,
				says,
				"%.20q", reason)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+of, strings.NewReader(`{}`))
	require.NoError(t, err)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Pawl-Reason": {"one", "two"}}
	s.send(r).wantProblem(t, 400, workflow.InvalidRequest)
	s.post("/v1/ops/instances/"+id.String()+"/pause", "k", `{}`, "Pawl-Reason", "x").wantProblem(t, 400, workflow.InvalidRequest)
	s.do(http.MethodPost, "/v1/commands", []byte(`[]`), "Content-Type", "application/json", "Pawl-Reason", "x").wantProblem(t, 400,
		workflow.InvalidRequest)
	item := fmt.Sprintf(`{"transition":"note","instance":%q,"key":"k","reason":`, id)
	bulk := "[" + item + `"` + long + `"},` + item + `"\u0000"},` + item + `7},` + item + `{}},` + item + `null}]`
	for i, got := range read[[]wire.BulkResult](t, s.bulk("application/json", bulk, "")) {
		assert.Truef(t, (i >= 4 || got.Status == 400) && (i != 4 || got.Status == 200), "item %d: %d %s", i, got.Status, got.Body)
	}
	wantReasons(t, s.reasons(id), "book: ", "note: ")
	whole := strings.Repeat("ж", transitions.MaxReason/2)
	s.post(of, "whole", `{}`, "Pawl-Reason", wire.DisplayString(whole)).want(t, 200)
	got := s.reasons(id)
	assert.Equal(t, "note: "+whole, got[2])
}
