package apikey

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/pause"
)

const (
	noteEvery = 10 * time.Second
	maxNotes  = 1000 // in one statement
)

// note writes down now and then which keys were used, until Stop: each once in a minute, whatever it is used for.
func (v *Verifier) note() {
	for pause.For(v.ctx, noteEvery) {
		v.writeUsed()
	}
	v.writeUsed()
}

// writeUsed writes down the uses that the table does not have yet. What cannot be written is tried again the next time.
func (v *Verifier) writeUsed() {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout) // Stop waits for it
	defer cancel()
	late := v.cache.late()
	for len(late) > 0 {
		n := min(len(late), maxNotes)
		ids, at, minutes := make([]string, n), make([]time.Time, n), make([]int64, n)
		for i, e := range late[:n] {
			minutes[i] = e.used.Load()
			ids[i], at[i] = e.key.ID, time.Unix(60*minutes[i], 0).UTC()
		}
		if err := v.Table.used(ctx, ids, at); err != nil {
			v.config.Log.Debug("auth: when API keys were used could not be written down", "error", err)
			return
		}
		for i, e := range late[:n] {
			e.noted.Store(minutes[i])
		}
		late = late[n:]
	}
}
