package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNextPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, submitted, bytes, want int }{
		{1000, 0, 0, 16},          // the size of answers is not known
		{5, 0, 0, 5},              // no more than there are
		{1000, 16, 16 << 10, 984}, // answers of 1 KiB: all the rest have less than 1 MiB
		{5000, 16, 16 << 10, 1024},
		{1000, 16, 1 << 20, 16},   // answers of 64 KiB
		{1000, 500, 32 << 20, 15}, // and still, after 32 MiB of them
		{1000, 16, 32 << 20, 1},   // answers of 2 MiB
		{20, 16, 16, 4},
		{1000, 16, 0, 984},
	} {
		assert.Equalf(t, c.want, nextPart(c.all, c.submitted, c.bytes), "%d of %d have %d bytes", c.submitted, c.all, c.bytes)
	}
}
