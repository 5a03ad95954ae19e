package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestKeepReplacesExpiredRows(t *testing.T) {
	t.Parallel()
	list := table(tables.AsNode(t, pgtest.Pool(t), ""))
	keep := func(m transitions.Message, value string, at time.Time) {
		t.Helper()
		m.Keep, m.Headers = time.Hour, map[string][]string{"Signature": {value}}
		if err := list.Keep(t.Context(), m, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []transitions.Message{message("m", "x"), message("empty", ""), {Tenant: "default", Consumer: "bank", ID: "nil"}} {
		for _, tt := range []struct {
			after time.Duration
			want  string
		}{{0, "first"}, {59 * time.Minute, "first"}, {time.Hour, "third"}} {
			at := noon.Add(tt.after)
			keep(m, map[time.Duration]string{0: "first", 59 * time.Minute: "second", time.Hour: "third"}[tt.after], at)
			got, err := list.Kept(t.Context(), m.Ref(), at)
			if err != nil || got.Headers["Signature"][0] != tt.want || string(got.Body) != string(m.Body) {
				t.Errorf("%s after %s: %+v, %v", m.ID, tt.after, got, err)
			}
		}
		if _, err := list.Kept(t.Context(), m.Ref(), noon.Add(2*time.Hour)); workflow.CodeOf(err) != workflow.NotFound {
			t.Errorf("%s after its time: %v", m.ID, err)
		}
	}
}

func TestKeptHeaders(t *testing.T) {
	t.Parallel()
	list := table(tables.AsNode(t, pgtest.Pool(t), ""))
	for name, tt := range map[string]struct{ given, want map[string][]string }{
		"none":       {nil, map[string][]string{}},
		"repeated":   {map[string][]string{"A": {"1", "", "2: 3"}}, map[string][]string{"A": {"1", "", "2: 3"}}},
		"odd":        {map[string][]string{"A\n": {"\x00\xff\r\nB: 1"}}, map[string][]string{"A ": {"\x00\xff  B: 1"}}},
		"large":      {map[string][]string{"A": {strings.Repeat("a", 1<<20)}, "B": {"b"}}, map[string][]string{"B": {"b"}}},
		"many bytes": {map[string][]string{"A": {strings.Repeat("a", 200_000), strings.Repeat("b", 200_000), "c"}}, nil},
	} {
		m := message(name, "x")
		m.Keep, m.Headers = time.Hour, tt.given
		if err := list.Keep(t.Context(), m, noon); err != nil {
			t.Fatal(err)
		}
		got, err := list.Kept(t.Context(), m.Ref(), noon)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == nil {
			if n := len(got.Headers["A"]); n != 2 {
				t.Errorf("%s: %d values are kept", name, n)
			}
			continue
		}
		if len(got.Headers) != len(tt.want) {
			t.Errorf("%s: %q", name, got.Headers)
		}
		for header, values := range tt.want {
			if strings.Join(got.Headers[header], "|") != strings.Join(values, "|") {
				t.Errorf("%s: %s is %q", name, header, got.Headers[header])
			}
		}
	}
}
