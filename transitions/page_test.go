package transitions

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
		assert.Equalf(t, c.want, NextRows(c.bytes, c.rows, c.limit), "after %d rows of %d bytes, of %d", c.rows, c.bytes, c.limit)
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
		assert.Equalf(t, c.want, PageFull(list, c.limit), "%d entries of %d", c.entries, c.limit)
	}
}
