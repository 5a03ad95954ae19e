package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestReplayIsByteIdentical(t *testing.T) {
	s := newServer(t)
	id := s.packed("5")
	path := "/v1/instances/" + id.String()
	stamped := s.post(path+"/stamp", "stamp", `{"price":1.50,"tags":["a"]}`)
	stamped.want(t, 200)
	refused := s.post(path+"/stamp", "conflict", `{}`, "If-Match", `"1"`)
	refused.wantProblem(t, 412, workflow.VersionConflict)
	s.stamp(id, 2)
	s.post(path+"/send", "send", `{"via":"rail"}`, "Pawl-Actor", "bob").want(t, 200)

	for key, first := range map[string]answer{"stamp": stamped, "conflict": refused} {
		headers := []string{}
		body := `{"tags":["a"], "price":1.5}`
		if key == "conflict" {
			body, headers = `{}`, []string{"If-Match", `"1"`}
		}
		again := s.post(path+"/stamp", key, body, headers...)
		if again.status != first.status || string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s %v; the first answer was %d %s", key, again.status, again.body, again.header, first.status, first.body)
		}
	}
	got := read[transitions.Result](t, stamped)
	assert.Truef(t, string(got.Result) == `{"stamps":1}` && got.Version == 2 && got.State == packed, "the answer says %+v", got)
}

func TestConcurrentDuplicates(t *testing.T) {
	s := newServer(t)
	const callers = 50
	answers := make([]answer, callers)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			<-begin
			answers[i] = s.post("/v1/workflows/parcel/pack", "same", `{"to":"Wien"}`)
		})
	}
	close(begin)
	all.Wait()
	fresh := 0
	for _, a := range answers {
		assert.Truef(t, a.status == 201 && string(a.body) == string(answers[0].body),
			"%d %s; another got %s", a.status, a.body, answers[0].body)
		if a.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	n := s.rows()["instance"]
	assert.Truef(t, n == 1 && fresh == 1, "%d instances, %d answers that are no replay", n, fresh)
}

func TestIfMatchLetsOneOfTwoWritersWin(t *testing.T) {
	s := newServer(t)
	id := s.packed("5").String()
	shown := s.get("/v1/instances/" + id)
	tag := shown.header.Get("ETag")
	require.Truef(t, strings.HasPrefix(tag, `"1.`), "ETag %s", tag)
	won := s.post("/v1/instances/"+id+"/stamp", "a", `{}`, "If-Match", tag)
	won.want(t, 200)
	assert.Equal(t, `"2"`, won.header.Get("ETag"), "ETag after the transition")
	s.post("/v1/instances/"+id+"/stamp", "b", `{}`, "If-Match", tag).wantProblem(t, 412, workflow.VersionConflict)
	s.post("/v1/instances/"+id+"/stamp", "c", `{}`, "If-Match", "*").want(t, 200)
	// A proxy that compresses the answer weakens its tag.
	weak := "W/" + s.get("/v1/instances/"+id).header.Get("ETag")
	s.post("/v1/instances/"+id+"/stamp", "w", `{}`, "If-Match", weak).want(t, 200)
	s.post("/v1/instances/"+id+"/stamp", "v", `{}`, "If-Match", weak).wantProblem(t, 412, workflow.VersionConflict)
	for _, bad := range []string{`1`, `W/3`, `"3", "4"`, `"0"`, `"x"`} {
		s.post("/v1/instances/"+id+"/stamp", "d", `{}`, "If-Match", bad).wantProblem(t, 400, workflow.InvalidRequest)
	}
}

func TestDryRunAnswersAndChangesNothing(t *testing.T) {
	s := newServer(t)
	id := s.packed("5").String()
	before := s.rows()
	for path, want := range map[string]int{
		"/v1/workflows/parcel/pack":                           201,
		"/v1/instances/" + id + "/stamp":                      200,
		"/v1/instances/" + uuid.NewString() + "/stamp":        404,
		"/v1/instances/" + s.packed("400").String() + "/send": 409,
	} {
		a := s.do(http.MethodPost, path+"?dry_run=true", []byte(`{"to":"Wien"}`), "Content-Type", "application/json")
		if want != 201 {
			a = s.do(http.MethodPost, path+"?dry_run=true", nil, "Content-Type", "application/json")
		}
		a.want(t, want)
		assert.Truef(t, a.header.Get("Location") == "" && a.header.Get("Pawl-Position") == "",
			"%s: a dry run has headers of a real one: %v", path, a.header)
		assert.Falsef(t, want < 400 && a.header.Get("Pawl-Dry-Run") != "true", "%s: nothing says that it was a dry run", path)
	}
	before["instance"]++ // the heavy one
	before["command"]++
	before["audit"]++
	before["outbox"]++
	for table, n := range s.rows() {
		assert.Equalf(t, before[table], n, "%s has rows, had", table)
	}
	s.post("/v1/workflows/parcel/pack?dry_run=maybe", "k", `{}`).wantProblem(t, 400, workflow.InvalidRequest)
	a := s.post("/v1/workflows/parcel/pack?dry_run=false", "k", `{"to":"Wien"}`)
	assert.Equalf(t, 201, a.status, "dry_run=false %s", a.body)
}
