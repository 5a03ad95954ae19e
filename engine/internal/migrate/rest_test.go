package migrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAMigrationRestsLongerWhereItWaits(t *testing.T) {
	r := New(Config{})
	for _, page := range []struct {
		name       string
		n, rate    int
		took, want time.Duration
	}{
		{"the first", 10, 1000, 4 * time.Millisecond, 6 * time.Millisecond},
		{"beyond the rate", 10, 100_000, 4 * time.Millisecond, time.Millisecond},
		{"beside callers", 10, 1000, 24 * time.Millisecond, 60 * time.Millisecond},
		{"quicker than the first", 10, 1000, 2 * time.Millisecond, 8 * time.Millisecond},
		{"as the first was", 10, 1000, 4 * time.Millisecond, 6 * time.Millisecond},
		{"of a slow rate", 10, 10, 24 * time.Millisecond, 976 * time.Millisecond},
	} {
		assert.Equal(t, page.want, r.rest(page.n, page.rate, page.took), page.name)
	}
}
