package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

func TestAnInstanceIsShownAsItWas(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "1", `{"to":"Wien","weight":5,"label":"L-1"}`)
	a.want(t, 201)
	id := a.header.Get("Location")
	for _, key := range []string{"a", "b"} {
		s.post(id+"/stamp", key, `{}`).want(t, 200)
	}
	s.post(id+"/send", "s", `{}`, "Pawl-Actor", "mia").want(t, 200)
	entries := read[wire.History](t, s.get(id+"/history")).Entries
	for _, e := range entries {
		byVersion := s.get(id + "?version=" + string('0'+rune(e.Version)))
		byVersion.want(t, 200)
		got := read[wire.PastInstance](t, byVersion)
		assert.Truef(t, got.Version == e.Version && got.State == e.To && string(got.Data) == string(e.Data) && got.Newest == 4 &&
			got.Open == (e.Version < 4) && got.BusinessKey == "L-1" && got.Workflow == "parcel" && got.UpdatedAt.Equal(e.At) && !got.Erased,
			"version %d: %s", e.Version, byVersion.body)
		assert.Equal(t, "", byVersion.header.Get("ETag"), "a past version has an ETag")
		at := url.QueryEscape(e.At.In(time.FixedZone("", 2*3600)).Format(time.RFC3339Nano))
		for what, path := range map[string]string{
			"by time":                     id + "?at=" + at,
			"by business key":             "/v1/workflows/parcel/keys/L-1?version=" + string('0'+rune(e.Version)),
			"by business key and by time": "/v1/workflows/parcel/keys/L-1?at=" + at,
		} {
			if a := s.get(path); string(a.body) != string(byVersion.body) {
				t.Errorf("version %d %s: %s", e.Version, what, a.body)
			}
		}
	}
	s.get(id+"?version=1", "Pawl-Tenant", "other").wantProblem(t, 404, workflow.InstanceNotFound)
	_, err := s.pool.Exec(t.Context(), `UPDATE pawl.audit SET data = NULL, data_digest = sha256('x') WHERE version = 2`)
	require.NoError(t, err)
	body := string(s.get(id + "?version=2").body)
	assert.Truef(t, strings.Contains(body, `"erased":true`) && !strings.Contains(body, `"data"`), "erased: %s", body)
}
