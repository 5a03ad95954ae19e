package apikey

import (
	"crypto/subtle"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

// entry is a cached key. Only used and noted change.
type entry struct {
	key   Key
	texts []keyText     // current and former texts in its row
	ended chan struct{} // closed when the key is revoked or evicted

	used, noted *atomic.Int64 // minute since 1970 of the last use, and its value in the table
}

// keyText is a text of a key.
type keyText struct {
	hash      Hash
	principal auth.Principal // its Ended is closed when the text is replaced
	ended     chan struct{}  // nil: expired
}

// newEntry returns the entry of a key. before is the previous entry or nil; its texts that the key no longer has end.
func newEntry(k Key, before *entry) *entry {
	e := &entry{key: k, ended: make(chan struct{}), used: new(atomic.Int64), noted: new(atomic.Int64)}
	if before != nil {
		e.ended, e.used, e.noted = before.ended, before.used, before.noted
	}
	if k.RevokedAt.IsZero() {
		e.add(before, k.hash, k.ExpiresAt)
		if !k.FormerEnds.IsZero() {
			e.add(before, k.former, earlier(k.ExpiresAt, k.FormerEnds))
		}
	} else {
		e.texts = append(e.texts, keyText{hash: k.hash}) // so that its holder gets the reason
	}
	if before != nil {
		before.end(e)
	}
	return e
}

// add adds a text.
func (e *entry) add(before *entry, h Hash, until time.Time) {
	t := keyText{hash: h, ended: make(chan struct{})}
	if old := before.text(h); old != nil && old.ended != nil {
		t.ended = old.ended
	}
	k := &e.key
	t.principal = auth.Principal{Tenant: k.Tenant, Actor: k.Actor, Roles: k.Roles, Grants: k.Grants,
		Proof: auth.Proof{Kind: auth.APIKey, By: k.ID}, Until: until, Ended: t.ended,
		Credential: transitions.Credential{Key: k.ID, Until: k.ExpiresAt}}
	e.texts = append(e.texts, t)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// text returns the text with a hash, or nil. It takes constant time.
func (e *entry) text(h Hash) (found *keyText) {
	if e == nil {
		return nil
	}
	for i := range e.texts {
		if subtle.ConstantTimeCompare(e.texts[i].hash[:], h[:]) == 1 {
			found = &e.texts[i]
		}
	}
	return found
}

// end ends the texts that the next entry, or nil, does not have.
func (e *entry) end(after *entry) {
	for _, t := range e.texts {
		if now := after.text(t.hash); t.ended != nil && (now == nil || now.ended == nil) {
			close(t.ended)
		}
	}
	if e.key.RevokedAt.IsZero() && (after == nil || !after.key.RevokedAt.IsZero()) {
		close(e.ended)
	}
}

// withoutFormer returns the entry after its former text expired, and ends that text.
func (e *entry) withoutFormer() *entry {
	after := *e
	after.texts = slices.Clone(e.texts)
	former := &after.texts[1]
	close(former.ended)
	former.ended = nil
	return &after
}

// cache caches the keys that a node has seen.
type cache struct {
	limit   int
	mu      sync.RWMutex
	entries map[string]*entry
	former  map[string]*entry // those with a former text that is valid or has just expired
}

func (c *cache) get(id string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[id]
}

// renew updates a key that is cached.
func (c *cache) renew(k Key) {
	if c.get(k.ID) != nil {
		c.put(k)
	}
}

// put caches a key, unless a newer revision is cached.
func (c *cache) put(k Key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.entries[k.ID]
	if before != nil && before.key.revision > k.revision {
		return before
	}
	for id, old := range c.entries { // evict any: its holder reconnects and it is looked up again
		if before != nil || len(c.entries) < c.limit {
			break
		}
		c.forget(id)
		old.end(nil)
	}
	e := newEntry(k, before)
	c.forget(k.ID)
	c.entries[k.ID] = e
	if len(e.texts) > 1 {
		c.former[k.ID] = e
	}
	return e
}

// clear evicts all keys and ends their streams.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, old := range c.entries {
		c.forget(id)
		old.end(nil)
	}
}

func (c *cache) forget(id string) {
	delete(c.entries, id)
	delete(c.former, id)
}

// endExpired ends former texts that have expired, because streams opened before a rotation do not know the expiry.
func (c *cache) endExpired(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, e := range c.former {
		if !now.Before(e.key.FormerEnds) {
			delete(c.former, id)
			c.entries[id] = e.withoutFormer()
		}
	}
}

// unsaved returns the keys whose last use is not stored.
func (c *cache) unsaved() (all []*entry) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.entries {
		if e.used.Load() > e.noted.Load() {
			all = append(all, e)
		}
	}
	return all
}

func (c *cache) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}
