package jwt

import (
	"net/http"
	"time"
)

// SetNow sets the clock. It has to be called before the verifier is used.
func (v *Verifier) SetNow(now func() time.Time) { v.ring.now = now }

// Refresh reads the keys once.
func (v *Verifier) Refresh() { <-v.ring.once() }

// SafeClient is the client that keys are fetched with, over a transport.
func SafeClient(over http.RoundTripper) *http.Client {
	return &http.Client{Transport: over, Timeout: fetchTimeout, CheckRedirect: onlySafe}
}
