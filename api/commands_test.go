package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
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
