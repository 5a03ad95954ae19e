package jwt

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl/auth/internal/idp"
)

// SetNow sets the clock. Call it before the verifier is used.
func (v *Verifier) SetNow(now func() time.Time) { v.keys.now = now }

// Refresh reads the keys once.
func (v *Verifier) Refresh() { <-v.keys.once() }

// SafeClient returns the client for fetching keys, with a transport.
func SafeClient(over http.RoundTripper) *http.Client {
	return &http.Client{Transport: over, Timeout: fetchTimeout, CheckRedirect: idp.OnlySafe}
}
