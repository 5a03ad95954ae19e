package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// TestEverySituationHasItsStatus goes through the table of the protocol.
func TestEverySituationHasItsStatus(t *testing.T) {
	s := newServer(t)
	id := s.packed("5").String()
	heavy := s.packed("500").String()
	gone := s.packed("1").String()
	s.post("/v1/instances/"+gone+"/send", "sent", `{"via":"rail"}`).want(t, http.StatusOK)
	s.post("/v1/workflows/parcel/label", "first", `{"to":"Linz","label":"L-1"}`).want(t, http.StatusCreated)
	stamped := s.packed("1").String()
	s.post("/v1/instances/"+stamped+"/stamp", "st", `{}`, "Pawl-Actor", "ann").want(t, http.StatusOK)

	for _, c := range []struct {
		name    string
		path    string
		body    string
		headers []string
		status  int
		code    workflow.Code
	}{
		{"created", "/v1/workflows/parcel/pack", `{"to":"Wien"}`, nil, 201, ""},
		{"done", "/v1/instances/" + id + "/stamp", `{}`, nil, 200, ""},
		{"done, by business key", "/v1/workflows/parcel/keys/L-1/stamp", ``, nil, 200, ""},
		{"malformed payload", "/v1/workflows/parcel/pack", `{"weight":-1}`, nil, 400, workflow.InvalidPayload},
		{"illegal from this state", "/v1/instances/" + gone + "/stamp", `{}`, nil, 409, workflow.IllegalTransition},
		{"guard refused", "/v1/instances/" + heavy + "/send", `{"via":"air"}`, nil, 409, workflow.GuardRefused},
		{"version moved", "/v1/instances/" + id + "/stamp", `{}`, []string{"If-Match", `"1"`}, 412, workflow.VersionConflict},
		{"business key taken, as declared", "/v1/workflows/parcel/label", `{"to":"Linz","label":"L-1"}`, nil, 200, ""},
		{"business key taken, refused", "/v1/workflows/parcel/claim", `{"to":"Linz","label":"L-1"}`, nil, 409, workflow.AlreadyExists},
		{"no role", "/v1/instances/" + id + "/send", `{}`, []string{"Pawl-Roles", "porter"}, 403, workflow.RoleRequired},
		{"the same actor", "/v1/instances/" + stamped + "/send", `{}`, []string{"Pawl-Actor", "ann"}, 403, workflow.SeparationOfDuties},
		{"no workflow", "/v1/workflows/nothing/pack", `{}`, nil, 404, workflow.WorkflowNotFound},
		{"no transition", "/v1/workflows/parcel/eat", `{}`, nil, 404, workflow.TransitionNotFound},
		{"no instance", "/v1/instances/" + uuid.NewString() + "/stamp", `{}`, nil, 404, workflow.InstanceNotFound},
		{"no instance with this business key", "/v1/workflows/parcel/keys/L-2/stamp", `{}`, nil, 404, workflow.InstanceNotFound},
		{"another tenant's instance", "/v1/instances/" + id + "/stamp", `{}`, []string{"Pawl-Tenant", "other"}, 404, workflow.InstanceNotFound},
		{"a start on an instance", "/v1/instances/" + id + "/pack", `{"to":"x"}`, nil, 400, workflow.InvalidRequest},
		{"a transition on nothing", "/v1/workflows/parcel/stamp", `{}`, nil, 400, workflow.InvalidRequest},
		{"too large", "/v1/workflows/parcel/pack", `{"to":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, workflow.TooLarge},
		{"a defect of the workflow", "/v1/instances/" + id + "/lose", `{}`, nil, 500, workflow.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := uuid.NewString()
			first := s.post(c.path, key, c.body, c.headers...)
			again := s.post(c.path, key, c.body, c.headers...)
			if c.code == "" {
				first.want(t, c.status)
				read[transitions.Result](t, first)
				assert.Falsef(t, first.header.Get("Content-Type") != "application/json" || first.header.Get("ETag") == "" && c.status == 201, "headers %v", first.header)
			} else {
				p := first.wantProblem(t, c.status, c.code)
				assert.Truef(t, p.Final == c.code.Info().Final && p.Final == strings.Contains(p.Detail, "needs a new key"),
					"%s: final %t, detail %q", c.code, p.Final, p.Detail)
				switch c.code {
				case workflow.InvalidPayload:
					assert.Truef(t, len(p.Errors) == 2 && p.Errors[0].Pointer == "/to" && p.Errors[1].Pointer == "/weight", "%+v", p)
				case workflow.IllegalTransition:
					assert.Truef(t, p.State == sent && len(p.Allowed) == 0, "%+v", p)
				case workflow.GuardRefused:
					assert.Truef(t, p.State == packed && strings.Contains(p.Detail, "500 kg are too heavy"), "%+v", p)
				}
			}
			assert.Equalf(t, strings.HasPrefix(first.header.Get("Location"), "/v1/instances/"), c.status == 201,
				"Location %q", first.header.Get("Location"))
			// Stored refusals are replayed to the byte; others are decided again.
			stored := c.code == "" || c.code.Info().Final
			assert.Truef(t, again.status == first.status && string(again.body) == string(first.body),
				"the second answer is %d %s, the first %d %s", again.status, again.body, first.status, first.body)
			got := again.header.Get("Idempotent-Replayed") == "true"
			assert.Truef(t, got == stored && first.header.Get("Idempotent-Replayed") == "", "replayed: %t, want %t", got, stored)
			if stored {
				for _, h := range []string{"Location", "ETag", "Pawl-Position", "Content-Type"} {
					assert.Equalf(t, first.header.Get(h), again.header.Get(h), "%s in the replay and", h)
				}
			}
		})
	}
}

// The plainest client: "curl -X POST" sends no content type, and "curl -d" calls
// JSON a form.
func TestCommand_CurlContentType(t *testing.T) {
	s := newServer(t)
	created := s.do(http.MethodPost, "/v1/workflows/parcel/pack", []byte(`{"to":"Wien"}`),
		"Content-Type", "application/x-www-form-urlencoded", "Idempotency-Key", "a")
	created.want(t, http.StatusCreated)
	id := read[transitions.Result](t, created).Instance.String()
	s.do(http.MethodPost, "/v1/instances/"+id+"/stamp", nil, "Idempotency-Key", "b").want(t, http.StatusOK)
	s.do(http.MethodPost, "/v1/instances/"+id+"/stamp", []byte(`{}`), "Idempotency-Key", "c").
		wantProblem(t, http.StatusUnsupportedMediaType, workflow.UnsupportedMedia)
}
