package transitions

import "testing"

func TestNextRows(t *testing.T) {
	for _, c := range []struct{ bytes, rows, limit, want int }{
		{0, 0, 100, 16},          // unknown size
		{0, 0, 5, 5},             // not more than the limit
		{0, 16, 100, 84},         // rows without data: all that are left
		{16_000, 16, 100, 84},    // small rows: all that are left
		{PageBytes / 2, 4, 9, 5}, // as many as fill the page, and one that ends it
		{PageBytes / 2, 1, 100, 2},
		{2 * PageBytes, 2, 100, 1}, // at least one
	} {
		if got := NextRows(c.bytes, c.rows, c.limit); got != c.want {
			t.Errorf("after %d rows of %d bytes, of %d: %d, want %d", c.rows, c.bytes, c.limit, got, c.want)
		}
	}
}

func TestPageFull(t *testing.T) {
	half := Entry{Payload: make([]byte, PageBytes/4), Data: make([]byte, PageBytes/4)}
	for _, c := range []struct {
		entries, limit int
		want           bool
	}{{0, 1, false}, {1, 1, true}, {1, 2, false}, {2, 100, true}} {
		list := make([]Entry, c.entries)
		for i := range list {
			list[i] = half
		}
		if got := PageFull(list, c.limit); got != c.want {
			t.Errorf("%d entries of %d: %v", c.entries, c.limit, got)
		}
	}
}
