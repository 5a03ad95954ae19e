package jwt

import "time"

// SetNow sets the clock. It has to be called before the verifier is used.
func (v *Verifier) SetNow(now func() time.Time) { v.ring.now = now }

// Refresh reads the keys once.
func (v *Verifier) Refresh() { <-v.ring.once() }
