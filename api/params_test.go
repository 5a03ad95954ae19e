package api

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// cursorOf decodes a text as a cursor of one list, and encodes it again.
func cursorOf[T any](c cursor[T]) func(string) (string, error) {
	return func(s string) (string, error) {
		last, err := c.decode(s)
		return c.encode(&last), err
	}
}

// A text is a cursor of one list at most, and each cursor has one text.
func FuzzCursors(f *testing.F) {
	lists := []func(string) (string, error){cursorOf(byCreation), cursorOf(byUpdate), cursorOf(byStart), cursorOf(byStuck), cursorOf(byInFlight),
		cursorOf(byPause), cursorOf(byTenant), cursorOf(byDead), cursorOf(byMessage), cursorOf(byReceipt), cursorOf(byMaking)}
	stuck := transitions.Record{UpdatedAt: noon, Scope: strings.Repeat("s", 255), Key: strings.Repeat("k", 255)}
	message := inspect.DeadMessage{CreatedAt: noon, MessageRef: transitions.MessageRef{Consumer: strings.Repeat("c", transitions.MaxConsumer),
		ID: strings.Repeat("i", transitions.MaxKey)}}
	got, err := byMessage.decode(byMessage.encode(&message))
	require.NoError(f, err)
	require.Equal(f, message, got)
	longest := []string{byStuck.encode(&stuck), byMessage.encode(&message)}
	for _, s := range append(longest, byCreation.encode(&inspect.Place{ID: uuid.New()}), byTenant.encode(&inspect.SinkCursor{Tenant: "acme"}),
		byDead.encode(&inspect.DeadLetter{Tenant: "acme", Instance: uuid.Max, Position: maxPosition, Ordinal: 7}),
		byStuck.encode(&transitions.Record{Scope: "s", Key: "k"}), "", "AQ", "AgAF", "BQ", "BAAA", "AQGTaw56bHAAgAAAAAAAAAEA", longest[0]+"\n") {
		f.Add(s)
	}
	for _, s := range longest {
		require.LessOrEqual(f, len(s), maxCursor)
	}
	f.Fuzz(func(t *testing.T, s string) {
		taken := 0
		for _, list := range lists {
			if again, err := list(s); err == nil {
				assert.Equal(t, s, again)
				taken++
			} else {
				assert.Equal(t, workflow.InvalidRequest, workflow.CodeOf(err))
			}
		}
		assert.LessOrEqual(t, taken, 1, "lists take it")
	})
}

// asked is a request for a route with these parameters.
func asked(raw string, declared ...Param) *request {
	return &request{Request: &http.Request{URL: &url.URL{RawQuery: raw}}, route: &Route{Params: declared, EmptyIsNone: true}}
}

func TestQueryRefusesWhatItDoesNotKnow(t *testing.T) {
	for raw, ok := range map[string]bool{
		"": true, "workflow=order&limit=5": true, "attr.city=Graz": true, "attr.city=": true, "workflow=": true,
		"unknown=1": false, "workflow=a&workflow=b": false, "workflow=%00": false, "workflow=%ff": false, "attr.=x": false,
		"attr.%00=x": false, "a%zz=1": false, "workflow=a;b": false, "Workflow=a": false, "order=size": false, "state=a&state=b": true,
		"state=a&state=": false, "state=a&state=a": false, "workflow=&workflow=": false, "Prefer=wait": false, "key=1": false,
		"workflow=" + strings.Repeat("x", maxText+1): false, strings.Repeat("x", 10_000) + "=1": false,
		"cursor=" + strings.Repeat("x", maxCursor): true, "cursor=" + strings.Repeat("x", maxCursor+1): false,
	} {
		err := asked(raw, ofFlow, ofStates, pageLimit, pageCursor, attributes, inOrder, preferWait, pathParams["key"]).readQuery()
		assert.Falsef(t, ok && err != nil, "%.50q: %v", raw, err)
		assert.Falsef(t, !ok && workflow.CodeOf(err) != workflow.InvalidRequest, "%.50q was not refused: %v", raw, err)
		assert.Falsef(t, err != nil && len(err.Error()) > 300, "%.50q: a long message: %v", raw, err)
	}
}

func TestIntegersAreBounded(t *testing.T) {
	for value, want := range map[string]int{
		"1": 1, "1000": 1000, "0": -1, "1001": -1, "-5": -1, "1e2": -1, "": 100, "%201": -1, "99999999999999999999": -1, "1.0": -1, "0x10": -1,
	} {
		r := asked("limit="+value, pageLimit)
		err := r.readQuery()
		assert.Truef(t, want < 0 == (err != nil) && (want < 0 || r.limit() == want), "limit=%s: %d, %v", value, r.limit(), err)
	}
	assert.Equal(t, 100, asked("", pageLimit).limit(), "no limit")
}

// A handler that reads an undeclared parameter panics in every test.
func TestHandlerReadsDeclaredParameters(t *testing.T) {
	r := asked("limit=5", pageLimit, itsKey[0])
	for name, read := range map[string]func(){
		"no such parameter": func() { r.text("workflow") },
		"another kind":      func() { r.text("limit") },
		"a header":          func() { r.value(headerKey, Key) },
		"no such header":    func() { r.with(headerPrefer) },
		"attributes":        func() { r.attributes() },
		"several":           func() { r.texts("state") },
	} {
		func() {
			defer func() {
				assert.NotNilf(t, recover(), "%s: it was read", name)
			}()
			read()
		}()
	}
}

func TestNoAuthentication_LoopbackHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST:1": true, "127.0.0.1:80": true, "127.9.9.9": true, "[::1]:8080": true,
		"[::1]":                true,
		"[::ffff:127.0.0.1]:1": true,
		"":                     false, "example.com": false, "example.com:80": false, "localhost.example.com": false, "127.0.0.1.nip.io": false,
		"10.0.0.1": false,
		"[::2]:80": false, "0.0.0.0": false, "localhost@evil": false,
	} {
		assert.Equalf(t, want, isLoopback(host), "Host %q", host)
	}
}

func TestLoopbackCallersNameThemselves(t *testing.T) {
	r := requestWith(headerTenant, "acme")
	r.Method, r.Host = "GET", "localhost"
	r.Header.Set(headerActor, "ann")
	r.Header.Set(headerRoles, "clerk, , boss")
	c, err := Loopback(r)
	assert.Truef(t, err == nil && c.Tenant == "acme" && c.Actor == "ann" && strings.Join(c.Roles, "|") == "clerk|boss",
		"%+v, %v", c, err)
	r.Header.Set(headerRoles, "")
	c, err = Loopback(r)
	assert.Truef(t, err == nil && len(c.Roles) == 0, "an empty list of roles gave %q, %v", c.Roles, err)
	r.Header = http.Header{}
	if c, err = Loopback(r); err != nil || c.Tenant != "default" || c.Actor != "local" || strings.Join(c.Roles, "") != "*" {
		t.Errorf("nothing named gave %+v, %v", c, err)
	}
	r.Method = "POST"
	r.Header.Set("Origin", "https://example.com")
	_, err = Loopback(r)
	assert.Equalf(t, workflow.Forbidden, workflow.CodeOf(err), "another origin: %v", err)
}
