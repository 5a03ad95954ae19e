package page

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
)

// sessionCookie names a visitor. Every visitor with a session may order; a real shop has a login.
const sessionCookie = "shop_session"

// beginSession gives who has none a session. Its cookie is sent without TLS only on this machine: a proxy may have ended the TLS of the
// request.
func beginSession(w http.ResponseWriter, r *http.Request) {
	if customerOf(r) != "" {
		return
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: rand.Text(), Path: Path, HttpOnly: true,
		Secure: r.TLS != nil || !onThisMachine(r.Host), SameSite: http.SameSiteStrictMode})
}

func onThisMachine(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}

// customerOf is who has the session of a request, "" without one. The name does not tell the session, so that who reads
// it in an order cannot take the session over.
func customerOf(r *http.Request) string {
	c, err := r.Cookie(sessionCookie)
	if err != nil || c.Value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.Value))
	return "web-" + hex.EncodeToString(sum[:8])
}
