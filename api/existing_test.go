package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
)

// The instance that has a business key is another caller's. A creation with that key tells a caller who may not read it nothing else.
func TestExistingInstanceNeedsRead(t *testing.T) {
	t.Parallel()
	g := newGuarded(t) // it has the parcel L-1
	g.post("/v1/workflows/parcel/claim", "c", `{"to":"Graz","label":"L-2"}`, g.with("submit")...).want(t, http.StatusCreated)
	secrets := []string{g.instance.String(), "packed", `"version"`, `"at"`, `"state"`}
	for _, tt := range []struct {
		name, path, body string
		status           int
	}{
		{"creation", "/v1/workflows/parcel/label", `{"to":"Graz","label":"L-1"}`, 200},
		{"dry run", "/v1/workflows/parcel/label?dry_run=true", `{"to":"Graz","label":"L-1"}`, 200},
		{"by business key", "/v1/workflows/parcel/keys/L-1/label", `{"to":"Graz","label":"L-1"}`, 200},
		{"refused", "/v1/workflows/parcel/claim", `{"to":"Graz","label":"L-1"}`, 409},
		{"refused dry run", "/v1/workflows/parcel/claim?dry_run=true", `{"to":"Graz","label":"L-1"}`, 409},
	} {
		for _, grants := range []string{"submit", "submit read:delivery", "submit:parcel/label submit:parcel/claim", "submit read:parcel#L-2"} {
			a := g.post(tt.path, uuid.NewString(), tt.body, g.with(grants)...)
			a.want(t, tt.status)
			seen := string(a.body) + a.header.Get("ETag") + a.header.Get("Location")
			for _, secret := range secrets {
				assert.NotContainsf(t, seen, secret, "%s with %q", tt.name, grants)
			}
			assert.Falsef(t, tt.status == 200 && string(a.body) != `{"workflow":"parcel","transition":"label","existing":true}`,
				"%s with %q: %s", tt.name, grants, a.body)
		}
		for _, grants := range []string{"submit read", "submit read:parcel", "submit read:parcel#L-1"} {
			a := g.post(tt.path, uuid.NewString(), tt.body, g.with(grants)...)
			a.want(t, tt.status)
			assert.Containsf(t, string(a.body), g.instance.String(),
				"%s with %q does not name the instance: %s", tt.name, grants, a.body)
		}
	}
	for _, dry := range []string{"", "?dry_run=true"} {
		items := `[{"workflow":"parcel","transition":"label","key":"b1` + dry + `","payload":{"to":"Graz","label":"L-1"}},` +
			`{"workflow":"parcel","transition":"claim","key":"b2` + dry + `","payload":{"to":"Graz","label":"L-1"}}]`
		a := g.post("/v1/commands"+dry, "", items, g.with("submit")...)
		for _, one := range read[[]wire.BulkResult](t, a) {
			if body := string(one.Body); strings.Contains(body, g.instance.String()) || strings.Contains(body, "packed") {
				t.Errorf("bulk%s: %d %s", dry, one.Status, body)
			}
		}
	}
}

// A caller that could have sent a command may cancel it, and sees only its status.
func TestCancelAnswerNeedsRead(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	path := "/v1/commands/parcel:label/k"
	for grants, whole := range map[string]bool{"submit": false, "submit read:delivery": false, "submit read": true, "submit read:parcel#L-1": true} {
		a := g.do(http.MethodDelete, path, nil, g.with(grants)...)
		a.want(t, 200)
		got := strings.Contains(string(a.body), g.instance.String()) && strings.Contains(string(a.body), `"result"`)
		assert.Equalf(t, whole, got, "with %q: %s", grants, a.body)
		s := read[wire.CommandStatus](t, a)
		assert.Truef(t, s.Status == "succeeded" && s.Key == "k", "with %q: %+v", grants, s)
	}
}
