package relay

import "time"

// letterDue is when the next letter should go; false: there is no reason for
// one yet.
func (t *tenure) letterDue() (time.Time, bool) {
	some, urgent := t.flow.pending()
	switch {
	case t.sending:
		return time.Time{}, false
	case t.ending():
		return t.storeNext, true
	case t.reloads && (!some || t.loadNext.Before(t.storeNext)):
		return t.loadNext, true
	case urgent:
		return t.storeNext.Add(fetchEvery - storeEvery), true
	}
	return t.storeNext, some
}

// ending reports whether all that is left is to give the lease back.
func (t *tenure) ending() bool { return t.flow.drains && t.flow.drained() || t.left }

// send sends a letter.
func (t *tenure) send(now time.Time) {
	l := t.flow.letter()
	l.release, l.moved = t.ending(), t.moved
	l.reload = t.reloads && !now.Before(t.loadNext)
	if l.reload {
		t.reloads, t.loadNext = false, now.Add(reloadEvery)
	}
	t.sending, t.storeNext = true, now.Add(storeEvery)
	limit := budget
	if t.breaking {
		limit = lastWord
	}
	go func() { t.replies <- t.exchange(l, limit) }()
}

// takeReply takes in what the database says.
func (t *tenure) takeReply(r *reply, now time.Time) {
	t.sending = false
	f, l := t.flow, r.letter
	switch {
	case r.err != nil:
		t.relay.config.Log.Warn("cannot store how far a sink is", "sink", t.sink.Name, "error", r.err)
		f.unsent(l, now)
		t.reloads = t.reloads || l.reload
		t.storeNext, t.loadNext = now.Add(retryStore), now.Add(retryStore)
		t.released = l.release && t.breaking // there is no time to try again: the lease will run out
		return
	case r.lost:
		t.lose("another node has taken it over")
		return
	}
	f.stored(l)
	t.count(l)
	t.until = r.sent.Add(t.relay.config.Lease)
	t.released = l.release
	t.restart(r.moved, now)
	t.moved = r.revision
	if l.reload {
		if r.revision != t.revision {
			f.reread(now)
		}
		t.revision = r.revision
		f.reload(r.aside, r.full, now)
		if len(r.full) > 0 {
			t.loadNext = now.Add(10 * reloadEvery)
		}
		for _, l := range t.logs {
			t.startReading(l)
		}
	}
	if r.revision != t.revision {
		t.reloadSoon(now)
	}
	for _, lane := range l.hungry {
		f.fetched(lane, r.rows[lane], r.barred[lane], now)
	}
	if len(f.full) > 0 && f.freed { // there may be room for more of them; nothing but that and a person makes any
		t.reloads = true
	}
	t.takeInKept(now)
}

// reloadSoon lets it be read which instances are aside.
func (t *tenure) reloadSoon(now time.Time) {
	t.reloads = true
	if soon := now.Add(reloadEvery); t.loadNext.After(soon) {
		t.loadNext = soon
	}
}

// count counts what is stored, and logs what a person should know.
func (t *tenure) count(l *letter) {
	t.relay.stats.letters.Add(1)
	t.relay.stats.delivered.Add(l.delivered)
	t.relay.stats.failed.Add(l.failed)
	t.relay.stats.parked.Add(l.parked)
	if l.parked > 0 {
		t.relay.config.Log.Warn("events could not be delivered and are dead letters now", "sink", t.sink.Name, "events", l.parked,
			"failure", l.failure)
	}
}
