package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (s *server) bulk(media, body, query string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/commands"+query, []byte(body), "Content-Type", media)
}

// bulkItems is one of each, with what it gets.
func bulkItems(id string) []struct {
	item string
	code int
	want workflow.Code
} {
	return []struct {
		item string
		code int
		want workflow.Code
	}{
		{`{"workflow":"parcel","transition":"pack","key":"1","payload":{"to":"Wien"}}`, 201, ""},
		{`{"workflow":"parcel","transition":"label","key":"2","payload":{"to":"Wien","label":"B-1"}}`, 201, ""},
		{`{"workflow":"parcel","transition":"stamp","business_key":"B-1","key":"3"}`, 200, ""},
		{`{"transition":"stamp","instance":"` + id + `","key":"4","payload":{},"if_version":1,"scope":"bulk"}`, 200, ""},
		{`{"transition":"stamp","instance":"` + id + `","key":"5","if_version":1}`, 412, workflow.VersionConflict},
		{`{"workflow":"parcel","transition":"pack","key":"1","payload":{"to":"Wien"}}`, 201, ""}, // a replay
		{`{"workflow":"parcel","transition":"pack","key":"1","payload":{"to":"Graz"}}`, 422, workflow.KeyReused},
		{`{"workflow":"parcel","transition":"pack","payload":{"to":"Wien"}}`, 400, workflow.KeyMissing},
		{`{"workflow":"parcel","transition":"pack","key":"6","payload":{}}`, 400, workflow.InvalidPayload},
		{`{"workflow":"parcel","transition":"pack","key":"6","payload":null}`, 400, workflow.InvalidPayload},
		{`{"workflow":"parcel","transition":"pack","key":"6","payload":[1e400]}`, 400, workflow.InvalidPayload},
		{`{"workflow":"parcel","transition":"pack","key":"6","scope":"","payload":{}}`, 400, workflow.ScopeMissing},
		{`{"workflow":"parcel","transition":"pack","key":"6","colour":"red"}`, 400, workflow.InvalidRequest},
		{`{"workflow":"parcel","transition":"pack","key":"6","key":"7"}`, 400, workflow.InvalidRequest},
		{`{"transition":"stamp","instance":"x","key":"6"}`, 400, workflow.InvalidRequest},
		{`{"transition":"stamp","instance":"` + uuid.Nil.String() + `","key":"6"}`, 400, workflow.InvalidRequest},
		{`{"transition":"stamp","instance":"` + id + `","key":"6","if_version":0}`, 400, workflow.InvalidRequest},
		{`{"transition":"stamp","instance":"` + id + `","business_key":"B-1","workflow":"parcel","key":"6"}`, 400, workflow.InvalidRequest},
		{`{"transition":"stamp","instance":"` + uuid.NewString() + `","key":"6"}`, 404, workflow.InstanceNotFound},
		{`{"workflow":"nothing","transition":"stamp","key":"6"}`, 404, workflow.WorkflowNotFound},
		{`{"key":"6"}`, 400, workflow.InvalidRequest},
		{`"pack"`, 400, workflow.InvalidRequest},
		{`null`, 400, workflow.InvalidRequest},
		{`[]`, 400, workflow.InvalidRequest},
		{`{"key":"\u0000","workflow":"parcel","transition":"pack"}`, 400, workflow.KeyInvalid},
		{"{\"key\":\"\xff\",\"workflow\":\"parcel\",\"transition\":\"pack\"}", 400, workflow.InvalidRequest},
		{`{"workflow":"parcel","transition":"pack","key":"last","payload":{"to":"Wien"}}`, 201, ""},
	}
}

