package relay

import (
	"context"
	"slices"
	"time"
)

// listen takes in what others have told.
func (t *tenure) listen() {
	t.mu.Lock()
	n := t.tidy
	t.tidy = tidings{}
	t.mu.Unlock()
	if n.until.After(t.until) {
		t.until = n.until
	}
	if n.lost {
		t.lose("another node has taken it over")
	}
	if n.drain {
		t.drain()
	}
	if n.revision > t.revision {
		t.reloadSoon(time.Now())
	}
	for _, b := range n.behind {
		if t.logs[b.tenant] == nil && b.revision < t.moved {
			t.relay.Wake() // the cursor may have been moved after the look
		} else if t.takes(b.tenant) {
			l := t.log(b)
			l.head.Store(max(l.head.Load(), b.head))
			t.startReading(l)
		}
	}
	for _, l := range n.rested {
		l.rests = false
		t.startReading(l)
	}
	t.abandon(n.late, time.Now())
	for tenant, head := range n.heard {
		if l := t.logs[tenant]; l != nil {
			l.heard = max(l.heard, head)
			t.startReading(l)
		} else if t.takes(tenant) && t.wants.Load() && !t.flow.circuit.open {
			t.relay.Wake() // to find out where it stands; while the receiver is down the next look does
		}
	}
}

// takes reports whether the sink gets a tenant's events.
func (t *tenure) takes(tenant string) bool {
	return t.sink.Tenants == nil || slices.Contains(t.sink.Tenants, tenant)
}

// log finds or makes what is known of a tenant's log. A new one begins at the
// cursor.
func (t *tenure) log(b behind) *log {
	l := t.logs[b.tenant]
	if l == nil {
		l = newLog(&stretch{tenant: b.tenant, since: b.revision, stored: b.cursor, read: b.cursor})
		t.logs[b.tenant] = l
	}
	return l
}

// restart begins anew with the logs whose cursors a person has moved. No letter
// is under way.
func (t *tenure) restart(moved []behind, now time.Time) {
	for _, m := range moved {
		l := t.logs[m.tenant]
		if l == nil || l.since >= m.revision {
			continue
		}
		t.flow.discard(l.stretch, now)
		t.startReading(t.anew(l, &stretch{tenant: m.tenant, since: m.revision, stored: m.cursor, read: m.cursor}))
	}
	t.readOn()
}

// anew puts another log in the place of one whose stretch is void.
func (t *tenure) anew(l *log, s *stretch) *log {
	if l.halt != nil {
		l.halt()
	}
	t.free(l)
	t.resting(l)
	t.kept = slices.DeleteFunc(t.kept, func(p piece) bool { return p.of == l })
	next := newLog(s)
	next.head.Store(l.head.Load())
	next.heard = l.heard
	t.logs[s.tenant] = next
	return next
}

// letGo lets the logs go that do nothing but wait, until they have waited, and
// reports whether that has made room.
func (t *tenure) letGo(now time.Time) (some bool) {
	list := t.flow.tired
	t.flow.tired = nil
	for _, tired := range list {
		l := t.logs[tired.of.tenant]
		if l == nil || l.stretch != tired.of || t.flow.drains {
			continue
		}
		s, until := t.flow.letGo(tired, now)
		if s == nil {
			continue
		}
		some = true
		next := t.anew(l, s)
		next.rests = true
		time.AfterFunc(until.Sub(now), func() { t.hear(func(n *tidings) { n.rested = append(n.rested, next) }) })
	}
	if some {
		t.takeInKept(now)
		t.readOn()
	}
	return some
}

// startReading lets a reader read a log if there is something to read, at once
// or when it is its turn.
func (t *tenure) startReading(l *log) {
	if l.void || l.rests || l.reading || l.queued || t.flow.full[l.tenant] || !l.behind() || t.lost.Load() || t.flow.drains {
		return
	}
	if t.reading >= readers {
		l.queued = true
		t.queue = append(t.queue, l)
		t.crowded.Store(true)
		return
	}
	t.reading++
	l.reading, l.holds = true, true
	t.mu.Lock()
	t.read[l.tenant] = true
	t.mu.Unlock()
	after := l.read
	ctx, halt := context.WithCancel(t.reads)
	l.halt = halt
	t.work.Go(func() {
		defer halt()
		t.follow(ctx, l, after)
	})
}

// hearReader takes in what a reader says of itself.
func (t *tenure) hearReader(r report) {
	l := r.of
	if l.void {
		return
	}
	if (r.news == readerReads || r.news == readerFailed) && l.blocker == nil {
		l.failure = r.failure
		t.flow.note(l.stretch)
	}
	if r.news == readerFailed || r.news == readerEnded {
		t.free(l)
	}
	if r.news == readerRested || r.news == readerEnded {
		t.resting(l)
	}
	t.readOn()
	t.startReading(l)
}

// free lets another log be read instead of this one.
func (t *tenure) free(l *log) {
	if l.holds {
		l.holds = false
		t.reading--
	}
}

// resting notes that nobody reads a log.
func (t *tenure) resting(l *log) {
	l.reading = false
	t.mu.Lock()
	delete(t.read, l.tenant)
	t.mu.Unlock()
}

// readOn lets those be read that wait for a reader.
func (t *tenure) readOn() {
	for len(t.queue) > 0 && t.reading < readers {
		next := t.queue[0]
		t.queue[0] = nil
		t.queue = t.queue[1:]
		next.queued = false
		t.startReading(next)
	}
	t.crowded.Store(len(t.queue) > 0)
}

// takeIn gives the flow what a reader has read, as far as there is room; it keeps
// the rest until there is.
func (t *tenure) takeIn(p piece, now time.Time) {
	if p.of.void {
		return // its reader was told to end
	}
	n := t.flow.admit(p.of.stretch, p.events, p.wanted, now)
	if n == len(p.events) {
		p.of.taken <- struct{}{}
		return
	}
	p.events = p.events[n:]
	if p.wanted != nil {
		p.wanted = p.wanted[n:]
	}
	t.kept = append(t.kept, p)
	if len(t.kept) <= keeps { // it may be long until there is room
		t.free(p.of)
		t.readOn()
	}
}

// takeInKept does so with all that had to wait.
func (t *tenure) takeInKept(now time.Time) {
	kept := t.kept
	t.kept = nil
	for _, p := range kept {
		t.takeIn(p, now)
	}
}
