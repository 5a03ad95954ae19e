package apikey

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/workflow"
)

// Bounds of what whoever makes ids up can cost: so many looks a second, each for so many keys.
const (
	apart       = 10 * time.Millisecond // between two looks
	maxLookups  = 100                   // keys in one look
	maxWaiting  = 1000                  // keys that wait for a look; more are refused
	lookTimeout = 5 * time.Second
)

// find returns a key that is remembered, or looks for it. Errors: Unauthorized for one that there is not, Unavailable,
// TimedOut.
func (v *Verifier) find(ctx context.Context, id string, now time.Time) (*entry, error) {
	if e := v.cache.get(id); e != nil {
		if !v.fresh(now) {
			return nil, errUnavailable
		}
		return e, nil
	}
	l, err := v.ask(id)
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

// ask has the next look find a key. Error: Unavailable where too many are to be found.
func (v *Verifier) ask(id string) (*look, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.waiting[id]; l != nil {
		return l, nil
	}
	if len(v.waiting) >= maxWaiting {
		return nil, errUnavailable
	}
	l := &look{done: make(chan struct{})}
	v.waiting[id] = l
	select {
	case v.asked <- struct{}{}:
	default: // it knows
	}
	return l, nil
}

// watch looks for what has changed and for what is asked for, until Stop.
//
// It is one look after the other, and what a look finds is remembered before the next one begins: so a
// revocation is either in what was found, or newer, and seen by the next look.
func (v *Verifier) watch() {
	tick := time.NewTicker(v.config.Every)
	defer tick.Stop()
	for {
		v.look()
		if !pause.For(v.ctx, apart) {
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

// take takes what the next look is to find.
func (v *Verifier) take() (ids []string, looks map[string]*look) {
	v.mu.Lock()
	defer v.mu.Unlock()
	looks = map[string]*look{}
	for id, l := range v.waiting {
		if len(ids) == maxLookups {
			select {
			case v.asked <- struct{}{}: // go on with the others
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

// look reads the table once, and ends what is over.
func (v *Verifier) look() {
	ids, looks := v.take()
	began := v.now()
	v.cache.lapse(began)
	err := v.renew()
	if err == nil && len(ids) > 0 {
		err = v.lookFor(ids, looks)
	}
	if err == nil {
		v.looked.Store(began.UnixNano())
	}
	v.tell(err, len(ids))
	for _, l := range looks {
		if err != nil {
			l.err = errUnavailable
		}
		close(l.done)
	}
}

// renew reads what has changed. The first time nothing is remembered that could have.
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
		keys, err := v.changed(ctx, max(v.since, 1)) // 0 is of keys that have not changed
		switch {
		case err != nil:
			return err
		case len(keys) == 0 && v.since > 0:
			return v.again()
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

// again begins anew. The newest change that is known is not in the table, nor a later one: it is as it was once, of a backup or of a
// standby that had not got everything. The numbers that come are then those that were seen already.
func (v *Verifier) again() error {
	v.config.Log.Warn("auth: the API keys are as they were earlier; none that is remembered counts", "known", v.since)
	v.cache.clear()
	v.since = -1
	return v.renew()
}

// lookFor reads what is asked for.
func (v *Verifier) lookFor(ids []string, looks map[string]*look) error {
	ctx, cancel := context.WithTimeout(v.ctx, lookTimeout)
	defer cancel()
	keys, err := v.withIDs(ctx, ids)
	for _, k := range keys {
		looks[k.ID].found = v.cache.put(k)
	}
	return err
}

// tell counts a look, and logs when it is the first that fails, or the first that does not.
func (v *Verifier) tell(err error, lookups int) {
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
