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

func (s *server) bulk(media, body, query string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/commands"+query, []byte(body), append(headers, "Content-Type", media)...)
}

func TestBulkAnswersEveryItemInOrder(t *testing.T) {
	for media, join := range map[string]func([]string) string{
		"application/json":     func(items []string) string { return "[" + strings.Join(items, ", ") + "]" },
		"application/x-ndjson": func(items []string) string { return strings.Join(items, "\r\n") + "\n\n" },
	} {
		s := newServer(t)
		id := s.packed("1").String()
		pack, stamp := `{"workflow":"parcel","transition":"pack","key":"`, `{"transition":"stamp","instance":"`+id+`","key":"`
		cases := []struct {
			item string
			code int
			want workflow.Code
		}{
			{pack + `1","payload":{"to":"Wien"}}`, 201, ""},
			{`{"workflow":"parcel","transition":"label","key":"2","payload":{"to":"Wien","label":"B-1"}}`, 201, ""},
			{`{"workflow":"parcel","transition":"stamp","business_key":"B-1","key":"3"}`, 200, ""},
			{stamp + `4","payload":{},"if_version":1,"scope":"bulk"}`, 200, ""},
			{stamp + `5","if_version":1}`, 412, workflow.VersionConflict},
			{pack + `1","payload":{"to":"Wien"}}`, 201, ""}, // a replay
			{pack + `1","payload":{"to":"Graz"}}`, 422, workflow.KeyReused},
			{pack + `","payload":{"to":"Wien"}}`, 400, workflow.KeyMissing},
			{pack + `6","payload":[1e400]}`, 400, workflow.InvalidPayload},
			{pack + `6","scope":"","payload":{}}`, 400, workflow.ScopeMissing},
			{pack + `6","colour":"red"}`, 400, workflow.InvalidRequest},
			{pack + `6","key":"7"}`, 400, workflow.InvalidRequest},
			{`{"transition":"stamp","instance":"x","key":"6"}`, 400, workflow.InvalidRequest},
			{stamp + `6","if_version":0}`, 400, workflow.InvalidRequest},
			{stamp + `6","business_key":"B-1","workflow":"parcel"}`, 400, workflow.InvalidRequest},
			{`{"transition":"stamp","instance":"` + uuid.NewString() + `","key":"6"}`, 404, workflow.InstanceNotFound},
			{`null`, 400, workflow.InvalidRequest},
			{pack + `\u0000"}`, 400, workflow.KeyInvalid},
			{pack + "\xff\"}", 400, workflow.InvalidRequest},
			{pack + `last","payload":{"to":"Wien"}}`, 201, ""},
		}
		var items []string
		for _, c := range cases {
			items = append(items, c.item)
		}
		results := read[[]wire.BulkResult](t, s.bulk(media, join(items), ""))
		require.Len(t, results, len(cases), "results for commands")
		for i, r := range results {
			var problem transitions.Problem
			if r.Status >= 400 {
				require.NoError(t, json.Unmarshal(r.Body, &problem))
			}
			assert.Truef(t, r.Status == cases[i].code && problem.Code == cases[i].want && r.Replayed == (i == 5), "%s: %+v", cases[i].item, r)
		}
		for _, again := range [][]byte{results[5].Body, s.post("/v1/workflows/parcel/pack", "1", `{"to":"Wien"}`).body} {
			assert.Equal(t, string(results[0].Body), string(again))
		}
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
