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

// entry is a key that a node knows. Only used and noted change.
type entry struct {
	key   Key
	texts []keyText     // that it has or had, as far as they are in its row
	ended chan struct{} // closed when the key is revoked, or forgotten

	used, noted *atomic.Int64 // the minute since 1970 in which it was used last, and what the table has of that
}

// keyText is what there is of a key's text.
type keyText struct {
	hash      Hash
	principal auth.Principal // its Ended is closed when the text is given up
	ended     chan struct{}  // nil: it has ended
}

// newEntry is the entry of a key as it is now; before is nil, or the entry as it was. Texts that it has no longer have
// ended.
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
		e.texts = append(e.texts, keyText{hash: k.hash}) // whoever has it is told
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

// text finds a text by its hash, nil for none. How long it takes does not depend on how much of a hash is right.
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

// end ends what the entry after this one, nil for none, has no longer.
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

// lapsed is the entry when the time of its former text is over. What is open with that ends, and who has it is told.
func (e *entry) lapsed() *entry {
	after := *e
	after.texts = slices.Clone(e.texts)
	former := &after.texts[1]
	close(former.ended)
	former.ended = nil
	return &after
}

// cache has the keys that a node has seen.
type cache struct {
	limit   int
	mu      sync.RWMutex
	entries map[string]*entry
	former  map[string]*entry // those of them with a former text that is good, or has just ended
}

func newCache(limit int) cache {
	return cache{limit: limit, entries: map[string]*entry{}, former: map[string]*entry{}}
}

func (c *cache) get(id string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[id]
}

// renew is put for a key that is remembered; another one stays unknown.
func (c *cache) renew(k Key) {
	if c.get(k.ID) != nil {
		c.put(k)
	}
}

// put remembers a key as it is now, or as it is known already where that is newer.
func (c *cache) put(k Key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.entries[k.ID]
	if before != nil && before.key.revision > k.revision {
		return before
	}
	for id, old := range c.entries { // any: who has it is looked up again, and connects again
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

// clear forgets all keys, and ends what is open with them.
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

// lapse ends what is open with former texts whose time is over: what was opened before a rotation knows no end.
func (c *cache) lapse(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, e := range c.former {
		if !now.Before(e.key.FormerEnds) {
			delete(c.former, id)
			c.entries[id] = e.lapsed()
		}
	}
}

// late are the keys whose last use the table does not have yet.
func (c *cache) late() (all []*entry) {
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