func TestBulkAnswersEveryItemInOrder(t *testing.T) {
	for media, join := range map[string]func([]string) string{
		"application/json":     func(items []string) string { return "[" + strings.Join(items, ", ") + "]" },
		"application/x-ndjson": func(items []string) string { return strings.Join(items, "\r\n") + "\n\n" },
	} {
		t.Run(media, func(t *testing.T) {
			s := newServer(t)
			cases := bulkItems(s.packed("1").String())
			var items []string
			for _, c := range cases {
				items = append(items, c.item)
			}
			a := s.bulk(media, join(items), "")
			a.want(t, 200)
			results := read[[]wire.BulkResult](t, a)
			require.Len(t, results, len(cases), "results for commands")
			for i, r := range results {
				c := cases[i]
				if r.Status != c.code {
					t.Errorf("%.100s: %d %s, want %d %s", c.item, r.Status, r.Body, c.code, c.want)
					continue
				}
				var problem transitions.Problem
				if c.want != "" {
					if err := json.Unmarshal(r.Body, &problem); err != nil || problem.Code != c.want || problem.Status != c.code {
						t.Errorf("%.100s: %s, want %s", c.item, r.Body, c.want)
					}
				}
				want := i == 5
				assert.Equalf(t, want, r.Replayed, "%.100s: replayed", c.item)
			}
			assert.Equalf(t, string(results[5].Body), string(results[0].Body),
				"the replay %s is not the answer %s", results[5].Body, results[0].Body)
			single := s.post("/v1/workflows/parcel/pack", "1", `{"to":"Wien"}`)
			assert.Equalf(t, string(results[0].Body), string(single.body),
				"the single request is answered %s, the bulk one %s", single.body, results[0].Body)
		})
	}
}

func TestBulk_UnreadableRequest(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Limits.BulkItems, c.Limits.BulkBody = 10, 10_000 })
	good := `{"workflow":"parcel","transition":"pack","key":"1","payload":{"to":"Wien"}}`
	before := s.rows()
	for name, c := range map[string]struct {
		media, body string
		status      int
		code        workflow.Code
	}{
		"empty":             {"application/json", ``, 400, workflow.InvalidRequest},
		"an object":         {"application/json", good, 400, workflow.InvalidRequest},
		"open":              {"application/json", `[` + good, 400, workflow.InvalidRequest},
		"broken in the end": {"application/json", `[` + good + `,{"key":]`, 400, workflow.InvalidRequest},
		"something follows": {"application/json", `[` + good + `] []`, 400, workflow.InvalidRequest},
		"a comma too many":  {"application/json", `[` + good + `,]`, 400, workflow.InvalidRequest},
		"deep":              {"application/json", `[` + strings.Repeat("[", 4000) + `]`, 400, workflow.InvalidRequest},
		"too many":          {"application/json", `[` + strings.Repeat(`1,`, 10) + `1]`, 413, workflow.TooLarge},
		"too many lines":    {"application/x-ndjson", strings.Repeat("1\n", 11), 413, workflow.TooLarge},
		"too large":         {"application/json", `["` + strings.Repeat("x", 10_000) + `"]`, 413, workflow.TooLarge},
		"no type":           {"", `[` + good + `]`, 415, workflow.UnsupportedMedia},
		"a form":            {"application/x-www-form-urlencoded", `[` + good + `]`, 415, workflow.UnsupportedMedia},
		"text":              {"text/plain", `[` + good + `]`, 415, workflow.UnsupportedMedia},
	} {
		s.bulk(c.media, c.body, "").wantProblem(t, c.status, c.code)
		require.Falsef(t, t.Failed(), "with a body that is %s", name)
	}
	for table, n := range s.rows() {
		assert.Equalf(t, before[table], n, "%s has rows, had", table)
	}
	for _, body := range []string{`[]`, ` [ ] `} {
		a := s.bulk("application/json", body, "")
		assert.Truef(t, a.status == 200 && string(a.body) == "[]", "%q: %d %s", body, a.status, a.body)
	}
	a := s.bulk("application/x-ndjson", "\n \n", "")
	assert.Truef(t, a.status == 200 && string(a.body) == "[]", "blank lines: %d %s", a.status, a.body)
}

func TestBulkDryRunChangesNothing(t *testing.T) {
	s := newServer(t)
	before := s.rows()
	a := s.bulk(
		"application/json",
		`[{"workflow":"parcel","transition":"pack","payload":{"to":"Wien"}},{"workflow":"parcel","transition":"pack"},7]`,
		"?dry_run=true",
	)
	a.want(t, 200)
	results := read[[]wire.BulkResult](t, a)
	if results[0].Status != 201 || results[1].Status != 400 || results[2].Status != 400 || a.header.Get("Pawl-Dry-Run") != "true" {
		t.Errorf("%s", a.body)
	}
	for table, n := range s.rows() {
		assert.Equalf(t, before[table], n, "%s has rows, had", table)
	}
}
