package rows

import (
	"slices"
	"testing"
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
	if want := []Column{Of("n", Int8), Of("name", Text)}; !slices.Equal(columns, want) {
		t.Fatalf("got %v, want %v", columns, want)
	}
	named, plain := NewSet(columns), NewSet(columns)
	for range 2 {
		addPair(named, "a", 7)
		plain.Tenant("acme")
		plain.Int8(7)
		plain.Text("a")
	}
	for i, got := range named.Params(ManyTenants) {
		if want := plain.Params(ManyTenants)[i]; !slices.Equal(got, want) {
			t.Errorf("column %d: got %x, want %x", i, got, want)
		}
	}
}
