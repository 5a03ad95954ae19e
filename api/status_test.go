package api

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func TestWhenToLookAgainAtACommandInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		record transitions.Record
		want   string
	}{
		"worked on":      {transitions.Record{Status: transitions.Processing, LockedUntil: noon.Add(time.Minute)}, "1"},
		"due":            {transitions.Record{Status: transitions.Pending, RunAt: noon.Add(-time.Second)}, "1"},
		"soon":           {transitions.Record{Status: transitions.FailedRetryable, RunAt: noon.Add(6500 * time.Millisecond)}, "7"},
		"in a year":      {transitions.Record{Status: transitions.Pending, RunAt: noon.AddDate(1, 0, 0)}, "60"},
		"by an operator": {transitions.Record{Status: transitions.FailedRetryable, Stuck: "unknown_outcome"}, "60"},
	} {
		assert.Equalf(t, c.want, seconds(lookAgain(&c.record, noon)), "%s seconds", name)
	}
}

func FuzzTheAddressOfACommandLeadsToIt(f *testing.F) {
	for _, s := range [][2]string{
		{"order:pay", "k"}, {"a/b", "c/d"}, {".", ".."}, {"..", "."}, {"%2F", "%"}, {"a b", "?x=1#y"}, {"ä", "\xff"}, {"//", "/"}, {"a", "b/"},
		{";", "+&="},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, scope, key string) {
		if scope == "" || scope == "/" || key == "" {
			return
		}
		mux := http.NewServeMux()
		found := false
		mux.HandleFunc("GET /v1/commands/{scope}/{key...}", func(_ http.ResponseWriter, r *http.Request) {
			found = r.PathValue("scope") == scope && r.PathValue("key") == key
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, commandPath(scope, key), nil))
		assert.Truef(t, found, "%q, %q: %s leads elsewhere", scope, key, commandPath(scope, key))
	})
}

func FuzzStuckCursor(f *testing.F) {
	last := transitions.Record{UpdatedAt: noon, Scope: strings.Repeat("s", 255), Key: strings.Repeat("k", 255)}
	n := len(byStuck.encode(&last))
	require.Truef(f, n <= maxCursor, "a cursor may have %d bytes", n)
	f.Add(byStuck.encode(&last))
	f.Add(byStuck.encode(&transitions.Record{Scope: "s", Key: "k"}))
	f.Add("AgAF")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := byStuck.decode(s)
		assert.Falsef(t, err == nil && (byStuck.encode(&got) != s || got.Scope == "" || got.Key == ""), "%q was taken for %+v", s, got)
	})
}

func TestCursorsOfOneListAreNotTakenForAnothers(t *testing.T) {
	last := transitions.Record{UpdatedAt: noon, Scope: "s", Key: "k"}
	cursor := byStuck.encode(&last)
	got, err := byStuck.decode(cursor)
	assert.Truef(t, err == nil && got.UpdatedAt.Equal(noon) && got.Scope == "s" && got.Key == "k", "%+v, %v", got, err)
	_, err = byCreation.decode(cursor)
	assert.Error(t, err, "it is a cursor of the list of instances, too")
	_, err = byStuck.decode("AQGTaw56bHAAgAAAAAAAAAEA")
	assert.Error(t, err, "a cursor of the list of instances is one of this list, too")
}

func FuzzMessageCursor(f *testing.F) {
	last := inspect.DeadMessage{MessageRef: transitions.MessageRef{Consumer: strings.Repeat("c", transitions.MaxConsumer),
		ID: strings.Repeat("i", transitions.MaxKey)}, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}
	n := len(byMessage.encode(&last))
	require.Truef(f, n <= maxCursor, "the longest cursor has %d bytes", n)
	got, err := byMessage.decode(byMessage.encode(&last))
	require.Truef(f, err == nil && reflect.DeepEqual(got, last), "%+v became %+v, %v", last, got, err)
	f.Add(byMessage.encode(&last))
	f.Add("")
	f.Add("BQ")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := byMessage.decode(s)
		assert.Falsef(t, err == nil && byMessage.encode(&got) != s, "%q was taken for %+v", s, got)
	})
}
