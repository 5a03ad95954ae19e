package apikey

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/workflow"
)

// Bounds for the cost of invented ids: polls per second and keys per poll.
const (
	apart       = 10 * time.Millisecond // between two polls
	maxLookups  = 100                   // keys per poll
	maxWaiting  = 1000                  // keys waiting for a poll; more are rejected
	lookTimeout = 5 * time.Second
)

// find returns a key from the cache or the table. Errors: Unauthorized for an unknown key, Unavailable, TimedOut.
func (v *Verifier) find(ctx context.Context, id string, now time.Time) (*entry, error) {
	if e := v.cache.get(id); e != nil {
		if !v.fresh(now) {
			return nil, errUnavailable
		}
		return e, nil
	}
	l, err := v.request(id)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, &workflow.Error{Code: workflow.TimedOut, Message: "the API key was not looked up in time; try again", Cause: ctx.Err()}
	case <-v.ctx.Done():
		return nil, errUnavailable
	}
	if l.err == nil && l.found == nil {
		return nil, errUnknown
	}
	return l.found, l.err
}

// request requests a key from the next poll. Error: Unavailable if too many are requested.
func (v *Verifier) request(id string) (*lookup, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.waiting[id]; l != nil {
		return l, nil
	}
	if len(v.waiting) >= maxWaiting {
		return nil, errUnavailable
	}
	l := &lookup{done: make(chan struct{})}
	v.waiting[id] = l
	select {
	case v.asked <- struct{}{}:
	default: // already signalled
	}
	return l, nil
}

// watch polls for changes and requested keys until Stop.
//
// Polls are sequential, and the results of one are cached before the next begins. A revocation is therefore either in the results or seen
// by the next poll.
func (v *Verifier) watch() {
	tick := time.NewTicker(v.config.Every)
	defer tick.Stop()
	for {
		v.poll()
		if !backoff.Sleep(v.ctx, apart) {
			return
		}
		select {
		case <-v.asked:
		case <-tick.C:
		case <-v.ctx.Done():
			return
		}
	}
}

// takeRequests removes and returns the requests for the next poll.
func (v *Verifier) takeRequests() (ids []string, looks map[string]*lookup) {
	v.mu.Lock()
	defer v.mu.Unlock()
	looks = map[string]*lookup{}
	for id, l := range v.waiting {
		if len(ids) == maxLookups {
			select {
			case v.asked <- struct{}{}: // continue with the others
			default:
			}
			break
		}
		ids = append(ids, id)
		looks[id] = l
		delete(v.waiting, id)
	}
	return ids, looks
}

// poll polls the table once and ends expired texts.
func (v *Verifier) poll() {
	ids, looks := v.takeRequests()
	began := v.now()
	v.cache.endExpired(began)
	err := v.renew()
	if err == nil && len(ids) > 0 {
		err = v.lookFor(ids, looks)
	}
	if err == nil {
		v.looked.Store(began.UnixNano())
	}
	v.logPoll(err, len(ids))
	for _, l := range looks {
		if err != nil {
			l.err = errUnavailable
		}
		close(l.done)
	}
}

// renew reads changes. At the first poll nothing is cached that could have changed.
func (v *Verifier) renew() error {
	ctx, cancel := context.WithTimeout(v.ctx, lookTimeout)
	defer cancel()
	if v.since < 0 {
		newest, err := v.newest(ctx)
		if err == nil {
			v.since = newest
		}
		return err
	}
	for {
		keys, err := v.changed(ctx, max(v.since, 1)) // keys that have not changed have 0
		switch {
		case err != nil:
			return err
		case len(keys) == 0 && v.since > 0: // the newest known change is missing: the table was restored from a backup
			v.config.Log.Warn("auth: the API keys were restored to an earlier state; clearing the cache", "known", v.since)
			v.cache.clear()
			v.since = -1
			return v.renew()
		}
		for _, k := range keys {
			if k.revision > v.since {
				v.since = k.revision
				v.cache.renew(k)
			}
		}
		if len(keys) < maxChanged {
			return nil
		}
	}
}

// lookFor reads the requested keys.
func (v *Verifier) lookFor(ids []string, looks map[string]*lookup) error {
	ctx, cancel := context.WithTimeout(v.ctx, lookTimeout)
	defer cancel()
	keys, err := v.withIDs(ctx, ids)
	for _, k := range keys {
		looks[k.ID].found = v.cache.put(k)
	}
	return err
}

// logPoll counts a poll and logs the first failure and the first success after it.
func (v *Verifier) logPoll(err error, lookups int) {
	v.mu.Lock()
	failed := v.failure
	v.failure = err
	v.stats.Looks++
	v.stats.Lookups += int64(lookups)
	if err != nil {
		v.stats.Failures++
	}
	v.mu.Unlock()
	switch {
	case v.ctx.Err() != nil:
	case err != nil && failed == nil:
		v.config.Log.Warn("auth: the API keys cannot be looked up", "error", err, "used for", v.config.Survive)
	case err == nil && failed != nil:
		v.config.Log.Info("auth: the API keys are looked up again")
	}
}

const (
	noteEvery = 10 * time.Second
	maxNotes  = 1000 // per statement
)

// note stores the last use of keys periodically until Stop, with a precision of a minute.
func (v *Verifier) note() {
	for backoff.Sleep(v.ctx, noteEvery) {
		v.writeUsed()
	}
	v.writeUsed()
}

// writeUsed stores the last uses that are not stored yet. Failures are retried the next time.
func (v *Verifier) writeUsed() {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout) // Stop waits for it
	defer cancel()
	late := v.cache.unsaved()
	for len(late) > 0 {
		n := min(len(late), maxNotes)
		ids, at, minutes := make([]string, n), make([]time.Time, n), make([]int64, n)
		for i, e := range late[:n] {
			minutes[i] = e.used.Load()
			ids[i], at[i] = e.key.ID, time.Unix(60*minutes[i], 0).UTC()
		}
		if err := v.Table.used(ctx, ids, at); err != nil {
			v.config.Log.Debug("auth: cannot store the last uses of API keys", "error", err)
			return
		}
		for i, e := range late[:n] {
			e.noted.Store(minutes[i])
		}
		late = late[n:]
	}
}
