package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		require.NoError(t, list.Keep(t.Context(), m, at))
	}
	for _, m := range []transitions.Message{message("m", "x"), message("empty", ""), {Tenant: "default", Consumer: "bank", ID: "nil"}} {
		for _, tt := range []struct {
			after time.Duration
			want  string
		}{{0, "first"}, {59 * time.Minute, "first"}, {time.Hour, "third"}} {
			at := noon.Add(tt.after)
			keep(m, map[time.Duration]string{0: "first", 59 * time.Minute: "second", time.Hour: "third"}[tt.after], at)
			got, err := list.Kept(t.Context(), m.Ref(), at)
			assert.Truef(t, err == nil && got.Headers["Signature"][0] == tt.want && string(got.Body) == string(m.Body),
				"%s after %s: %+v, %v", m.ID, tt.after, got, err)
		}
		_, err := list.Kept(t.Context(), m.Ref(), noon.Add(2*time.Hour))
		assert.Equalf(t, workflow.NotFound, workflow.CodeOf(err), "%s after its time: %v", m.ID, err)
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
		require.NoError(t, list.Keep(t.Context(), m, noon))
		got, err := list.Kept(t.Context(), m.Ref(), noon)
		require.NoError(t, err)
		if tt.want == nil {
			assert.Equalf(t, 2, len(got.Headers["A"]), "%s values are kept", name)
			continue
		}
		assert.Len(t, got.Headers, len(tt.want), name)
		for header, values := range tt.want {
			assert.Equalf(t, strings.Join(values, "|"), strings.Join(got.Headers[header], "|"),
				"%s: %s is %q", name, header, got.Headers[header])
		}
	}
}
