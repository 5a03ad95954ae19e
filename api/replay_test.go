package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

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

// A proxy that compresses an answer weakens its tag.
func TestIfMatchTakesTags(t *testing.T) {
	s := newServer(t)
	path := "/v1/instances/" + s.packed("5").String()
	for version, weak := range []string{"", "W/"} {
		tag := weak + s.get(path).header.Get("ETag")
		won := s.post(path+"/stamp", tag, `{}`, "If-Match", tag)
		won.want(t, 200)
		assert.Equal(t, fmt.Sprintf(`"%d"`, version+2), won.header.Get("ETag"))
		s.post(path+"/stamp", "late "+tag, `{}`, "If-Match", tag).wantProblem(t, 412, workflow.VersionConflict)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	s := newServer(t)
	id, heavy, delivery := s.packed("5").String(), s.packed("400").String(), s.booked().String()
	before := s.rows()
	for path, want := range map[string]int{
		"/v1/workflows/parcel/pack":                    201,
		"/v1/instances/" + id + "/stamp":               200,
		"/v1/instances/" + uuid.NewString() + "/stamp": 404,
		"/v1/instances/" + heavy + "/send":             409,
		"/v1/instances/" + delivery + "/deliver":       202,
	} {
		body := map[bool]string{true: `{"to":"Wien"}`, false: `{}`}[want == 201]
		a := s.do(http.MethodPost, path+"?dry_run=true", []byte(body), "Content-Type", "application/json")
		a.want(t, want)
		assert.Truef(t, a.header.Get("Location") == "" && a.header.Get("Pawl-Position") == "" &&
			(want >= 400 || a.header.Get("Pawl-Dry-Run") == "true"), "%s: %v", path, a.header)
	}
	item := `{"workflow":"parcel","transition":"pack"`
	a := s.bulk("application/json", `[`+item+`,"payload":{"to":"Wien"}},`+item+`},7,{"transition":"deliver","instance":"`+delivery+`"}]`,
		"?dry_run=true")
	for i, one := range read[[]wire.BulkResult](t, a) {
		assert.Equalf(t, []int{201, 400, 400, 202}[i], one.Status, "%s", one.Body)
	}
	assert.Equal(t, before, s.rows())
	s.post("/v1/workflows/parcel/pack?dry_run=false", "k", `{"to":"Wien"}`).want(t, 201)
}
