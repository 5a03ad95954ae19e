package api_test

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// badBodies are bodies of a command with what is wrong with them.
var badBodies = map[string]struct {
	body string
	code workflow.Code
}{
	"missing fields":       {`{}`, workflow.InvalidPayload},
	"null":                 {`null`, workflow.InvalidPayload},
	"array":                {`[]`, workflow.InvalidPayload},
	"string":               {`"x"`, workflow.InvalidPayload},
	"number":               {`1`, workflow.InvalidPayload},
	"open":                 {`{"to":"x"`, workflow.InvalidPayload},
	"two values":           {`{"to":"x"}{"to":"y"}`, workflow.InvalidPayload},
	"comma":                {`{"to":"x",}`, workflow.InvalidPayload},
	"single quotes":        {`{'to':'x'}`, workflow.InvalidPayload},
	"no JSON":              {`to=x`, workflow.InvalidPayload},
	"white space only":     {` `, workflow.InvalidPayload},
	"deep":                 {`{"to":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, workflow.InvalidPayload},
	"deep and open":        {strings.Repeat(`{"a":`, 10_000), workflow.InvalidPayload},
	"1e400":                {`{"to":"x","weight":1e400}`, workflow.InvalidPayload},
	"-1e400":               {`{"to":"x","weight":-1e400}`, workflow.InvalidPayload},
	"past 2^53":            {`{"to":"x","weight":9007199254740993}`, workflow.InvalidPayload},
	"NaN":                  {`{"to":"x","weight":NaN}`, workflow.InvalidPayload},
	"leading zero":         {`{"to":"x","weight":01}`, workflow.InvalidPayload},
	"NUL, raw":             {"{\"to\":\"x\x00\"}", workflow.InvalidPayload},
	"NUL between":          {"{\"to\":\"x\"\x00}", workflow.InvalidPayload},
	"NUL, escaped":         {`{"to":"\u0000"}`, workflow.InvalidPayload},
	"NUL in a name":        {`{"to":"x","\u0000":1}`, workflow.InvalidPayload},
	"invalid UTF-8":        {"{\"to\":\"\xff\"}", workflow.InvalidPayload},
	"half a surrogate":     {`{"to":"\ud800"}`, workflow.InvalidPayload},
	"byte order mark":      {"\xef\xbb\xbf{\"to\":\"x\"}", workflow.InvalidPayload},
	"UTF-16":               {"\xff\xfe{\x00}\x00", workflow.InvalidPayload},
	"duplicate":            {`{"to":"x","to":"y"}`, workflow.InvalidPayload},
	"duplicate, escaped":   {`{"to":"x","t\u006f":"y"}`, workflow.InvalidPayload},
	"unknown field":        {`{"to":"x","colour":"red"}`, workflow.InvalidPayload},
	"other case":           {`{"To":"x"}`, workflow.InvalidPayload},
	"wrong type":           {`{"to":7}`, workflow.InvalidPayload},
	"wrong type, object":   {`{"to":{}}`, workflow.InvalidPayload},
	"fraction":             {`{"to":"x","weight":1.5}`, workflow.InvalidPayload},
	"number as text":       {`{"to":"x","weight":"1"}`, workflow.InvalidPayload},
	"past the rule":        {`{"to":"x","weight":1001}`, workflow.InvalidPayload},
	"empty where required": {`{"to":""}`, workflow.InvalidPayload},
	"too long":             {`{"to":"` + strings.Repeat("x", 101) + `"}`, workflow.InvalidPayload},
	"1 MiB and a byte":     {`{"to":"` + strings.Repeat("x", 1<<20-8) + `"}`, workflow.TooLarge},
	"10 MB":                {`{"to":"` + strings.Repeat("x", 10_000_000) + `"}`, workflow.TooLarge},
}

// manyStates are n more states of a query.
func manyStates(n int) (query string) {
	for i := range n {
		query += "&state=s" + strconv.Itoa(i)
	}
	return query
}

// inJSON are the headers of a request with a body.
func inJSON(more ...string) []string {
	return append([]string{"Content-Type", "application/json"}, more...)
}

// keyed are those of a command.
func keyed(more ...string) []string { return append(inJSON("Idempotency-Key", "a"), more...) }

// badRequests are requests with bad heads, for a server with the instance {id}.
var badRequests = []struct {
	name    string
	method  string
	path    string
	headers []string
	status  int
	code    workflow.Code
}{
	{"no key", "POST", "/v1/workflows/parcel/pack", []string{"Content-Type", "application/json"}, 400, workflow.KeyMissing},
	{"empty key", "POST", "/v1/workflows/parcel/pack", inJSON("Idempotency-Key", ""), 400, workflow.KeyMissing},
	{"empty quoted key", "POST", "/v1/workflows/parcel/pack", inJSON("Idempotency-Key", `""`), 400, workflow.KeyMissing},
	{"two keys", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Key", "b"), 400, workflow.KeyInvalid},
	{"open key", "POST", "/v1/workflows/parcel/pack", inJSON("Idempotency-Key", `"a`), 400, workflow.KeyInvalid},
	{"long key", "POST", "/v1/workflows/parcel/pack", inJSON("Idempotency-Key", strings.Repeat("k", 256)), 400, workflow.KeyInvalid},
	{"key in Latin-1", "POST", "/v1/workflows/parcel/pack", inJSON("Idempotency-Key", "\xe4"), 400, workflow.KeyInvalid},
	{"empty scope", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Scope", ""), 400, workflow.ScopeMissing},
	{"long scope", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Scope", strings.Repeat("s", 256)), 400, workflow.ScopeInvalid},
	{"long tenant", "POST", "/v1/workflows/parcel/pack", keyed("Pawl-Tenant", strings.Repeat("t", 65)), 400, workflow.InvalidRequest},
	{"tenant in Latin-1", "GET", "/v1/instances", []string{"Pawl-Tenant", "\xe4"}, 400, workflow.InvalidRequest},
	{"long actor", "POST", "/v1/workflows/parcel/pack", keyed("Pawl-Actor", strings.Repeat("t", 256)), 400, workflow.InvalidRequest},
	{"role in Latin-1", "GET", "/v1/instances", []string{"Pawl-Roles", "a,\xe4"}, 400, workflow.InvalidRequest},
	{"many roles", "GET", "/v1/instances", []string{"Pawl-Roles", strings.Repeat("r,", 65)}, 400, workflow.InvalidRequest},
	{"a misspelt header", "GET", "/v1/instances", []string{"Pawl-Role", "porter"}, 400, workflow.InvalidRequest},
	{"a header of the future", "POST", "/v1/instances/{id}/stamp", []string{"Idempotency-Key", "a", "Pawl-Not-After", "2030-01-01T00:00:00Z"},
		400, workflow.InvalidRequest},
	{"history of no workflow", "GET", "/v1/workflows/nothing/keys/1/history", nil, 404, workflow.WorkflowNotFound},
	{"history of no business key", "GET", "/v1/workflows/parcel/keys/1/history", nil, 404, workflow.InstanceNotFound},
	{"two tenants", "GET", "/v1/instances", []string{"Pawl-Tenant", "a", "Pawl-Tenant", "b"}, 400, workflow.InvalidRequest},
	{"bad If-Match", "POST", "/v1/instances/{id}/stamp", keyed("If-Match", "7"), 400, workflow.InvalidRequest},
	{"no content type", "POST", "/v1/commands", nil, 415, workflow.UnsupportedMedia},
	{"XML", "POST", "/v1/workflows/parcel/pack", []string{"Content-Type", "text/xml", "Idempotency-Key", "a"}, 415, workflow.UnsupportedMedia},
	{"NDJSON for one", "POST", "/v1/instances/{id}/stamp", []string{"Content-Type", "application/x-ndjson", "Idempotency-Key", "a"},
		415, workflow.UnsupportedMedia},
	{"broken content type", "POST", "/v1/commands", []string{"Content-Type", "application/json; ="}, 415, workflow.UnsupportedMedia},
	{"id is a word", "POST", "/v1/instances/x/stamp", keyed(), 400, workflow.InvalidRequest},
	{"id with braces", "GET", "/v1/instances/%7B{id}%7D", nil, 400, workflow.InvalidRequest},
	{"zero id", "GET", "/v1/instances/00000000-0000-0000-0000-000000000000", nil, 400, workflow.InvalidRequest},
	{"NUL in an id", "GET", "/v1/instances/%00", nil, 400, workflow.InvalidRequest},
	{"history of a word", "GET", "/v1/instances/x/history", nil, 400, workflow.InvalidRequest},
	{"options of a word", "GET", "/v1/instances/x/transitions", nil, 400, workflow.InvalidRequest},
	{"diagram of a word", "GET", "/v1/instances/x/diagram", nil, 400, workflow.InvalidRequest},
	{"NUL in a business key", "GET", "/v1/workflows/parcel/keys/%00", nil, 400, workflow.InvalidRequest},
	{"invalid UTF-8 in a business key", "GET", "/v1/workflows/parcel/keys/%ff", nil, 400, workflow.InvalidRequest},
	{"long business key", "GET", "/v1/workflows/parcel/keys/" + strings.Repeat("k", 256), nil, 400, workflow.InvalidRequest},
	{"NUL in a workflow", "GET", "/v1/workflows/%00", nil, 400, workflow.InvalidRequest},
	{"NUL in a transition", "POST", "/v1/workflows/parcel/%00", keyed(), 400, workflow.InvalidRequest},
	{"a transition like a path", "POST", "/v1/workflows/parcel/..%2fpack", keyed(), 404, workflow.TransitionNotFound},
	{"NUL in a scope", "GET", "/v1/commands/%00/k", nil, 400, workflow.ScopeInvalid},
	{"NUL in a key", "GET", "/v1/commands/s/%00", nil, 400, workflow.KeyInvalid},
	{"no key in the path", "GET", "/v1/commands/s/", nil, 400, workflow.KeyMissing},
	{"long key in the path", "GET", "/v1/commands/s/" + strings.Repeat("k", 256), nil, 400, workflow.KeyInvalid},
	{"an attribute that the workflow does not declare", "GET", "/v1/instances?workflow=parcel&attr.colour=red", nil, 400,
		workflow.InvalidRequest},
	{"unknown parameter", "GET", "/v1/instances?colour=red", nil, 400, workflow.InvalidRequest},
	{"unknown parameter of a command", "POST", "/v1/workflows/parcel/pack?dryrun=true", keyed(), 400, workflow.InvalidRequest},
	{"a parameter twice", "GET", "/v1/instances?order=created&order=created", nil, 400, workflow.InvalidRequest},
	{"a state twice", "GET", "/v1/instances?state=a&state=a", nil, 400, workflow.InvalidRequest},
	{"a state and an empty one", "GET", "/v1/instances?state=a&state=", nil, 400, workflow.InvalidRequest},
	{"too many states", "GET", "/v1/instances?state=0" + manyStates(100), nil, 400, workflow.InvalidRequest},
	{"NUL in a second state", "GET", "/v1/instances?state=a&state=%00", nil, 400, workflow.InvalidRequest},
	{"open as a number", "GET", "/v1/instances?open=1", nil, 400, workflow.InvalidRequest},
	{"definition 0", "GET", "/v1/instances?definition=0", nil, 400, workflow.InvalidRequest},
	{"definition of text", "GET", "/v1/instances?definition=two", nil, 400, workflow.InvalidRequest},
	{"definition past an integer", "GET", "/v1/instances?definition=2147483648", nil, 400, workflow.InvalidRequest},
	{"another order", "GET", "/v1/instances?order=-updated", nil, 400, workflow.InvalidRequest},
	{"created after no time", "GET", "/v1/instances?created_after=yesterday", nil, 400, workflow.InvalidRequest},
	{"created before a date", "GET", "/v1/instances?created_before=2026-01-31", nil, 400, workflow.InvalidRequest},
	{"updated after the zero time", "GET", "/v1/instances?updated_after=0001-01-01T00:00:00Z", nil, 400, workflow.InvalidRequest},
	{"updated before with a bare plus", "GET", "/v1/instances?updated_before=2026-01-31T12:00:00+01:00", nil, 400, workflow.InvalidRequest},
	{"created in no time", "GET", "/v1/instances?created_after=2026-01-31T12:00:00Z&created_before=2026-01-31T12:00:00Z", nil, 400,
		workflow.InvalidRequest},
	{"updated in no time", "GET", "/v1/instances?updated_after=2026-01-31T12:00:00Z&updated_before=2026-01-31T11:00:00Z", nil, 400,
		workflow.InvalidRequest},
	{"a cursor of the other order", "GET", "/v1/instances?order=updated&cursor=AQAAAAAAAAAAAAAAAAAAAAA", nil, 400, workflow.InvalidRequest},
	{"a cursor of updates, cut", "GET", "/v1/instances?order=updated&cursor=BgAA", nil, 400, workflow.InvalidRequest},
	{"counts by business key", "GET", "/v1/counts?business_key=a", nil, 400, workflow.InvalidRequest},
	{"counts of a state twice", "GET", "/v1/counts?state=a&state=a", nil, 400, workflow.InvalidRequest},
	{"counts of definition 0", "GET", "/v1/counts?definition=0", nil, 400, workflow.InvalidRequest},
	{"counts of open and shut", "GET", "/v1/counts?open=true&open=false", nil, 400, workflow.InvalidRequest},
	{"counts of no workflow", "GET", "/v1/counts?workflow=nothing", nil, 404, workflow.WorkflowNotFound},
	{"counts of everybody", "GET", "/v1/counts?all_tenants=true", []string{"Pawl-Roles", "operator"}, 403, workflow.Forbidden},
	{"If-Match with half a tag", "POST", "/v1/instances/{id}/send", keyed("If-Match", `"1.ab"`), 400, workflow.InvalidRequest},
	{"NUL in a parameter", "GET", "/v1/instances?state=%00", nil, 400, workflow.InvalidRequest},
	{"invalid UTF-8 in a parameter", "GET", "/v1/instances?attr.to=%ff", nil, 400, workflow.InvalidRequest},
	{"NUL in an attribute's name", "GET", "/v1/instances?attr.%00=x", nil, 400, workflow.InvalidRequest},
	{"long parameter", "GET", "/v1/instances?state=" + strings.Repeat("s", 256), nil, 400, workflow.InvalidRequest},
	{"broken escape", "GET", "/v1/instances?state=%zz", nil, 400, workflow.InvalidRequest},
	{"limit 0", "GET", "/v1/instances?limit=0", nil, 400, workflow.InvalidRequest},
	{"limit 1001", "GET", "/v1/instances?limit=1001", nil, 400, workflow.InvalidRequest},
	{"limit +5", "GET", "/v1/events?limit=%2B5", nil, 400, workflow.InvalidRequest},
	{"limit abc", "GET", "/v1/events?limit=abc", nil, 400, workflow.InvalidRequest},
	{"a cursor of ours with a letter more", "GET", "/v1/instances?cursor=AQGTaw56bHAAgAAAAAAAAAEA", nil, 400, workflow.InvalidRequest},
	{"a cursor that is a word", "GET", "/v1/instances?cursor=next", nil, 400, workflow.InvalidRequest},
	{"past, twice", "GET", "/v1/instances/{id}?version=1&at=2030-01-31T12:00:00Z", nil, 400, workflow.InvalidRequest},
	{"past, version 0", "GET", "/v1/instances/{id}?version=0", nil, 400, workflow.InvalidRequest},
	{"past, negative version", "GET", "/v1/instances/{id}?version=-1", nil, 400, workflow.InvalidRequest},
	{"past, huge version", "GET", "/v1/instances/{id}?version=9223372036854775808", nil, 400, workflow.InvalidRequest},
	{"past, no version", "GET", "/v1/instances/{id}?version=", nil, 400, workflow.InvalidRequest},
	{"past, no time", "GET", "/v1/instances/{id}?at=", nil, 400, workflow.InvalidRequest},
	{"past, a date", "GET", "/v1/instances/{id}?at=2030-01-31", nil, 400, workflow.InvalidRequest},
	{"past, a plus", "GET", "/v1/instances/{id}?at=2030-01-31T12:00:00+01:00", nil, 400, workflow.InvalidRequest},
	{"past, a day too many", "GET", "/v1/instances/{id}?at=2030-02-31T12:00:00Z", nil, 400, workflow.InvalidRequest},
	{"past, version beyond", "GET", "/v1/instances/{id}?version=9", nil, 404, workflow.InstanceNotFound},
	{"past, before it was", "GET", "/v1/instances/{id}?at=0001-01-01T00:00:00Z", nil, 404, workflow.InstanceNotFound},
	{"past of nothing", "GET", "/v1/instances/01936b0e-0000-7000-8000-000000000000?version=1", nil, 404, workflow.InstanceNotFound},
	{"past of no key", "GET", "/v1/workflows/parcel/keys/none?version=1", nil, 404, workflow.InstanceNotFound},
	{"past of no workflow", "GET", "/v1/workflows/nothing/keys/none?version=1", nil, 404, workflow.WorkflowNotFound},
	{"negative version", "GET", "/v1/instances/{id}/history?after=-1", nil, 400, workflow.InvalidRequest},
	{"huge version", "GET", "/v1/instances/{id}/history?after=9223372036854775808", nil, 400, workflow.InvalidRequest},
	{"version of a workflow", "GET", "/v1/workflows/parcel?version=0", nil, 400, workflow.InvalidRequest},
	{"after is a word", "GET", "/v1/events?after=later", nil, 400, workflow.InvalidRequest},
	{"after is negative", "GET", "/v1/events?after=-1", nil, 400, workflow.InvalidRequest},
	{"after the end", "GET", "/v1/events?after=9223372036854775807", nil, 400, workflow.InvalidRequest},
	{"instance of events", "GET", "/v1/events?instance=x", nil, 400, workflow.InvalidRequest},
	{"neither JSON nor stream", "GET", "/v1/events", []string{"Accept", "text/html"}, 406, workflow.NotAcceptable},
	{"limit of a stream", "GET", "/v1/events?limit=5", []string{"Accept", "text/event-stream"}, 400, workflow.InvalidRequest},
	{"last event is a word", "GET", "/v1/events", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, 400, workflow.InvalidRequest},
	{"last event after the end", "GET", "/v1/events", []string{"Accept", "text/event-stream", "Last-Event-ID", "99999"}, 400,
		workflow.InvalidRequest},
	{"no WebSocket", "GET", "/v1/stream", nil, 400, workflow.InvalidRequest},
	{"a parameter of the stream", "GET", "/v1/stream?after=1", nil, 400, workflow.InvalidRequest},
	{"verify a word", "GET", "/v1/ops/verify?instance=x", nil, 400, workflow.InvalidRequest},
}

func TestBadInputIsRefusedAndLeavesNoTrace(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	s.post("/v1/workflows/parcel/label", uuid.NewString(), `{"to":"x","label":"K"}`).want(t, 201)
	before := s.rows()
	for name, c := range badBodies {
		s.post("/v1/workflows/parcel/pack", uuid.NewString(), c.body).wantProblem(t, c.code.Info().Status, c.code)
		if name != "missing fields" && name != "white space only" && name != "empty where required" && name != "too long" &&
			name != "past the rule" {
			s.post("/v1/instances/"+id+"/stamp", uuid.NewString(), c.body).wantProblem(t, c.code.Info().Status, c.code)
			s.post("/v1/workflows/parcel/keys/K/stamp", uuid.NewString(), c.body).wantProblem(t, c.code.Info().Status, c.code)
		}
		s.post("/v1/workflows/parcel/pack?dry_run=true", uuid.NewString(), c.body).wantProblem(t, c.code.Info().Status, c.code)
		require.Falsef(t, t.Failed(), "with a body that is: %s", name)
	}
	for _, c := range badRequests {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(c.method, strings.ReplaceAll(c.path, "{id}", id), nil, c.headers...)
			p := a.wantProblem(t, c.status, c.code)
			assert.Truef(t, len(a.body) <= 2000, "the problem document has %d bytes: %.300s", len(a.body), p.Detail)
		})
	}
	after := s.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
	s.packed("1") // it still serves
}

// TestServer_NotHTTP sends what no client library would send. These
// requests net/http answers itself.
func TestServer_NotHTTP(t *testing.T) {
	s := newServer(t)
	before := s.rows()
	const head = "POST /v1/workflows/parcel/pack HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, request := range map[string]string{
		"NUL in a header":         head + "Idempotency-Key: a\x00b\r\nContent-Length: 11\r\n\r\n{\"to\":\"xx\"}",
		"line break in a header":  head + "Idempotency-Key: a\rb\r\nContent-Length: 11\r\n\r\n{\"to\":\"xx\"}",
		"NUL in the path":         "GET /v1/instances/\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"no host":                 "GET /v1/instances HTTP/1.1\r\n\r\n",
		"two lengths":             head + "Idempotency-Key: a\r\nContent-Length: 11\r\nContent-Length: 12\r\n\r\n{\"to\":\"xx\"}",
		"a head without an end":   "GET /v1/instances HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"a broken chunk":          head + "Idempotency-Key: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
		"less than was announced": head + "Idempotency-Key: a\r\nContent-Length: 100\r\n\r\n{\"to\":\"xx\"}",
	} {
		t.Run(name, func(t *testing.T) {
			socket, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer socket.Close()
			require.NoError(t, socket.SetDeadline(time.Now().Add(20*time.Second)))
			go func() {
				_, _ = socket.Write([]byte(request)) // the server may hang up while we write
				_ = socket.(*net.TCPConn).CloseWrite()
			}()
			response, err := http.ReadResponse(bufio.NewReader(socket), nil)
			if err != nil {
				return // it hung up
			}
			defer response.Body.Close()
			assert.Truef(t, response.StatusCode >= 400 && response.StatusCode < 500, "status %d", response.StatusCode)
		})
	}
	after := s.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
	s.packed("1")
}

func TestBodiesOfUnknownLengthAreBounded(t *testing.T) {
	s := newServer(t)
	for _, size := range []int{90, 1 << 20, 10_000_000} {
		body := `{"to":"` + strings.Repeat("x", size) + `"}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/workflows/parcel/pack", strings.NewReader(body))
		require.NoError(t, err)
		r.ContentLength = -1
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		a := s.send(r)
		if size == 90 {
			a.want(t, 201)
			continue
		}
		a.wantProblem(t, 413, workflow.TooLarge)
	}
}
