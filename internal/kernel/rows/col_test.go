package rows

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addPair names its columns where it adds their values.
func addPair(s *Set, name string, n int64) {
	s.Tenant("acme")
	s.Col("n", Int8).Int8(n)
	s.Col("name", Text).TextOrNull(name)
}

func TestColumnsAreThoseThatAreAdded(t *testing.T) {
	t.Parallel()
	columns := ColumnsOf(func(s *Set) { addPair(s, "", 0) })
	want := []Column{Of("n", Int8), Of("name", Text)}
	require.Truef(t, slices.Equal(columns, want), "got %v, want %v", columns, want)
	named, plain := NewSet(columns), NewSet(columns)
	for range 2 {
		addPair(named, "a", 7)
		plain.Tenant("acme")
		plain.Int8(7)
		plain.Text("a")
	}
	for i, got := range named.Params(ManyTenants) {
		want := plain.Params(ManyTenants)[i]
		assert.Truef(t, slices.Equal(got, want), "column %d: got %x, want %x", i, got, want)
	}
}
