package jwt

import (
	"crypto/sha256"
	"sync"

	"github.com/pawlhq/pawl/auth"
)

// cache caches verified tokens by their SHA-256.
type cache struct {
	limit   int
	mu      sync.RWMutex
	entries map[[sha256.Size]byte]entry
}

// entry is the principal of a token and its signing key.
type entry struct {
	principal auth.Principal
	key       *key
}

func (c *cache) get(sum [sha256.Size]byte) (entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, found := c.entries[sum]
	return e, found
}

func (c *cache) put(sum [sha256.Size]byte, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[[sha256.Size]byte]entry{}
	}
	for old := range c.entries { // evict any: it is verified again
		if len(c.entries) < c.limit {
			break
		}
		delete(c.entries, old)
	}
	c.entries[sum] = e
}

func (c *cache) remove(sum [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, sum)
}

func (c *cache) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}
