package commit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
)

// A group takes only commands whose instances' data fits in memory, even if the sizes were not known before.
func TestAGroupHoldsNoMoreDataThanItMay(t *testing.T) {
	for name, hot := range map[string]bool{"each an instance": false, "one instance": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Limits.QueueBytes, c.Limits.GroupSize, c.Limits.GroupBytes = 64<<20, 64, 2<<20 })
			const n, size = 24, 400_000
			var ids []uuid.UUID
			for i := range n {
				if i == 0 || !hot {
					ids = append(ids, b.one(b.theirs("default", fmt.Sprint("open", i), strings.Repeat("x", size))).Instance)
				}
			}
			b.p.sizes.of("deal").Store(0) // as at the start
			groups := b.p.Stats().Groups
			var ps []*decide.Prepared
			for i := range n {
				ps = append(ps, b.command("remind", fmt.Sprint("remind", i), ids[i%len(ids)]))
			}
			for i, r := range b.do(ps...) {
				if r.Err != nil {
					t.Errorf("%d: %v", i, r.Err)
				} else if want := int64(2 + i/len(ids)); r.Receipt.Version != want {
					t.Errorf("command %d made version %d, want %d", i, r.Receipt.Version, want)
				}
			}
			// Read once, and written three times, two of them exceed the bound.
			took := b.p.Stats().Groups - groups
			assert.Truef(t, took >= n/2, "%d commands on %d bytes each went in %d groups, each of which may have 2 MiB", n, size, took)
		})
	}
}
