package apikey

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

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
